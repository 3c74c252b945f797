"""Module paths, and the Einsums that no region may have together with others."""

from __future__ import annotations

from collections.abc import Collection

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.reshapes import regroupings


def module_paths(program: Program) -> tuple[str, ...]:
    """Return every module path of the program, parents included, in order of appearance."""
    paths = (e.location.path.split(".") for e in program.einsums if e.location.path)
    return tuple(dict.fromkeys(".".join(path[:n]) for path in paths for n in range(1, len(path) + 1)))


def in_module(path: str, module: str) -> bool:
    """Return whether a module path is `module` or inside of it; everything is inside of the model itself, ''."""
    return not module or path == module or path.startswith(module + ".")


def lone_einsums(program: Program, kept: Collection[str]) -> frozenset[str]:
    """Return the names of the Einsums that must be alone in a region: they reshape, or keep entries of a whole result."""
    return reshape_einsums(program, kept) | {e.name for e in program.einsums if e.materializes}


def reshape_einsums(program: Program, kept: Collection[str]) -> frozenset[str]:
    """Return the names of the Einsums that reshape: they read a dimension as two indices. Dimensions that are put together only
    to be taken apart again (a batch and its heads, for a product of matrices) do not count, unless the tensor that has them
    together is among those `kept` as they are."""
    return frozenset(e.name for e in program.einsums if e.reshapes) - regroupings(program, kept)
