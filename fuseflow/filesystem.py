"""The user's files: read as text, written in one step, so that a reader sees the old file or the new one, never half of it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fuseflow.errors import FileError


def read_bytes(path: str | Path, what: str = "") -> bytes:
    """The content of a file, called `what` in messages; raises `FileError` if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {f'{what} `{path}`'.strip()}: {error.strerror}") from error


def read_text(path: str | Path, what: str = "") -> str:
    """The text of a file, called `what` in messages; raises `FileError` if it cannot be read."""
    name = f"{what} `{path}`".strip()
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FileError(f"cannot read {name}: it is not UTF-8 text") from error


@contextmanager
def replace_file(path: str | Path) -> Iterator[Path]:
    """A temporary name beside `path`, whose directory is made if need be. It replaces `path` at the end of the block; if the
    block fails it is removed. A link stays and its target is replaced; a device or a pipe is written to.
    Raises `FileError` where the file cannot be written."""
    given, target = Path(path), _target(path)
    try:
        if given.exists() and not (given.is_file() or given.is_dir()):
            with tempfile.TemporaryDirectory() as folder:
                yield Path(folder) / "content"
                given.write_bytes((Path(folder) / "content").read_bytes())
            return
        temporary = _beside(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"cannot write `{path}`: {error.strerror or error}") from error


@contextmanager
def replace_directory(path: str | Path, manifest: str) -> Iterator[Path]:
    """An empty directory beside `path` that replaces it at the end of the block; if the block fails it is removed.

    The block leaves a JSON file `manifest` in it whose `files` are those that it wrote; a directory is replaced only if it holds
    nothing else. Raises `FileError` where it cannot be written, or must not be.
    """
    target = _target(path)
    temporary = _beside(target)
    try:
        refuse_foreign_files(Path(path), manifest)
        temporary.mkdir(parents=True)
        try:
            yield temporary
            if target.is_dir():
                shutil.rmtree(target)
            temporary.replace(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise FileError(f"cannot write `{path}`: {error.strerror or error}") from error


def list_files(folder: Path) -> list[str]:
    """Every file in a directory and the directories in it, relative to it."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_symlink() or not p.is_dir())


def refuse_foreign_files(path: Path, manifest: str) -> None:
    """Raise `FileError` if a directory `path` cannot be replaced without losing what somebody else put there."""
    if not path.exists():
        return
    if not path.is_dir():
        raise FileError(f"`{path}` is a file, not a directory")
    if not (path / manifest).is_file() and os.listdir(path):
        raise FileError(f"`{path}` is not empty and holds no `{manifest}` of an earlier run", hint="name a new directory")
    if foreign := sorted(set(list_files(path)) - _listed(path / manifest)):
        hint = "move it elsewhere, or name a new directory"
        raise FileError(f"`{path}` would be replaced, but its `{foreign[0]}` is not from an earlier run", hint=hint)
    if Path.cwd().is_relative_to(_target(path)):
        raise FileError(f"`{path}` would be replaced, and is where you are", hint="change to another directory")


def _listed(manifest: Path) -> set[str]:
    try:
        return {manifest.name, *json.loads(manifest.read_text(encoding="utf-8"))["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _target(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}")


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in one step."""
    with replace_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
