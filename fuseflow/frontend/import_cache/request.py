"""A request to the front end, as one digest: the model file, its data and options, and the installation that imports it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from fuseflow.frontend.import_cache.installation import describe_installation, importable_names
from fuseflow.frontend.model_spec import ModelSpec

_SCHEMA = 3
"""The version of the form of requests and entries."""
_MOST_NAMES = 10_000
"""The most files in a data directory. With more, looking for changes would take longer than the import."""


def request_digest(spec: ModelSpec) -> str | None:
    """Return the digest of the request for a model file. Return None if an option is a value that only this process knows, or if the data
    directory has too many files.

    The directory from which the file is named is part of the request, because messages and locations hold the name as it was given, and a
    model may open a file by a relative name.
    """
    options = dict(spec.options or {})
    if not all(value is None or isinstance(value, bool | int | float | str) for value in options.values()):
        return None
    data_files = [] if spec.data_dir is None else _names_below(str(spec.data_dir))
    if data_files is None:
        return None
    request = {
        "schema": _SCHEMA,
        "model": str(spec.model),
        "directory": os.getcwd(),
        "data": spec.data,
        "data_dir": None if spec.data_dir is None else str(spec.data_dir),
        "formats": dict(spec.formats or {}),
        "options": options,
        "seed": spec.seed,
        "sparsity": _sparsity(spec),
        "data_files": data_files,
        "beside": importable_names(str(Path(str(spec.model)).resolve().parent)),
        "installation": describe_installation(),
    }
    return hashlib.sha256(json.dumps(request).encode("utf-8", "surrogateescape")).hexdigest()


def _sparsity(spec: ModelSpec) -> str | None:
    """Return the sparsity of a request: the text of a spec, or the digest of a directory of sparse weights."""
    if isinstance(spec.sparsity, Path):
        contents = [(path.name, path.read_bytes()) for path in sorted(spec.sparsity.glob("*")) if path.is_file()]
        return hashlib.sha256(repr([(name, hashlib.sha256(c).hexdigest()) for name, c in contents]).encode()).hexdigest()
    return spec.sparsity.to_yaml() if spec.sparsity else None


def _names_below(directory: str) -> list[str] | None:
    """Return the names of all files below a directory: a file that is added can be read instead of another one. Return None if
    there are too many."""
    names: list[str] = []
    for folder, folders, files in os.walk(directory):
        folders.sort()
        names += [os.path.join(folder, name) for name in sorted(files)]
        if len(names) > _MOST_NAMES:
            return None
    return names
