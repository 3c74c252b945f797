"""The version of fuseflow, and the digest of its sources: other sources may compute other results."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
_PRODUCTS = frozenset({"__pycache__", "objects"})
"""Folders of products of the sources: modules that Python compiled, and kernels. They do not change a result."""


def package_version() -> str:
    """Return the version of fuseflow. The package has it, which no room imports: it exports names of all rooms."""
    version: str = sys.modules["fuseflow"].__version__
    return version


@cache
def package_digest() -> str:
    """Return a digest of the source files of this package, without what is made of them: bytecode and compiled kernels."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(PACKAGE):
        folders[:] = sorted(set(folders) - _PRODUCTS)
        for name in sorted(files):
            digest.update(f"{folder[len(str(PACKAGE)) :]}/{name}\0".encode())
            with open(os.path.join(folder, name), "rb", buffering=0) as file:  # there are hundreds
                digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()
