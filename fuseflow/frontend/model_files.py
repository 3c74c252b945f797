"""Model files: Python files with a function `build(data, *, option=default)`, and functions like it in other files and modules.

The function returns a PyTorch module with its inputs, or an Einsum program with its tensors by name. The constants `FORMATS`,
`INDICES`, `DATA` and `SMALL_DATA` of the file are optional.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
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
from fuseflow.frontend.datasets.spec_options import names_file, split_spec
from fuseflow.frontend.factory import (
    DATA_ARGUMENT,
    DEFAULT_FUNCTION,
    BuildSignature,
    Factory,
    importable_from_here,
    require_module,
)
from fuseflow.frontend.foreign_errors import ForeignFailure
from fuseflow.frontend.import_cache.request import is_installed

if TYPE_CHECKING:
    import torch

    from fuseflow.frontend.data import Data

DEFAULT_DATA = "karate"
"""The data set of a model file that names none."""


class ModelFileError(FrontendError):
    """A model file cannot be run, or its function gives no model."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedModel:
    """The model that a model file built from its data and options."""

    module: torch.nn.Module | Program
    inputs: tuple[Any, ...] | Mapping[str, Any]
    """The arguments of the `forward` of a module, or the tensors of a program by name."""
    data: str | None
    """The data set that the model was built with, or None if `build` was called without one."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options that the user passed, with their types."""
    formats: Mapping[str, str] = field(default_factory=dict)
    """The constant `FORMATS` of the file: storage formats of tensors that PyTorch holds dense, as in `{"attn.mask": "csr"}`."""
    indices: Mapping[str, str] = field(default_factory=dict)
    """The constant `INDICES` of the file: index names of Einsums, as in `{"attn.scores": "b h i j"}`."""
    notice: str = ""
    """A notice that is shown beside every result with these data, or '' if the data are what their name says."""
    target: Any = None
    """What the loss of a training step compares the output with: the third value of `build`, or the labels of the data that are trained."""
    loss: str | Callable[..., Any] | None = None
    """The constant `loss` of the file: a loss by name, or a function of the output and the target."""
    optimizer: str | None = None
    """The constant `optimizer` of the file: an optimizer by name, as in `"adamw:lr=1e-3"`."""
    interface: str = ""
    """The attributes of these data that a `build(data)` can take, or '' if it was called without any."""


def load_model(
    path: Path | str,
    data: Data | str | None = None,
    seed: int = 0,
    *,
    data_dir: Path | None = None,
    options: Mapping[str, Any] | None = None,
) -> LoadedModel:
    """Run a model file and call its `build`, or the function that `file.py:function` or `package.module:function` names. A module is
    looked for in the current directory first.

    `data` is a data set or the spec of one; a spec such as `:nodes=9` gives options to the default data set. Without `data`, the data
    set is the constant `DATA` of the file (`SMALL_DATA` with the option `small`) or else the karate club, unless `build` needs none.
    `options` are the keyword arguments of `build`, as values or as text. `seed` seeds PyTorch and fixes random weights; a `build` with
    an option `seed` receives it.

    Raise `FileError` if the file or the module does not exist, `UsageError` for data or an option that the model does not accept, and
    `FrontendError` with the line in the file for an exception inside it.
    """
    factory = Factory.parse(str(path)) or Factory(DEFAULT_FUNCTION, Path(path))
    place = factory.place
    with _module(factory, seed) as module:
        build = _build(place, module, factory.function)
        interface = BuildSignature.of(place, build)
        values = interface.values(options or {})
        default = _default_data(place, module, values.get("small", False) is True)
        data_set = _data(interface, default, data, data_dir, seed)
        seeds = {o.name: seed for o in interface.options if o.name == "seed" and o.name not in values}
        described = "" if data_set is None else data_set.interface
        with describing_data(described), _errors_at_user_line(str(module.__file__)):
            built = build(*(() if data_set is None else (data_set,)), **values, **seeds)
    target = None if data_set is None else data_set.target
    if isinstance(built, tuple) and len(built) == 3:
        *built, target = built
        built = tuple(built)
    model, inputs = _checked(place, factory.function, built)
    name, notice = (None, "") if data_set is None else (data_set.name, data_set.notice)
    formats, indices = _mapping(place, module, "FORMATS"), _mapping(place, module, "INDICES")
    loss, optimizer = _training_names(place, module)
    return LoadedModel(
        model, inputs, name, values, formats, indices, notice, target, loss, optimizer, described,
    )  # fmt: skip


