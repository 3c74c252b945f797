"""What the trace of a training step must know of the model's own ideas about gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn
from unittest.mock import patch

import torch

from fuseflow.errors import FrontendError
from fuseflow.frontend.trace.fx_origin import current_span


@contextmanager
def training_trace() -> Iterator[None]:
    """In the block, the trace records blocks of `torch.inference_mode` as those of `torch.no_grad`, which give the same gradients. Raise
    `FrontendError` for a function with its own backward, which no trace of the forward shows."""
    entered = dict[torch.inference_mode, ExitStack]()

    def enter(mode: torch.inference_mode) -> None:
        stack = entered[mode] = ExitStack()
        if mode.mode:
            stack.enter_context(torch.no_grad())

    def leave(mode: torch.inference_mode, *_: object) -> None:
        entered.pop(mode).close()

    with (
        patch.object(torch.inference_mode, "__enter__", enter),
        patch.object(torch.inference_mode, "__exit__", leave),
        patch.object(torch.autograd.Function, "apply", classmethod(_refuse)),
    ):
        yield


def _refuse(function: type, *_: Any, **__: Any) -> NoReturn:
    message = f"`{function.__qualname__}` has its own backward (`torch.autograd.Function`), which has no formula"
    raise FrontendError(message, hint="write its forward so that PyTorch differentiates it", span=current_span())
