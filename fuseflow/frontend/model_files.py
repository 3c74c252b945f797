"""Model files: ordinary Python with `build(data, *, option=default)`, which returns a PyTorch module with its inputs, or an Einsum
program with its tensors by name; constants say more, if wanted: `FORMATS`, `INDICES`, `DATA` and `SMALL_DATA`."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.einsum.verify import verify
from fuseflow.errors import FrontendError, FuseFlowError, Span, UsageError, did_you_mean
from fuseflow.filesystem import read_text
from fuseflow.frontend.data import Data, load_data
from fuseflow.frontend.model_options import BuildSignature

if TYPE_CHECKING:
    import torch


DEFAULT_DATA = "karate"


@dataclass(frozen=True, slots=True, eq=False)
class LoadedModel:
    """What a model file makes of its data and options."""

    module: torch.nn.Module | Program
    inputs: tuple[Any, ...] | Mapping[str, Any]
    """Arguments of a module's `forward`; tensors of a program, by name."""
    data: str | None
    """The data set it was built with; None if its `build` was called without one."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options that were given, with their types."""
    formats: Mapping[str, str] = field(default_factory=dict)
    """`FORMATS = {"attn.mask": "csr"}`: storage formats of tensors that PyTorch holds dense."""
    indices: Mapping[str, str] = field(default_factory=dict)
    """`INDICES = {"attn.scores": "b h i j"}`: index names of Einsums."""
    notice: str = ""
    """What must stand beside every result with this data; empty for data that are what they are called."""


def load_model(
    path: Path,
    data: Data | str | None = None,
    seed: int = 0,
    *,
    data_dir: Path | None = None,
    options: Mapping[str, Any] | None = None,
) -> LoadedModel:
    """Run a model file and call its `build`; random weights follow from `seed`: it seeds PyTorch, and is the option `seed` of a
    `build` that has one.

    `data` is a data set or the spec of one (`:nodes=9`: options of the default one); without it, the file's `DATA` (`SMALL_DATA` with
    the option `small`) or the karate club is taken, unless `build` can do without. `options` are the keyword arguments of `build`, as
    values or as text.
    Raises `FileError` if there is no such file, `UsageError` for data or an option that this model does not take, `FrontendError` with
    the line in it for anything that goes wrong inside.
    """
    path = Path(path)
    text = read_text(path, "the model file")
    with _user_module(path) as module:
        with _blamed(path), _seeded_torch(seed, "torch" in text):
            exec(compile(text, str(path), "exec"), module.__dict__)
        build = _build(path, module)
        interface = BuildSignature.of(path, build)
        values = interface.values(options or {})
        default = _default_data(path, module, values.get("small", False) is True)
        loaded = _data(interface, default, data, data_dir, seed)
        seeds = {o.name: seed for o in interface.options if o.name == "seed" and o.name not in values}
        with _blamed(path):
            built = build(*(() if loaded is None else (loaded,)), **values, **seeds)
    model, inputs = _checked(path, built)
    name, notice = (None, "") if loaded is None else (loaded.name, loaded.notice)
    formats, indices = _mapping(path, module, "FORMATS"), _mapping(path, module, "INDICES")
    return LoadedModel(model, inputs, name, values, formats, indices, notice)


def _data(interface: BuildSignature, default: str, data: Data | str | None, data_dir: Path | None, seed: int) -> Data | None:
    """The data set that was asked for, or the default one; None if `build` can do without and nothing says which."""
    if not interface.data and (data is not None or data_dir is not None):
        raise UsageError(f"{interface.path} takes no data", hint="leave `--data` out: its `build` makes the inputs itself")
    if data is None and data_dir is None and not default and not interface.needs_data:
        return None
    if isinstance(data, str) or data is None:
        return load_data(_spec(default or DEFAULT_DATA, data), data_dir, seed) if interface.data else None
    return data


def _spec(default: str, asked: str | None) -> str:
    """What was asked for, or the default; with the options that were asked for if that is all.

    >>> _spec("random:nodes=9", ":adj=raw")
    'random:nodes=9,adj=raw'
    """
    if asked is None or not asked.startswith(":"):
        return default if asked is None else asked
    return default + ("," if ":" in default else ":") + asked[1:]


@contextmanager
def _seeded_torch(seed: int, used: bool) -> Iterator[None]:
    """PyTorch is seeded before the model file runs; if only a module that it imports loads it, after that."""
    if used:
        import torch

        torch.manual_seed(seed)
    yield
    if not used and "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def _default_data(path: Path, module: ModuleType, small: bool) -> str:
    """What the file says; '' if nothing."""
    found = [getattr(module, name, "") for name in ("SMALL_DATA", "DATA")]
    if not all(isinstance(spec, str) for spec in found):
        raise FrontendError(f"`DATA` in {path} is not the spec of a data set", hint=f'write `DATA = "{DEFAULT_DATA}"`')
    return str((found[0] if small else "") or found[1])


@contextmanager
def _user_module(path: Path) -> Iterator[ModuleType]:
    """A module for the file; while its code runs it can be looked up by name (dataclasses need that) and finds its neighbours."""
    module = ModuleType(f"fuseflow_model_{path.stem}")
    module.__file__ = str(path)
    folder = str(path.resolve().parent)
    before = set(sys.modules)
    sys.modules[module.__name__] = module
    sys.path.insert(0, folder)
    try:
        yield module
    finally:
        sys.path.remove(folder)
        for name in _neighbours(folder, before):
            del sys.modules[name]


def _neighbours(folder: str, before: Collection[str]) -> list[str]:
    """The modules that were loaded from a folder. They are forgotten: one of this name in another folder is another module."""
    files = ((name, getattr(module, "__file__", None)) for name, module in sys.modules.items() if name not in before)
    return [name for name, file in files if file and Path(file).resolve().is_relative_to(folder)]


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


def _build(path: Path, module: ModuleType) -> Callable[..., Any]:
    build = getattr(module, "build", None)
    if callable(build):
        return build  # type: ignore[no-any-return, unused-ignore]
    functions = [
        name for name, value in vars(module).items() if callable(value) and getattr(value, "__module__", "") == module.__name__
    ]
    near = did_you_mean("build", functions) if functions else ""
    hint = "define `def build(data): return module.eval(), (data.adjacency, data.features)`"
    raise FrontendError(f"{path} has no function `build`", hint=hint, notes=[near] if near.startswith("did") else ())


def _checked(path: Path, built: object) -> tuple[torch.nn.Module | Program, tuple[Any, ...] | dict[str, Any]]:
    match built:
        case (Program() | str() as program, dict() as tensors) if all(isinstance(name, str) for name in tensors):
            parsed = parse(program, f"{path}: program") if isinstance(program, str) else program
            verify(parsed)
            return parsed, tensors
        case (Program() | str(), other):
            message = f"`build` in {path} returned a program with {type(other).__name__}, not its tensors by name"
            raise FrontendError(message, hint='return `program, {"A": array, ...}`')

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
    wanted = "(torch.nn.Module, tuple of inputs) or (program, tensors by name)"
    raise FrontendError(f"`build` in {path} returned {got}, not {wanted}", hint=hint)


def _mapping(path: Path, module: ModuleType, name: str) -> dict[str, str]:
    value = getattr(module, name, {})
    if not isinstance(value, dict) or not all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):
        raise FrontendError(f"`{name}` in {path} is not a dictionary of strings", hint=f'write `{name} = {{"tensor": "text"}}`')
    return dict(value)
