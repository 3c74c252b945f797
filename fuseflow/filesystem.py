"""Reading and writing the user's files. A file is written in one step, so a reader sees the old file or the new one, never half of it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fuseflow.errors import FileError


def read_bytes(path: str | Path, kind: str = "") -> bytes:
    """Return the bytes of a file. Raise `FileError` if it cannot be read; the message calls the file `kind`, such as "the model file"."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {f'{kind} `{path}`'.strip()}: {error.strerror}") from error


def read_text(path: str | Path, kind: str = "") -> str:
    """Return the UTF-8 text of a file. Raise `FileError` if it cannot be read; the message calls the file `kind`."""
    name = f"{kind} `{path}`".strip()
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FileError(f"cannot read {name}: it is not UTF-8 text") from error


@contextmanager
def replace_file(path: str | Path) -> Iterator[Path]:
    """Give a temporary file name that replaces `path` at the end of the block.

    The directory of `path` is created if it does not exist. If the block fails, the temporary file is removed. A link stays and its
    target is replaced; a device or a pipe is written to. Raise `FileError` where the file cannot be written.
    """
    destination, target = Path(path), _target(path)
    try:
        if destination.exists() and not (destination.is_file() or destination.is_dir()):
            with tempfile.TemporaryDirectory() as folder:
                yield Path(folder) / "content"
                destination.write_bytes((Path(folder) / "content").read_bytes())
            return
        temporary = _temporary_name(target)
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
    """Give an empty temporary directory that replaces `path` at the end of the block. If the block fails, it is removed.

    The block writes a JSON file called `manifest` into the directory, whose key `files` lists the files that it wrote. A directory is
    replaced only if it holds no file that its manifest does not list. Raise `FileError` where the directory cannot or must not be written.
    """
    target = _target(path)
    temporary = _temporary_name(target)
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
    """Return the path of every file below a directory, relative to it, in alphabetical order."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_symlink() or not p.is_dir())


def refuse_foreign_files(path: Path, manifest: str) -> None:
    """Raise `FileError` if replacing the directory `path` would lose a file that its `manifest` does not list."""
    if not path.exists():
        return
    if not path.is_dir():
        raise FileError(f"`{path}` is a file, not a directory")
    if not (path / manifest).is_file() and os.listdir(path):
        raise FileError(f"`{path}` is not empty and holds no `{manifest}` of an earlier run", hint="name a new directory")
    if foreign := sorted(set(list_files(path)) - _manifest_files(path / manifest)):
        hint = "move it elsewhere, or name a new directory"
        raise FileError(f"`{path}` would be replaced, but its `{foreign[0]}` is not from an earlier run", hint=hint)
    if Path.cwd().is_relative_to(_target(path)):
        raise FileError(f"`{path}` would be replaced, and is where you are", hint="change to another directory")


def _manifest_files(manifest: Path) -> set[str]:
    try:
        return {manifest.name, *json.loads(manifest.read_text(encoding="utf-8"))["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _target(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


def _temporary_name(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}")


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in one step. Raise `FileError` where it cannot be written."""
    with replace_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
