"""Names for parts of a model that are no modules of their own.

A part that is called `attention` inside of the module `layers.0` has the module path `layers.0.attention`, and the modules that it calls
stand below it. So schedules can name it like a module.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from typing import Any, cast

from fuseflow.errors import UsageError

REGION_KIND = "fuseflow.region"
"""The word that an entry in the module stack of an FX node has instead of the class of a module, if it is a named region."""

_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")


class RegionContext(AbstractContextManager[None], ContextDecorator):
    """What `region` returns: a context manager that is a decorator of functions too."""


def region(name: str) -> RegionContext:
    """Name a part of a model, so that `--fuse NAME` and `Schedule.fuse("NAME")` fuse it as if it were a module.

    It is a context manager and a decorator. Regions nest, inside of each other and inside of modules: a region `scores` in a region
    `attention` is `attention.scores`. A name that is used twice, as in a loop, is one region, just as a module that is called twice. When
    nothing is being compiled, a region does nothing. Nor does it under `torch.compile`, which tells its back ends about modules alone.
    Raise `UsageError` for a name that a schedule could not say.

    >>> import fuseflow as ff
    >>> @ff.region("attention")
    ... def attention(q, k, v):
    ...     with ff.region("scores"):
    ...         weights = (q @ k.T).softmax(-1)
    ...     return weights @ v
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"`{name}` is no name of a region",
            hint='use letters, digits and underscores, with dots between parts: `region("layer1")`',
        )
    return cast(RegionContext, _inside(name))


@contextmanager
def _inside(name: str) -> Iterator[None]:
    stack = _module_stack()
    key = f"{REGION_KIND}.{len(stack)}"
    stack[key] = (name, REGION_KIND)
    try:
        yield
    finally:
        del stack[key]


def _module_stack() -> dict[str, Any]:
    """Return the modules around the operator that is traced now, or {} if nothing is traced. PyTorch is not loaded for that. Dynamo, which
    reads the code itself, has no stack that a region could be put on."""
    torch = sys.modules.get("torch")
    proxy_tensor = sys.modules.get("torch.fx.experimental.proxy_tensor")
    if torch is None or proxy_tensor is None or torch.compiler.is_dynamo_compiling():
        return {}
    mode = proxy_tensor.get_proxy_mode()
    stack: dict[str, Any] = {} if mode is None else getattr(mode.tracer, "module_stack", {})
    return stack
