"""A request to the front end, as one digest: the model file, its data and options, and the installation that imports it.

The installation is Python, the installed distributions, and the places where Python looks for modules.

Whether the code of a model does the same when it runs again follows from its text, as far as that tells: `import time` is a reason to think
otherwise. The code is the model file and the modules that it imports, as far as they are the user's own and not installed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from fuseflow.frontend.model_spec import ModelSpec, TrainingRequest
from fuseflow.package_digest import PACKAGE, package_digest

_SCHEMA = 4
"""The version of the form of requests and entries."""
_MOST_NAMES = 10_000
"""The most files in a data directory. With more, looking for changes would take longer than the import."""
_VARIABLES = ("HF_", "HOME", "HUGGINGFACE", "PYG", "PYTORCH", "TORCH", "TRANSFORMERS", "XDG_")
"""The beginnings of the names of environment variables that tell PyTorch and its libraries where files are and how to work."""


Request = dict[str, object]
"""All that a request for a model file depends on but the contents of files, as plain values by what they are."""


def request_digest(spec: ModelSpec) -> str | None:
    """Return the digest of what was asked for: a model file with its options. Return None if that cannot be kept (`request_of`)."""
    request = request_of(spec)
    return None if request is None else digest_of(request)


def digest_of(request: Request) -> str:
    """Return the digest of a request, under which what it gave is kept."""
    return hashlib.sha256(json.dumps(request).encode("utf-8", "surrogateescape")).hexdigest()


def last_request_digest(spec: ModelSpec) -> str:
    """Return the digest under which the last request for this model file from this directory is kept, whatever it asked for."""
    return digest_of({"last request": str(spec.model), "directory": os.getcwd(), "trains": spec.training is not None})


def request_of(spec: ModelSpec) -> Request | None:
    """Return the request for a model file. Return None if an option, a loss, an optimizer or a target is a value that only this process
    knows, or if the data directory has too many files.

    The directory from which the file is named is part of the request, because messages and locations hold the name as it was given, and a
    model may open a file by a relative name.
    """
    options = dict(spec.options or {})
    is_plain = all(value is None or isinstance(value, bool | int | float | str) for value in options.values())
    data_files = [] if spec.data_dir is None else _names_below(str(spec.data_dir))
    if not is_plain or data_files is None or not _is_plain_step(spec.training):
        return None
    return {
        "schema": _SCHEMA,
        "model": str(spec.model),
        "directory": os.getcwd(),
        "data": spec.data,
        "data_dir": None if spec.data_dir is None else str(spec.data_dir),
        "formats": dict(spec.formats or {}),
        "options": options,
        "seed": spec.seed,
        "sparsity": _sparsity(spec),
        "training": spec.training and [spec.training.loss, spec.training.optimizer, spec.training.gradients],
        "data_files": data_files,
        "beside": _importable_names(str(Path(str(spec.model)).resolve().parent)),
        "installation": _installation(),
    }


def _is_plain_step(training: TrainingRequest | None) -> bool:
    """Return whether texts say all that is asked for of a training step."""
    if training is None:
        return True
    return training.target is None and all(isinstance(value, str | None) for value in (training.loss, training.optimizer))


def _sparsity(spec: ModelSpec) -> str | None:
    """Return the sparsity of a request: the text of a spec, or the digest of a directory of sparse weights."""
    if isinstance(spec.sparsity, Path):
        contents = [(path.name, path.read_bytes()) for path in sorted(spec.sparsity.glob("*")) if path.is_file()]
        return hashlib.sha256(repr([(name, hashlib.sha256(c).hexdigest()) for name, c in contents]).encode()).hexdigest()
    return spec.sparsity.to_yaml() if spec.sparsity else None


def _names_below(directory: str) -> list[str] | None:
    """Return the names of all files below a directory, since an added file can be read instead of another, or None if too many."""
    names: list[str] = []
    for folder, folders, files in os.walk(directory):
        folders.sort()
        names += [os.path.join(folder, name) for name in sorted(files)]
        if len(names) > _MOST_NAMES:
            return None
    return names


def _installation() -> dict[str, object]:
    """Return all that decides which code an `import` statement runs, as plain values.

    A distribution is known by the name of its metadata directory, such as `torch-2.13.0.dist-info`, which has its version. fuseflow itself
    is known by its sources, since a clone keeps its version while it changes. A directory of the user's own modules is known by the
    names of the modules, because a new one can take the place of an installed one. Of the environment, only what libraries of models go by
    decides: a model that reads the environment itself is not kept.
    """
    return {
        "python": f"{sys.version} {platform.machine()}",
        "fuseflow": package_digest(),
        "path": {folder: _importable_names(folder) for folder in sys.path},
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith(_VARIABLES)},
    }


def _importable_names(folder: str) -> list[str]:
    """Return the names in a directory that an `import` can find there: modules, packages and metadata of distributions."""
    try:
        with os.scandir(folder or ".") as entries:
            return sorted(e.name for e in entries if _decides(e))
    except OSError:
        return []


def is_installed(path: str) -> bool:
    """Return whether a file belongs to Python, to an installed distribution or to fuseflow, which `_installation` tells apart."""
    return path.startswith(_installed_prefixes())


@cache
def _installed_prefixes() -> tuple[str, ...]:
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {folder for folder in sys.path if any(name.endswith(".dist-info") for name in _importable_names(folder))}
    archives = [folder for folder in sys.path if folder.endswith(".zip")]
    real = {os.path.realpath(folder) for folder in folders}
    return (*(folder + os.sep for folder in sorted(folders | real | {str(PACKAGE)})), *archives)


def _decides(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    if name.endswith((".py", ".so", ".pth", ".dist-info", ".egg-info")):
        return True
    return entry.is_dir() and name.isidentifier() and os.path.exists(os.path.join(entry.path, "__init__.py"))


MOST_CHANGES = 4
"""The most differences that are told."""


def file_changes(paths: Sequence[str]) -> str:
    """Return words about files that changed, were added or removed since the import that is kept."""
    told = [f"`{os.path.relpath(path)}` {'changed' if os.path.exists(path) else 'is gone'}" for path in paths]
    return _joined(told)


def request_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return words about what is asked for now and was not, or was not so, in the request before.

    >>> request_changes({"seed": 0, "options": {"hidden": 16}}, {"seed": 0, "options": {"hidden": 32}})
    '`options hidden` is 32, and was 16'
    >>> request_changes({"path": ["torch-2.12.dist-info"]}, {"path": ["torch-2.13.dist-info"]})
    '`path` has `torch-2.13.dist-info`, and had `torch-2.12.dist-info`'
    """
    return _joined([*_differences((), before, now)]) or "what was kept for this request is gone"


