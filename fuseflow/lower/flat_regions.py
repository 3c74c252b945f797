"""Regions that compute each value from values at the same place of one tensor: they need no coordinates, and run on vectors.

next_V[i, j] = 0.9 * V[i, j] + G[i, j]        V, G and next_V like W, which stores 2,339 entries
->  next_V[i] = 0.9 * V[i] + G[i]             on vectors of 2,339 values
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fuseflow.einsum.nodes import Access, Einsum, Expr, Keep, Program, Reduce, TensorType, map_children, walk
from fuseflow.einsum.verify import Extents
from fuseflow.lower.state import LoweringState, RegionRequest
from fuseflow.tensors import Format


@dataclass(frozen=True, slots=True)
class FlatRegion:
    """A region on vectors: the program with its statements, the types of the tensors in memory, and the extents of its indices.
    `shared` has the types that the tensors have which it reads or writes as vectors, by name."""

    program: Program
    stored: Mapping[str, TensorType]
    extents: Extents
    shared: Mapping[str, TensorType]


def flat_region(state: LoweringState, request: RegionRequest) -> FlatRegion | None:
    """Return a region on vectors, or None if it cannot run on vectors: then coordinates decide what it computes, or are part of what
    the user asks for. The number of entries must be known."""
    partitioned, types = state.partitioned, state.declared
    einsums = [partitioned.program.defined[name] for name in request.einsums]
    root = types[einsums[0].name].like if einsums else ""
    if root not in state.entries or request.order or types[root].block or partitioned.schedule.iteration != "factored":
        return None
    lanes = {index.rpartition(".")[2] for index, _ in partitioned.schedule.parallel}
    if not all(_is_flat(e, root, types) and lanes.isdisjoint(e.indices[1:]) for e in einsums):
        return None
    size = state.entries[root]
    shared = {name: t for name, t in {**types, **state.stored}.items() if root in (name, t.like)}
    vectors = {name: replace(t, shape=(size,), format=Format.dense(1), like=root) for name, t in shared.items()}
    flat = {e.name: replace(e, indices=e.indices[:1], body=_on_vectors(e.body)) for e in einsums}
    program = partitioned.program
    return FlatRegion(
        replace(
            program,
            tensors=tuple([vectors.get(t.name, t) for t in program.tensors]),
            einsums=tuple([flat.get(e.name, e) for e in program.einsums]),
        ),
        {name: vectors.get(name, t) for name, t in state.stored.items()},
        {**partitioned.extents, **{e.name: {str(e.indices[0]): size} for e in einsums}},
        shared,
    )


def _is_flat(einsum: Einsum, root: str, types: Mapping[str, TensorType]) -> bool:
    """Return whether a statement gives a result at the places of a tensor from values at the same places, and from scalars."""
    own = einsum.indices
    if einsum.order or types[einsum.name].like != root or not all(isinstance(index, str) for index in own):
        return False
    if any(isinstance(node, Reduce | Keep) for node in walk(einsum.body)):
        return False
    return all(not a.indices or (a.indices == own and root in (a.tensor, types[a.tensor].like)) for a in einsum.accesses)


def _on_vectors(node: Expr) -> Expr:
    return replace(node, indices=node.indices[:1]) if isinstance(node, Access) else map_children(_on_vectors, node)
