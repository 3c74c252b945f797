"""The digest of the sources of fuseflow: other sources may compute other results."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
_PRODUCTS = frozenset({"__pycache__", "objects"})
"""Folders of products of the sources: modules that Python compiled, and kernels. They do not change a result."""


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
