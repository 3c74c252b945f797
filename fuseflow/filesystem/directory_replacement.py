"""Directories of results. One appears in one step, and takes the place of an earlier one only if nothing of somebody else is in there."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from fuseflow.errors import FileError
from fuseflow.filesystem.replacement import is_leftover, leftovers, real_path, temporary_name

ASIDE = ".old"
"""The end of the name of a directory that is on its way from one name to the other."""
_EXCHANGE = 2  # RENAME_EXCHANGE of linux/fs.h
_HERE = -100  # AT_FDCWD: a path is relative to the current directory
_MISSING = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""The error numbers with which a kernel or file system says that it cannot exchange two files."""
_HINT = "move it elsewhere, or name a new directory"


def exchange(one: Path, other: Path) -> None:
    """Give two directories each other's name. Raise `OSError` where that fails.

    Linux does it in one step. Where the system or the file system cannot, it takes three: a process that is killed in between leaves no
    `other`, and its content has the name of `one`, with `.old` behind it.
    """
    rename = _renameat2()
    if rename is not None:
        if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
            return
        if (number := ctypes.get_errno()) not in _MISSING:
            raise OSError(number, os.strerror(number), str(one))
    aside = one.with_name(one.name + ASIDE)
    other.rename(aside)
    one.rename(other)
    aside.rename(one)


@cache
def _renameat2() -> Any:
    """Return the function of the C library, or None if it has none."""
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return function


@contextmanager
def replace_directory(path: str | Path, manifest: str) -> Iterator[Path]:
    """Yield an empty temporary directory that replaces `path` at the end of the block. If the block fails, it is removed.

    The block writes a JSON file called `manifest` into the directory, whose key `files` lists the files that it wrote. A
    directory is replaced only if it holds no file that its manifest does not list. This is checked before the block, and again
    when the two have been exchanged. If somebody put a file there meanwhile, they change back, and the new directory stays beside
    the old one under another name. Raise `FileError` where the directory cannot or must not be written.
    """
    target = real_path(path)
    temporary = temporary_name(target)
    try:
        remove_leftovers(target, manifest)
        refuse_foreign_files(Path(path), manifest)
        temporary.mkdir(parents=True)
        try:
            yield temporary
            _put_in_place(temporary, target, manifest)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise FileError(f"cannot write `{path}`: {error.strerror or error}") from error


def _put_in_place(temporary: Path, target: Path, manifest: str) -> None:
    """Give a new directory the name `target`, and remove the old one."""
    try:
        temporary.rename(target)  # of a directory that has files in it, the system refuses that
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    exchange(temporary, target)
    if foreign := _foreign_files(temporary, manifest):
        exchange(temporary, target)
        beside = _free_name(target)
        temporary.rename(beside)
        message = f"`{target}` was not replaced: `{foreign[0]}` was put there meanwhile"
        raise FileError(message, notes=(f"the new result is in `{beside}`",), hint=_HINT)
    _remove_listed(temporary, manifest)


def _free_name(target: Path) -> Path:
    number, beside = 1, target.with_name(f"{target.name}.new")
    while beside.exists() or beside.is_symlink():
        number += 1
        beside = target.with_name(f"{target.name}.new-{number}")
    return beside


def remove_leftovers(target: Path, manifest: str) -> None:
    """Remove directories that killed processes left behind. One that was being moved aside gets its name `target` back."""
    for path in leftovers(target):
        if path.name.endswith(ASIDE) and not target.exists():
            path.rename(target)
        elif path.is_dir() and not path.is_symlink():
            _remove_listed(path, manifest)


def _remove_listed(folder: Path, manifest: str) -> None:
    """Remove a directory if it has only files that its manifest lists. One without a manifest is an incomplete result."""
    if not (folder / manifest).is_file():
        shutil.rmtree(folder, ignore_errors=True)
        return
    with suppress(OSError):
        if not _foreign_files(folder, manifest):
            shutil.rmtree(folder, ignore_errors=True)


def list_files(folder: Path) -> list[str]:
    """Return the path of every file below a directory, relative to it, in alphabetical order."""
    paths = list[Path]()
    for inside, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(inside, name))]
        paths += [Path(inside, name) for name in (*files, *links)]
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def refuse_foreign_files(path: Path, manifest: str) -> None:
    """Raise `FileError` if replacing the directory `path` would lose a file that its `manifest` does not list."""
    if not path.exists():
        return
    if not path.is_dir():
        raise FileError(f"`{path}` is a file, not a directory")
    if not (path / manifest).is_file() and os.listdir(path):
        raise FileError(f"`{path}` is not empty and holds no `{manifest}` of an earlier run", hint="name a new directory")
    # It may be replaced after its manifest was read and before its files are listed. So a second look decides.
    if (foreign := _foreign_files(path, manifest)) and (foreign := _foreign_files(path, manifest)):
        raise FileError(f"`{path}` would be replaced, but its `{foreign[0]}` is not from an earlier run", hint=_HINT)
    if Path.cwd().is_relative_to(real_path(path)):
        raise FileError(f"`{path}` would be replaced, and is where you are", hint="change to another directory")


def _foreign_files(folder: Path, manifest: str) -> list[str]:
    """Return the files in a directory that its manifest does not list, but for temporary ones of processes that were killed."""
    listed = {manifest}
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        listed |= {*json.loads((folder / manifest).read_text(encoding="utf-8"))["files"]}
    return [name for name in list_files(folder) if name not in listed and not is_leftover(name.rpartition("/")[2])]
