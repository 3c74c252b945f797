"""A PyTorch model with the arguments that it is called with. Whatever the user hands over becomes a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from fuseflow.errors import FrontendError, UsageError
from fuseflow.frontend.exported_file.inputs import call_arguments
from fuseflow.frontend.trace.graph_modules import keep_origins


@dataclass(frozen=True, slots=True, eq=False)
class ModelCall:
    """A module and the arguments of one call of it; and the exported `program` that the module is, if it is one. Every call draws
    the random numbers that PyTorch would draw next where the call is made, and takes the same way through the module: not the
    fast path of PyTorch's transformers, which writes other numbers at padded places."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    program: ExportedProgram | None = None
    generator_state: torch.Tensor = field(default_factory=torch.get_rng_state)

    def __call__(self) -> Any:
        with self.repeatable():
            return self.module(*self.args, **self.kwargs)

    @contextmanager
    def repeatable(self) -> Iterator[None]:
        """Inside the block, set the random generator to its state when the call was made, and switch fast paths off. Both are
        restored behind it."""
        fast = torch.backends.mha.get_fastpath_enabled()
        with torch.random.fork_rng(devices=()):
            torch.set_rng_state(self.generator_state)
            torch.backends.mha.set_fastpath_enabled(False)
            try:
                yield
            finally:
                torch.backends.mha.set_fastpath_enabled(fast)


def model_call(model: object, inputs: Sequence[Any] | Mapping[str, Any] | None, kwargs: Mapping[str, Any] | None) -> ModelCall:
    """Return a call of a module, of a function or of an exported program.

    `inputs` are the positional arguments, or the keyword arguments if they are a mapping. An exported program takes arguments that are not
    given from its example inputs. Raise `FrontendError` for an object that is no model, and `UsageError` for missing arguments.
    """
    name = model_name(model)
    module = _module(model)
    if isinstance(inputs, Mapping) and kwargs is None:
        return model_call(model, (), inputs)
    if isinstance(model, ExportedProgram) and isinstance(inputs, list | tuple | None):
        return ModelCall(module, *call_arguments(model, "the exported program", inputs or (), kwargs or {}), model)
    if inputs is None and kwargs is None:
        raise UsageError(f"the module `{name}` needs inputs to be traced with", hint="compile(module, inputs)")
    if isinstance(inputs, Mapping):
        raise UsageError(f"the inputs of `{name}` are given by name twice", hint="give a mapping as `inputs` or as `kwargs`")
    if inputs is not None and not isinstance(inputs, list | tuple):
        raise UsageError(
            f"the inputs of `{name}` are a {type(inputs).__name__}",
            hint="pass a tuple with one element for each argument of forward, or a mapping with the names of the arguments",
        )
    return ModelCall(module, tuple(inputs or ()), dict(kwargs or {}))


def model_name(model: object) -> str:
    """Return the name of a model: the name of a function, or of the class of a module."""
    if isinstance(model, nn.Module | ExportedProgram):
        return type(model).__name__
    return str(getattr(model, "__name__", type(model).__name__))


def _module(model: object) -> nn.Module:
    match model:
        case nn.Module():
            return model
        case ExportedProgram():
            return keep_origins(model.module(check_guards=False))
        case Callable():
            return _FunctionModule(model)
    raise FrontendError(
        f"the model is a {type(model).__name__}", hint="pass a torch.nn.Module, an exported program, or a function of tensors"
    )


class _FunctionModule(nn.Module):
    """A function as a module without weights."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function
