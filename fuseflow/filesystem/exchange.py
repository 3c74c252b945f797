"""The exchange of two directories in one step, so that at every moment one of them is there."""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache
from pathlib import Path
from typing import Any

ASIDE = ".old"
"""The end of the name of a directory that is on its way from one name to the other."""
_EXCHANGE = 2  # RENAME_EXCHANGE of linux/fs.h
_HERE = -100  # AT_FDCWD: a path is relative to the current directory
_MISSING = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""The error numbers with which a kernel or file system says that it cannot exchange two files."""


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