@contextmanager
def _module(factory: Factory, seed: int) -> Iterator[ModuleType]:
    """Yield the module of a factory, which is run, or imported, with PyTorch seeded. In the block it can import modules beside it."""
    if factory.module:
        with importable_from_here():
            with _errors_at_user_line(factory.module), _seeded_torch(seed, used=True):
                require_module(factory.module)
                module = importlib.import_module(factory.module)
            # Python runs a module once, and the numbers of its function are the same each time.
            with _seeded_torch(seed, used=True):
                yield module
        return
    text = read_text(factory.file, "the model file")
    with _user_module(factory.file) as module:
        with _errors_at_user_line(str(factory.file)), _seeded_torch(seed, "torch" in text):
            exec(compile(text, str(factory.file), "exec"), module.__dict__)
        yield module


def _data(interface: BuildSignature, default: str, data: Data | str | None, data_dir: Path | None, seed: int) -> Data | None:
    """Return the data set that the user asked for or the default one, or None if `build` needs none and neither is named."""
    if not interface.data and (data is not None or data_dir is not None):
        hint = "leave `--data` out: its `build` makes the inputs itself"
        raise UsageError(f"{interface.path} takes no data", hint=hint, notes=(DATA_ARGUMENT,))
    if not interface.data or (data is None and data_dir is None and not default and not interface.needs_data):
        return None
    if not (isinstance(data, str) or data is None):
        return data
    from fuseflow.frontend.data import load_data  # loads scipy

    return load_data(_spec(_beside(interface.path, default) or DEFAULT_DATA, data), data_dir, seed)


def _beside(model: Path, default: str) -> str:
    """Return the default data of a model file. A relative path is relative to the folder of the model.

    >>> _beside(Path("models/gcn.py"), "graph.mtx:adj=raw"), _beside(Path("models/gcn.py"), "karate")
    ('models/graph.mtx:adj=raw', 'karate')
    """
    return str(model.parent / default) if names_file(split_spec(default)[0]) else default


def _spec(default: str, request: str | None) -> str:
    """Return the spec that the user asked for, or the default one, with the options that the user asked for if the request has no name.

    >>> _spec("random:nodes=9", ":adj=raw")
    'random:nodes=9,adj=raw'
    """
    if request is None or not request.startswith(":"):
        return default if request is None else request
    return default + (":" if split_spec(default)[1] is None else ",") + request[1:]


@contextmanager
def _seeded_torch(seed: int, used: bool) -> Iterator[None]:
    """Seed PyTorch before the block if the model file uses it (`used`), or after it if only an imported module loaded PyTorch."""
    if used:
        import torch

        torch.manual_seed(seed)
    yield
    if not used and "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def _default_data(path: Path, module: ModuleType, small: bool) -> str:
    """Return the default data set that the file names, the small one with `small`, or ''."""
    specs = [getattr(module, name, "") for name in ("SMALL_DATA", "DATA")]
    if not all(isinstance(spec, str) for spec in specs):
        raise ModelFileError(f"`DATA` in {path} is not the spec of a data set", hint=f'write `DATA = "{DEFAULT_DATA}"`')
    return str((specs[0] if small else "") or specs[1])


@contextmanager
def _user_module(path: Path) -> Iterator[ModuleType]:
    """Yield an empty module for the file, which can be looked up by name, as dataclasses need, and can import files of its folder."""
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
        for name in _modules_of_models(folder, before):
            del sys.modules[name]


def _modules_of_models(folder: str, before: Collection[str]) -> list[str]:
    """Return the modules that were loaded from a folder of models, or for them. They must be forgotten, because a module of the same name
    in another folder differs. PyTorch Geometric writes code for the layers of a model into temporary files. Installed modules stay,
    wherever their environment is: PyTorch cannot be loaded twice.
    """
    temporary = Path(tempfile.gettempdir()).resolve()
    files = ((name, getattr(module, "__file__", None)) for name, module in sys.modules.items() if name not in before)
    paths = ((name, Path(file).resolve()) for name, file in files if file and not is_installed(file))
    return [name for name, path in paths if path.is_relative_to(folder) or path.parent == temporary]


