"""A request to the front end, as one digest: the model file, its data and options, and the installation that imports it.

The installation is Python, the installed distributions, and the places where Python looks for modules.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import sysconfig
from functools import cache
from pathlib import Path

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
    """Return the digest of the request for a model file, or None if there is none (`request_of`)."""
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
