"""Why PyTorch cannot trace a model, in the words of its user. PyTorch names its own tracers, which the user did not call."""

from __future__ import annotations

import re

from fuseflow.errors import FrontendError
from fuseflow.frontend.foreign_errors import foreign_message
from fuseflow.frontend.trace import fx_origin

_CAUSES = (
    (
        re.compile(r"get value out of a tracing tensor with (?P<operator>\S+?)(\.default)? "),
        "a Python number is taken out of a tensor by `{operator}`",
        "use `torch.where`, or give the model the number as an argument",
    ),
    (
        re.compile(r"NestedTensorImpl"),
        "a nested tensor in the strided layout cannot be recorded",
        "make it with `layout=torch.jagged`, or compute with plain tensors, padded to one length, and a mask",
    ),
    (
        re.compile(r"argument of type: <class 'torch.storage."),
        "the model takes the memory of a tensor, as `copy.deepcopy` and `untyped_storage` do",
        "use `.clone()`",
    ),
)
"""Patterns of what PyTorch says, each with the message and the hint that tell it."""


def untraceable(error: Exception) -> FrontendError:
    """Return the error for a model that runs and cannot be traced."""
    span = fx_origin.exception_span(error)
    for pattern, message, hint in _CAUSES:
        if cause := pattern.search(str(error)):
            return FrontendError(message.format(**cause.groupdict()), hint=hint, span=span)
    return FrontendError(f"the model cannot be traced: {foreign_message(error)}", span=span)
