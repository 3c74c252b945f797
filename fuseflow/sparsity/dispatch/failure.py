"""The handling of an operator that has no implementation: it is an error, or the arguments are made dense, with or without a warning."""

from __future__ import annotations

import sys
import warnings
from contextvars import ContextVar, Token
from types import FrameType, TracebackType
from typing import Literal, TypeAlias, assert_never, get_args

from fuseflow.errors import DispatchError, DispatchWarning, SparsityError, did_you_mean

Mode: TypeAlias = Literal["raise", "warn", "silent"]

_mode: ContextVar[Mode] = ContextVar("dispatch_failure", default="warn")
_OURS = ("torch.", "fuseflow.sparsity.")


class set_dispatch_failure:
    """Say what becomes of operators without an implementation from here on: `raise`, `warn` (at first), or `silent`.

    As in `with set_dispatch_failure("raise"):`, it holds until the end of the block. It holds for the running thread or task, not for
    others. Raise `SparsityError` for an unknown mode.
    """

    def __init__(self, action: Mode) -> None:
        if action not in get_args(Mode):
            raise SparsityError(f"there is no mode `{action}` of dispatch", hint=did_you_mean(str(action), get_args(Mode)))
        self._token: Token[Mode] = _mode.set(action)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _mode.reset(self._token)


def report(message: str, stub: str) -> None:
    """Report that an operator has no implementation: by an error, a warning or not at all, as the mode says. Python shows a
    warning once for each text and place of the caller.

    `stub` is the text of a registration. Raise `DispatchError` in the mode `raise`.
    """
    mode = _mode.get()
    match mode:
        case "silent":
            return
        case "raise":
            raise missing(message, stub, "or make the arguments dense: `set_dispatch_failure('warn')`")
        case "warn":
            frame = _caller()
            text = f"{message}; its arguments are made dense. To add one:\n\n{stub}"
            module = frame.f_globals.get("__name__", "__main__")
            registry = frame.f_globals.setdefault("__warningregistry__", {})
            warnings.warn_explicit(text, DispatchWarning, frame.f_code.co_filename, frame.f_lineno, module, registry)
        case _:
            assert_never(mode)


def missing(message: str, stub: str, hint: str = "") -> DispatchError:
    """Return an error that says which implementation is missing, with `stub`, a registration to fill in."""
    return DispatchError(f"{message}. To add one:\n\n{stub}\n", hint=hint or "the text above is a program to fill in")


def _caller() -> FrameType:
    """Return the frame that called the operator: the nearest one outside PyTorch and this package."""
    frame = first = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if not frame.f_globals.get("__name__", "").startswith(_OURS):
            return frame
    return first