@contextmanager
def _errors_at_user_line(path: str) -> Iterator[None]:
    """Turn an exception of the user's code into a `FrontendError` at the innermost line of the file that led to it."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse (CSR|CSC|invariant)", UserWarning)  # PyTorch: "support is in beta"
            yield
    except FuseFlowError as error:
        if isinstance(error, AttributeError):
            error.span = _innermost(error, path)
        raise
    except SyntaxError as error:
        span = Span(error.filename or path, error.lineno or 1, error.offset)
        raise ModelFileError(f"syntax error: {error.msg}", span=span) from error
    except (Exception, SystemExit) as error:
        raise ModelFileError(f"the model file raises {type(error).__name__}: {error}", span=_innermost(error, path)) from error


def _innermost(error: BaseException, path: str) -> Span:
    """Return the innermost line of the file that led to an exception."""
    lines = [frame.lineno or 1 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return Span(path, lines[-1] if lines else 1)


@contextmanager
def describing_data(interface: str) -> Iterator[None]:
    """Add the attributes of the data, `interface`, if known, as a note to an error of the model's code inside the block."""
    try:
        yield
    except (ModelFileError, ForeignFailure) as error:
        error.notes += (interface,) if interface else ()
        raise


def _build(path: Path, module: ModuleType, function: str) -> Callable[..., Any]:
    build = getattr(module, function, None)
    if callable(build):
        return build  # type: ignore[no-any-return, unused-ignore]
    callables = {name: value for name, value in vars(module).items() if callable(value)}
    functions = [name for name, value in callables.items() if getattr(value, "__module__", "") == module.__name__]
    suggestion = did_you_mean(function, functions) if functions else ""
    hint = f"define `def {function}(): return model.eval(), (x,)`; of graphs `def {function}(data)` with `data.adjacency`"
    notes = [suggestion] if suggestion.startswith("did") else []
    raise ModelFileError(f"{path} has no function `{function}`", hint=hint, notes=notes)


def _checked(path: Path, function: str, built: object) -> tuple[torch.nn.Module | Program, tuple[Any, ...] | dict[str, Any]]:
    match built:
        case (Program() | str() as program, dict() as tensors) if all(isinstance(name, str) for name in tensors):
            parsed = parse(program, f"{path}: program") if isinstance(program, str) else program
            verify(parsed)
            return parsed, tensors
        case (Program() | str(), other):
            message = f"`{function}` in {path} returned a program with {type(other).__name__}, not its tensors by name"
            raise ModelFileError(message, hint='return `program, {"A": array, ...}`')

    import torch

    match built:
        case (torch.nn.Module() as module, list() | tuple() as inputs):
            return module, tuple(inputs)
        case (torch.nn.Module(), torch.Tensor()):
            returned, hint = "(module, tensor)", "return the inputs as a tuple: `return module, (x,)`"
        case tuple():
            returned, hint = f"({', '.join(type(part).__name__ for part in built)})", "return `module, (input, ...)`"
        case _:
            returned, hint = type(built).__name__, "return `module, (input, ...)`"
    expected = "(torch.nn.Module, tuple of inputs) or (program, tensors by name)"
    raise ModelFileError(f"`{function}` in {path} returned {returned}, not {expected}", hint=hint)


def _training_names(path: Path, module: ModuleType) -> tuple[Any, str | None]:
    """Return the `loss` and the `optimizer` that a model file declares."""
    loss, optimizer = getattr(module, "loss", None), getattr(module, "optimizer", None)
    if not (loss is None or isinstance(loss, str) or callable(loss)):
        message = f"`loss` in {path} is a {type(loss).__name__}"
        raise ModelFileError(message, hint='write `loss = "cross_entropy"`, or a function of the output and the target')
    if not (optimizer is None or isinstance(optimizer, str)):
        raise ModelFileError(f"`optimizer` in {path} is no text", hint='write `optimizer = "adamw:lr=1e-3"`')
    return loss, optimizer


def _mapping(path: Path, module: ModuleType, name: str) -> dict[str, str]:
    value = getattr(module, name, {})
    if not isinstance(value, dict) or not all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):
        raise ModelFileError(f"`{name}` in {path} is not a dictionary of strings", hint=f'write `{name} = {{"tensor": "text"}}`')
    return dict(value)
