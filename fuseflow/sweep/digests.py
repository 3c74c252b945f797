"""Digests of the files that a result depends on besides its settings. They do not depend on the folders of the files."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import fuseflow
from fuseflow.errors import DataError, FileError
from fuseflow.filesystem import read_bytes, read_text
from fuseflow.frontend.data import FILE_READERS, locate_files
from fuseflow.frontend.datasets.spec_options import names_file, split_spec
from fuseflow.frontend.factory import Factory
from fuseflow.package_digest import package_digest
from fuseflow.yaml_text import read_yaml


def code_version() -> str:
    """Return the version of fuseflow with a digest of its sources. Rows that other sources made may hold other numbers."""
    return f"{fuseflow.__version__}+{package_digest()[:12]}"


def content_digest(model: Path, tensors: Path | None, data: str | None, data_dir: Path | None) -> str:
    """Return the digest of all that a model reads: its file, the modules beside it that it imports, its tensors and the files of its data.

    Raises `FileError` for a model or a list of tensors that cannot be read.
    """
    files = list(_model_files(model))
    if tensors is not None:
        files += _tensor_files(tensors)
    name = split_spec(data or "")[0]
    if names_file(name):
        files += [Path(name)] * Path(name).is_file()  # the error of a missing one is raised where it is loaded
    if data_dir is not None and name in FILE_READERS:
        files += _data_files(name, data_dir)
    return _files_digest(files)


def _model_files(model: Path) -> Iterator[Path]:
    """Yield the file of a model, and the modules in its folder that it imports, directly or through other modules."""
    factory = Factory.parse(str(model))
    files = [model if factory is None else factory.file]
    for path in files:
        yield path
        if path.suffix == ".py":
            files += [file for file in _imported_files(path) if file not in files]


def _imported_files(path: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(read_bytes(path, "the model"))
    except (SyntaxError, ValueError):  # the error is raised where the model is run
        return
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            first = path.parent / name.partition(".")[0]
            if first.with_suffix(".py").is_file():
                yield first.with_suffix(".py")
            elif name and (first / "__init__.py").is_file():
                yield from sorted(first.rglob("*.py"))


def _tensor_files(tensors: Path) -> Iterator[Path]:
    yield tensors
    text = read_text(tensors, "the list of tensors")
    try:
        entries = read_yaml(text, str(tensors), FileError).content
    except FileError:  # it is raised where the list is loaded
        return
    for entry in entries.values() if isinstance(entries, dict) else ():
        if isinstance(entry, dict) and isinstance(entry.get("path"), str):
            path = tensors.parent / entry["path"]
            yield from sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path] * path.is_file()


def _data_files(name: str, data_dir: Path) -> Iterable[Path]:
    try:
        folder = locate_files(name, data_dir)
    except DataError:  # the error is raised where it is loaded
        return ()
    return sorted(p for p in folder.rglob("*") if p.is_file())


def _files_digest(files: Iterable[Path]) -> str:
    """Return a digest of the names and contents of files, without their folders."""
    total = hashlib.sha256()
    for path in files:
        total.update(f"{path.name}\0{_file_digest(path)}\n".encode())
    return total.hexdigest()


def _file_digest(path: Path) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()
