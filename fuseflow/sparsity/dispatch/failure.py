"""Operators that have no implementation: an error, or dense arguments with or without a warning, and a registration to fill in."""

from __future__ import annotations

import re
import sys
import warnings
from contextvars import ContextVar, Token
from types import FrameType, TracebackType
from typing import Literal, TypeAlias, assert_never, get_args

import torch

from fuseflow.errors import DispatchError, DispatchWarning, SparsityError, did_you_mean
from fuseflow.sparsity.dispatch.argument_binding import Operator, operator_name
from fuseflow.sparsity.dispatch.registry import BackwardKey, Classes, Outputs
from fuseflow.sparsity.sparsifiers.built_in import KeepAll

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


def operator_failure(operator: Operator, inputs: Classes, outputs: Outputs) -> tuple[str, str]:
    """Return the message and the stub for an operator that has no implementation for formats."""
    name, classes = operator_name(operator), [*map(class_name, inputs)]
    stub = f"""@sp.register_fwd_op_impl(
    operator={name},
    inp={_tuple(classes)},
    out={_pairs(outputs or ((KeepAll, torch.Tensor),))},
)
def {_function(name)}_forward(ctx, inputs, output_sparsifiers):
    {_unpacked("inp", len(inputs))} = inputs
    ctx.save_for_backward({_unpacked("inp", len(inputs), "")})
    raise NotImplementedError  # return the results"""
    return f"`{name}` has no implementation for ({', '.join(classes)})", stub


def gradient_failure(operator: Operator, key: BackwardKey, inputs: Classes) -> tuple[str, str]:
    """Return the message and the stub for the gradient of an operator that has no implementation for formats."""
    name, classes = operator_name(operator), [*map(class_name, inputs)]
    stub = f"""@sp.register_bwd_op_impl(
    operator={name},
    grad_out={_tuple([*map(class_name, key.grad_outputs)])},
    grad_inp={_pairs(key.grad_inputs or ((KeepAll, torch.Tensor),) * len(inputs))},
    inp={_tuple(classes)},
)
def {_function(name)}_backward(ctx, grad_outputs, input_sparsifiers):
    {_unpacked("grad", len(key.grad_outputs))} = grad_outputs
    raise NotImplementedError  # return a gradient for each of {len(inputs)} tensors"""
    return f"the gradient of `{name}` is not registered for ({', '.join(classes)})", stub


def sparsifier_failure(sparsifier: type, inp: type, out: type) -> tuple[str, str]:
    """Return the message and the stub for a sparsifier that has no implementation for formats."""
    names = class_name(sparsifier), class_name(inp), class_name(out)
    stub = f"""@sp.register_sparsifier_implementation(
    sparsifier={names[0]},
    inp={names[1]},
    out={names[2]},
)
def {_function(f"{sparsifier.__name__}_to_{out.__name__}")}(sparsifier, tensor, grad_fmt=None):
    raise NotImplementedError  # return sp.PackedTensor.wrapped_from_dense({out.__name__}(...), tensor, grad_fmt)"""
    return "the sparsifier `{}` has no implementation from `{}` to `{}`".format(*names), stub


def class_name(cls: type) -> str:
    """Return how a program writes a class, if it has `import fuseflow.sparsity as sp`."""
    if cls is torch.Tensor:
        return "torch.Tensor"
    return f"sp.{cls.__name__}" if cls.__module__.startswith("fuseflow.sparsity.") else cls.__qualname__.split("<locals>.")[-1]


def _pairs(outputs: Outputs) -> str:
    return _tuple([f"({class_name(sparsifier)}, {class_name(cls)})" for sparsifier, cls in outputs])


def _tuple(texts: list[str]) -> str:
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def _unpacked(name: str, count: int, end: str = ",") -> str:
    return ", ".join(f"{name}{place}" for place in range(count)) + (end if count == 1 else "") if count else "()" if end else ""


def _function(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_")
