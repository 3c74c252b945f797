"""Reshapes are taken out of a program: dimensions that are split anywhere are split everywhere.

    P[i, e] = sum(k) X[i, k] * W[k, e]              W.split[k, h, d] = W[k, h*64 + d]
    Q[i, h, d] = P[i, h*64 + d]                ->   P[i, h, d] = sum(k) X[i, k] * W.split[k, h, d]
    S[h, i, j] = sum(d) Q[i, h, d] * ...            S[h, i, j] = sum(d) P[i, h, d] * ...

A reshape is then only another name for its operand, and vanishes. The statements with a split that remain are views: an input
seen in parts, an output seen whole, and a tensor that cannot be in parts everywhere (`dimensions`). They compute nothing: each
says how the values of one stored tensor are seen.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from fuseflow.einsum.dimension_unification import Dimensions, RegionSplit, axes_of, split_in_region, unify_dimensions
from fuseflow.einsum.index_names import fresh_indices, unused_name
from fuseflow.einsum.nodes import (
    Access,
    Einsum,
    Expr,
    Index,
    Keep,
    Location,
    Program,
    Reduce,
    Split,
    TensorType,
    index_names,
    map_children,
)
from fuseflow.tensors import Format

Parts = tuple[tuple[int, ...], ...]
"""The extents of the parts of each dimension, in which a tensor is seen."""


@dataclass(frozen=True, slots=True)
class ReshapeElimination:
    """A program without reshapes, except for its `views`.

    `statements` gives, for an Einsum whose own name became the name of a view, the statement that computes it. `aliases` gives,
    for an eliminated reshape, the tensor that it was another name for. `barriers` are the reshapes of results that cannot be in
    parts everywhere. `renames` are the reshapes that name a tensor once more, because they are outputs. `regroupings` are the
    reshapes of dimensions that no input and no output has whole: they are put together only to be taken apart again.
    """

    program: Program
    views: frozenset[str] = frozenset()
    statements: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    barriers: frozenset[str] = frozenset()
    renames: frozenset[str] = frozenset()
    regroupings: frozenset[str] = frozenset()

    def statement(self, einsum: str) -> str:
        """Return the statement that computes an Einsum of the original program."""
        return self.aliases.get(einsum, self.statements.get(einsum, einsum))

    def members(self, einsums: Iterable[str]) -> tuple[str, ...]:
        """Return the statements that compute these Einsums of the original program."""
        return tuple(self.statements.get(e, e) for e in einsums if e not in self.aliases)


def eliminate_reshapes(program: Program, kept: Collection[str] = (), splits: Sequence[RegionSplit] = ()) -> ReshapeElimination:
    """Carry the splits of a program to everything that shares a dimension with them. Inputs and outputs keep their names and shapes, and
    the tensors in `kept` are stored as they are. `splits` are further ones, each in one region.

    Raises `ProgramError` for a split of a region that cannot be.
    """
    if not splits and not any(einsum.reshapes for einsum in program.einsums):
        return ReshapeElimination(program)
    dims = unify_dimensions(program, frozenset(kept))
    for split in splits:
        dims.own |= split_in_region(program, dims, kept, split)
    return _Refinement(program, frozenset(kept), dims).run()


def regroupings(program: Program, kept: Collection[str] = ()) -> frozenset[str]:
    """Return the `regroupings` of the elimination of the reshapes of a program, without eliminating them."""
    if not any(einsum.reshapes for einsum in program.einsums):
        return frozenset()
    refinement = _Refinement(program, frozenset(kept), unify_dimensions(program, frozenset(kept)))
    refinement.decide()
    return refinement.grouped()


@dataclass(slots=True)
class _Refinement:
    """The elimination of the reshapes of one program, statement by statement. `storage` gives for every tensor its new name and
    the parts in which it is computed, and `view_names` the names of its views in other parts."""

    program: Program
    kept: frozenset[str]
    dims: Dimensions
    storage: dict[str, tuple[str, Parts]] = field(default_factory=dict)
    view_names: dict[tuple[str, Parts], str] = field(default_factory=dict)
    other_names: dict[str, Access] = field(default_factory=dict)
    new_einsums: dict[str, Einsum] = field(default_factory=dict)
    declared: dict[str, TensorType] = field(default_factory=dict)
    views: set[str] = field(default_factory=set)
    barriers: set[str] = field(default_factory=set)
    renames: set[str] = field(default_factory=set)
    used_names: set[str] = field(default_factory=set)

    def decide(self) -> frozenset[str]:
        """Decide in which parts every tensor is computed, and which reshapes are barriers. Return the tensors that are read in other parts
        than they are computed in.
        """
        program = self.program
        self.used_names = {*program.declared, *program.defined}
        self.declared = {t.name: t for t in program.inputs}
        for tensor in program.inputs:
            self.storage[tensor.name] = tensor.name, _whole(tensor.shape)
        for einsum in program.einsums:
            wanted = tuple(self._extents(einsum, index) for index in einsum.indices)
            if wanted != tuple(self.dims.parts((einsum.name, p)) for p in range(len(wanted))):
                self.barriers.add(einsum.name)
            # a result in parts that is also seen whole is renamed
            apart = any(len(parts) > 1 for parts in wanted) and (einsum.name in program.outputs or einsum.name in self.barriers)
            self.storage[einsum.name] = self._fresh(f"{einsum.name}.split") if apart else einsum.name, wanted
        operands_in_other_parts = {
            e.name: {a.tensor for a in e.accesses if self._wanted(e, a) != self.storage[a.tensor][1]} for e in program.einsums
        }
        for einsum in program.einsums:
            if einsum.reshapes and any(name in program.defined for name in operands_in_other_parts[einsum.name]):
                self.barriers.add(einsum.name)
        return frozenset().union(*operands_in_other_parts.values())

    def run(self) -> ReshapeElimination:
        program = self.program
        needed = self.decide().union(program.outputs, self.kept)
        for einsum in program.einsums:
            self._statement(einsum, needed)
        for name in program.outputs:
            self._reach(name, _whole(_shape(self.storage[name][1])), program.defined[name].location)
        position = {name: n for n, name in enumerate([*program.declared, *self.declared])}
        tensors = sorted(self.declared.values(), key=lambda t: position[t.name])
        statements = {name: stored_name for name, (stored_name, _) in self.storage.items() if stored_name != name}
        aliases = {name: access.tensor for name, access in self.other_names.items()}
        rewritten = replace(program, tensors=tuple(tensors), einsums=tuple(self.new_einsums.values()))
        return ReshapeElimination(
            rewritten,
            frozenset(self.views),
            statements,
            aliases,
            frozenset(self.barriers),
            frozenset(self.renames),
            self.grouped(),
        )

    def grouped(self) -> frozenset[str]:
        """Return the reshapes of dimensions that only results between the inputs and the outputs have whole."""
        boundary = [(t.name, len(t.shape)) for t in self.program.inputs]
        boundary += [(name, len(self.program.defined[name].indices)) for name in self.program.outputs]
        boundary_dimensions = {self.dims.find((name, position)) for name, rank in boundary for position in range(rank)}
        reshapes = (e for e in self.program.einsums if e.reshapes and e.name not in self.barriers)
        split_axes = {e.name: [axis for axis, index in axes_of(e) if isinstance(index, Split)] for e in reshapes}
        return frozenset(name for name, axes in split_axes.items() if boundary_dimensions.isdisjoint(map(self.dims.find, axes)))

    def _statement(self, einsum: Einsum, needed: frozenset[str]) -> None:
        """Write an Einsum with all indices in parts. If it is only another name of its operand, note that instead, unless it is
        `needed`: in other parts, as an output, or as it is stored."""
        name, parts = self.storage[einsum.name]
        scope = _Scope(einsum, self.dims)
        body, indices = self._body(einsum, einsum.body, scope), scope.all(einsum.indices)
        is_alias = einsum.reshapes and isinstance(body, Access) and sorted(body.names) == sorted(indices)
        if is_alias and isinstance(body, Access) and einsum.name not in needed:
            self.other_names[einsum.name] = Access(body.tensor, tuple(str(indices.index(v)) for v in body.names))
            return
        if is_alias:
            self.renames.add(name)
        self.new_einsums[name] = Einsum(name, indices, body, einsum.location, scope.all(einsum.order))
        declared = self.program.declared.get(einsum.name)
        if declared is not None:
            self.declared[name] = replace(declared, name=name, shape=_flat(parts), format=_in_parts(declared.format, parts))

    def _body(self, einsum: Einsum, node: Expr, scope: _Scope) -> Expr:
        if isinstance(node, Access):
            indices = scope.all(node.indices)
            if node.tensor in self.other_names:
                original = self.other_names[node.tensor]
                return Access(original.tensor, tuple(indices[int(v)] for v in original.names))
            return Access(self._reach(node.tensor, self._wanted(einsum, node), einsum.location), indices)
        if isinstance(node, Reduce | Keep):  # the indices of a `keep` stay whole (`dimensions`)
            node = replace(node, over=scope.all(node.over))
        return map_children(lambda child: self._body(einsum, child, scope), node)

    def _wanted(self, einsum: Einsum, access: Access) -> Parts:
        return tuple(self._extents(einsum, index) for index in access.indices)

    def _extents(self, einsum: Einsum, index: Index) -> tuple[int, ...]:
        return tuple(size for v in index_names((index,)) for size in self.dims.parts((einsum.name, v)))

    def _reach(self, tensor: str, wanted: Parts, location: Location) -> str:
        """Return the name under which a tensor exists in the wanted parts; views are added where they are missing."""
        name, parts = self.storage[tensor]
        if parts == wanted:
            return name
        steps = list(_merges(parts, wanted))
        for step in (*steps, *_divisions((parts, *steps)[-1], wanted)):
            if (tensor, step) not in self.view_names:
                self.view_names[tensor, step] = self._view(tensor, name, parts, step, location)
            name, parts = self.view_names[tensor, step], step
        return name

    def _view(self, tensor: str, source: str, source_parts: Parts, view_parts: Parts, location: Location) -> str:
        """Add a view of `source` in other parts, which differ by one split in each dimension, and return its name."""
        whole = view_parts == _whole(_shape(view_parts))
        name = tensor if whole and tensor != source and tensor not in self.new_einsums else ""
        name = name or self._fresh(f"{tensor}.{'merge' if len(_flat(view_parts)) < len(_flat(source_parts)) else 'split'}")
        left, right, taken = list[Index](), list[Index](), set[str]()
        for position, (source_pieces, view_pieces) in enumerate(zip(source_parts, view_parts, strict=True)):
            finest = max(source_pieces, view_pieces, key=len)
            labels = self.dims.labels((tensor, position)) if finest == self.dims.parts((tensor, position)) else ()
            names = tuple(_unused(labels[n : n + 1], taken) for n in range(len(finest)))
            left += _joined(names, finest, view_pieces)
            right += _joined(names, finest, source_pieces)
        self.new_einsums[name] = Einsum(name, tuple(left), Access(source, tuple(right)), location)
        self.views.add(name)
        if name == tensor and tensor in self.program.declared:
            self.declared[tensor] = self.program.declared[tensor]
        return name

    def _fresh(self, wanted: str) -> str:
        name = unused_name(wanted, self.used_names)
        self.used_names.add(name)
        return name


class _Scope:
    """The indices of one Einsum, each with the indices of its parts."""

    def __init__(self, einsum: Einsum, dims: Dimensions) -> None:
        used = index_names((*einsum.indices, *(i for a in einsum.accesses for i in a.indices)))
        taken = set(used)
        self._parts: dict[str, tuple[str, ...]] = {}
        for v in dict.fromkeys(used):
            pieces = len(dims.parts((einsum.name, v)))
            labels = dims.labels((einsum.name, v)) if pieces > 1 else ()
            self._parts[v] = (v,) if pieces == 1 else tuple(_unused(labels[n : n + 1], taken) for n in range(pieces))

    def all(self, indices: tuple[Index, ...]) -> tuple[str, ...]:
        return tuple(part for v in index_names(indices) for part in self._parts[v])


def _unused(wanted: tuple[str, ...], taken: set[str]) -> str:
    """Return the wanted name if it is not in `taken`, else one like it, or the next letter; and add it to `taken`."""
    proposals = (w if n == 0 else f"{w}{n}" for n in count() for w in wanted) if wanted else fresh_indices()
    name = next(v for v in proposals if v not in taken)
    taken.add(name)
    return name


def _whole(shape: tuple[int, ...]) -> Parts:
    return tuple((size,) for size in shape)


def _shape(parts: Parts) -> tuple[int, ...]:
    return tuple(math.prod(pieces) for pieces in parts)


def _flat(parts: Parts) -> tuple[int, ...]:
    return tuple(size for pieces in parts for size in pieces)


def _merges(parts: Parts, wanted: Parts) -> Iterator[Parts]:
    """Yield the steps in which dimensions that are wanted in other parts become whole; each step puts the innermost two parts together."""
    while any(present != target and len(present) > 1 for present, target in zip(parts, wanted, strict=True)):
        parts = tuple(
            (*present[:-2], present[-2] * present[-1]) if present != target and len(present) > 1 else present
            for present, target in zip(parts, wanted, strict=True)
        )
        yield parts


def _divisions(parts: Parts, wanted: Parts) -> Iterator[Parts]:
    """Yield the steps in which whole dimensions are split into their `wanted` parts, the innermost part first."""
    is_split = tuple(present != target for present, target in zip(parts, wanted, strict=True))
    most = max((len(target) for target, split in zip(wanted, is_split, strict=True) if split), default=0)
    for pieces in range(2, most + 1):
        yield tuple(
            (math.prod(target[: 1 - pieces]), *target[1 - pieces :]) if split and pieces < len(target) else target
            for split, target in zip(is_split, wanted, strict=True)
        )


def _joined(names: tuple[str, ...], finest: tuple[int, ...], parts: tuple[int, ...]) -> Iterator[Index]:
    """Yield the indices of a dimension that is seen in `parts`: its finest parts, with two of them joined if there are fewer."""
    if parts == finest:
        yield from names
        return
    n = next(n for n in range(len(parts)) if (*finest[:n], finest[n] * finest[n + 1], *finest[n + 2 :]) == parts)
    yield from names[:n]
    yield Split(names[n], names[n + 1], finest[n + 1])
    yield from names[n + 2 :]


def _in_parts(format: Format | None, parts: Parts) -> Format | None:
    """Return the same storage with dense levels taken apart, or None if a format cannot express that."""
    if format is None:
        return None
    levels, order, first = list[str](), list[int](), [sum(map(len, parts[:d])) for d in range(len(parts))]
    for level, d in zip(format.levels, format.order, strict=True):
        if len(parts[d]) > 1 and not level.full:
            return None
        levels += [level.text] * len(parts[d])
        order += range(first[d], first[d] + len(parts[d]))
    return replace(Format.of(*levels, order=tuple(order)), complete=format.complete)
