"""Model files: ordinary Python with `build(data) -> (module, inputs)` and, if wanted, `FORMATS` and `INDICES`."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fuseflow.errors import FrontendError, FuseFlowError, Span, did_you_mean
from fuseflow.filesystem import read_text
from fuseflow.frontend.data import Data

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Options:
    """What a model file says beside its model."""

    formats: Mapping[str, str] = field(default_factory=dict)
    """`FORMATS = {"attn.mask": "csr"}`: storage formats of tensors that PyTorch holds dense."""
    indices: Mapping[str, str] = field(default_factory=dict)
    """`INDICES = {"attn.scores": "b h i j"}`: index names of Einsums."""


def load_model(path: Path, data: Data, seed: int = 0) -> tuple[torch.nn.Module, tuple[Any, ...], Options]:
    """Run a model file and call its `build`; random weights follow from `seed`.

    Raises `FileError` if there is no such file, `FrontendError` with the line in it for anything that goes wrong inside.
    """
    import torch

    path = Path(path)
    with _user_module(path) as module:
        torch.manual_seed(seed)
        with _blamed(path):
            exec(compile(read_text(path, "the model file"), str(path), "exec"), module.__dict__)
        build = _build(path, module)
        with _blamed(path):
            built = build(data)
    model, inputs = _checked(path, built)
    return model, inputs, Options(_mapping(path, module, "FORMATS"), _mapping(path, module, "INDICES"))


@contextmanager
def _user_module(path: Path) -> Iterator[ModuleType]:
    """A module for the file; while its code runs it can be looked up by name (dataclasses need that) and finds its neighbours."""
    module = ModuleType(f"fuseflow_model_{path.stem}")
    module.__file__ = str(path)
    folder = str(path.resolve().parent)
    sys.modules[module.__name__] = module
    sys.path.insert(0, folder)
    try:
        yield module
    finally:
        sys.path.remove(folder)
        del sys.modules[module.__name__]


@contextmanager
def _blamed(path: Path) -> Iterator[None]:
    """An exception of the user's code becomes a `FrontendError` at the innermost of the file's lines that led to it."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse (CSR|CSC|invariant)", UserWarning)  # PyTorch: "support is in beta"
            yield
    except FuseFlowError:
        raise
    except SyntaxError as error:
        span = Span(error.filename or str(path), error.lineno or 1, error.offset)
        raise FrontendError(f"syntax error: {error.msg}", span=span) from error
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        span = Span(str(path), lines[-1] or 1) if lines else Span(str(path), 1)
        raise FrontendError(f"the model file raises {type(error).__name__}: {error}", span=span) from error


def _build(path: Path, module: ModuleType) -> Callable[[Data], Any]:
    build = getattr(module, "build", None)
    if callable(build):
        return build  # type: ignore[no-any-return]
    functions = [
        name for name, value in vars(module).items() if callable(value) and getattr(value, "__module__", "") == module.__name__
    ]
    near = did_you_mean("build", functions) if functions else ""
    hint = "define `def build(data): return module.eval(), (data.adjacency, data.features)`"
    raise FrontendError(f"{path} has no function `build`", hint=hint, notes=[near] if near.startswith("did") else ())


def _checked(path: Path, built: object) -> tuple[torch.nn.Module, tuple[Any, ...]]:
    import torch

    match built:
        case (torch.nn.Module() as module, list() | tuple() as inputs):
            return module, tuple(inputs)
        case (torch.nn.Module(), torch.Tensor()):
            got, hint = "(module, tensor)", "return the inputs as a tuple: `return module, (x,)`"
        case tuple():
            got, hint = f"({', '.join(type(part).__name__ for part in built)})", "return `module, (input, ...)`"
        case _:
            got, hint = type(built).__name__, "return `module, (input, ...)`"
    raise FrontendError(f"`build` in {path} returned {got}, not (torch.nn.Module, tuple of inputs)", hint=hint)


def _mapping(path: Path, module: ModuleType, name: str) -> dict[str, str]:
    value = getattr(module, name, {})
    if not isinstance(value, dict) or not all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):
        raise FrontendError(f"`{name}` in {path} is not a dictionary of strings", hint=f'write `{name} = {{"tensor": "text"}}`')
    return dict(value)