def _joined(told: Sequence[str]) -> str:
    more = f"; and {len(told) - MOST_CHANGES} more" if len(told) > MOST_CHANGES else ""
    return "; ".join(told[:MOST_CHANGES]) + more


def _differences(name: tuple[str, ...], before: Any, now: Any) -> Iterator[str]:
    if before == now:
        return
    if isinstance(before, dict) and isinstance(now, dict):
        for key in (*before, *(key for key in now if key not in before)):
            yield from _differences((*name, key), before.get(key), now.get(key))
    elif isinstance(before, list) and isinstance(now, list):
        added, gone = ([each for each in one if each not in other] for one, other in ((now, before), (before, now)))
        has = f"has {_listed(added)}" if added else ""
        had = f"had {_listed(gone)}" if gone else ""
        yield f"`{' '.join(name)}` {', and '.join(filter(None, (has, had))) or 'has another order'}"
    elif name[-1:] == ("fuseflow",):
        yield "the sources of fuseflow changed"
    else:
        yield f"`{' '.join(name)}` is {_value(now)}, and was {_value(before)}"


def _listed(values: Sequence[Any]) -> str:
    named = ", ".join(f"`{value}`" for value in values[:MOST_CHANGES])
    return f"{named} and {len(values) - MOST_CHANGES} more" if len(values) > MOST_CHANGES else named


def _value(value: Any) -> str:
    return "not given" if value is None else str(value) if len(str(value)) <= 60 else "another"


_UNREPEATABLE: Final = {
    **dict.fromkeys(("time", "datetime", "os.times"), "the clock"),
    **dict.fromkeys(("random", "secrets", "uuid", "os.urandom", "torch.seed", "torch.random.seed"), "unseeded numbers"),
    **dict.fromkeys(("os.environ", "os.environb", "os.getenv"), "the environment"),
    **dict.fromkeys(("platform", "getpass", "pwd", "os.getpid", "os.uname", "os.cpu_count", "os.getlogin"), "the machine"),
    **dict.fromkeys(("threading", "multiprocessing", "concurrent", "asyncio"), "what runs beside it"),
    **dict.fromkeys(("ctypes", "cffi", "scipy.io", "h5py", "safetensors", "pyarrow"), "files that Python does not see"),
    **dict.fromkeys(("importlib", "runpy", "eval", "exec", "__import__"), "code that only runs"),
}
"""Names of functions and modules whose results depend on more than the files that a model reads, and what they depend on."""
_GENERATORS: Final = ("default_rng", "RandomState", "SeedSequence", "PCG64", "MT19937", "Philox", "SFC64")
"""Functions of `numpy.random` that need a seed to give the same numbers again."""


def code_reasons(opened: Iterable[str]) -> Iterator[str]:
    """Yield why a Python file that a model opened may do something else when it runs again."""
    files = [path for path in opened if path.endswith(".py")]
    for path in files:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue  # the state of the file tells
        if reason := unrepeatable(text):
            yield f"{reason} in {path}"
        for name in _imported(text):
            file = getattr(sys.modules.get(name), "__file__", None)
            if file and file not in files and not is_installed(str(Path(file).absolute())):
                yield f"imports `{name}`, which this process had loaded before"


def unrepeatable(text: str) -> str | None:
    """Return why a text of Python may do something else when it runs again, or None if nothing in it says so.

    >>> unrepeatable("from time import monotonic")
    'depends on the clock: `time.monotonic`'
    >>> unrepeatable("import numpy as np; x = np.random.default_rng(7)")
    """
    tree = _parsed(text)
    if tree is None:
        return "is not read as Python"
    names = dict(_imported_names(tree))
    for node in ast.walk(tree):
        for name in _references(node, names):
            if prefix := next((p for p in _UNREPEATABLE if f"{name}.".startswith(f"{p}.")), None):
                return f"depends on {_UNREPEATABLE[prefix]}: `{name}`"
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            called = next(iter(_references(node.func, names)), "")
            if called.startswith("numpy.random.") and called.endswith(_GENERATORS):
                return f"depends on unseeded numbers: `{called}()`"
    return None


def _imported_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each name that an import statement binds, with the full name of the object that it refers to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (first, first)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _references(node: ast.AST, names: dict[str, str]) -> list[str]:
    """Return the full names that a node refers to."""
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom(module=str(module), level=0):
            return [f"{module}.{alias.name}" for alias in node.names]
        case ast.Name():
            return [names.get(node.id, node.id)] if node.id in names or node.id in _UNREPEATABLE else []
        case ast.Attribute():
            return [f"{value}.{node.attr}" for value in _references(node.value, names)]
        case _:
            return []


def _imported(text: str) -> Iterator[str]:
    """Yield the full names of the modules that a text of Python may import."""
    for node in ast.walk(_parsed(text) or ast.Module([], [])):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
