"""What regions are made of: module paths, and Einsums that no region may hold with others."""

from __future__ import annotations

from fuseflow.einsum.nodes import Index, Program, Split, accesses
from fuseflow.einsum.verify import extents


def module_paths(program: Program) -> tuple[str, ...]:
    """Every module path of the program, parents included, in order of appearance."""
    paths = (e.location.path.split(".") for e in program.einsums if e.location.path)
    return tuple(dict.fromkeys(".".join(path[:n]) for path in paths for n in range(1, len(path) + 1)))


def inside(path: str, module: str) -> bool:
    """Whether a module path is `module` or lies in it; everything lies in the model itself, ''."""
    return not module or path == module or path.startswith(module + ".")


def reshapes(program: Program) -> frozenset[str]:
    """Einsums that see a dimension as two indices. Where one of the two has a single value, that is only another name."""
    sizes = extents(program)

    def splits(einsum: str, indices: tuple[Index, ...]) -> bool:
        return any(isinstance(i, Split) and i.size > 1 and sizes[einsum][i.outer] > 1 for i in indices)

    return frozenset(
        e.name for e in program.einsums if splits(e.name, e.indices) or any(splits(e.name, a.indices) for a in accesses(e.body))
    )
