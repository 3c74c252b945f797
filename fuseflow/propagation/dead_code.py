"""The use of an analysis: a program without what it does not need, which computes the same.

Dead entries of inputs are not stored. Statements that no output reads go. Coordinates that are of no use are cut out of all tensors, and
put back into outputs:

    H[i, j] = sum(k) X[i, k] * W1[k, j]        where column 3 of W1 is pruned, and so row 3 of W2 is not needed,
    Y[i, l] = sum(j) H[i, j] * W2[j, l]        coordinate 3 of j goes out of W1, H and W2

Dimensions that share an index are one class, and lose the same coordinates. A coordinate goes if it is idle in every tensor of its class,
and if every reduction over the class adds only its identity there, or something that is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from fuseflow.einsum.dimension_unification import Axis, Dimensions, axes_of
from fuseflow.einsum.nodes import (
    Access,
    Apply,
    Einsum,
    Expr,
    Keep,
    Program,
    Reduce,
    TensorType,
    free_indices,
    index_names,
    map_children,
    walk,
)
from fuseflow.einsum.sparse_arrays import LabeledArray
from fuseflow.einsum.verify import extents, verify
from fuseflow.keep_rules import Largest
from fuseflow.ops import reducer
from fuseflow.propagation.analysis import Analysis, TensorMask
from fuseflow.propagation.expressions import Expressions, alive, product_factors
from fuseflow.propagation.labeled import EVERYWHERE, Bits, Entries, any_over, any_product, read
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Ints
from fuseflow.tensors.pack import from_coordinates
from fuseflow.tensors.restriction import restrict

TensorAxis: TypeAlias = tuple[str, int]
"""A dimension of a tensor: its name and the number of the dimension."""


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """The coordinates that stay, for each dimension that loses some. They ascend."""

    stay: Mapping[TensorAxis, Ints]

    def restricted(self, name: str, tensor: Tensor) -> Tensor:
        """Return a tensor without the coordinates that are cut out."""
        for mode, coordinates in self._of(name, len(tensor.shape)):
            tensor = restrict(tensor, mode, coordinates)
        return tensor

    def restored(self, name: str, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Return a tensor of the full shape from its elements that are left after the cuts. All other elements have the implicit value."""
        coordinates, values = tensor.entries()
        for mode, stay in self._of(name, len(shape)):
            coordinates[mode] = stay[coordinates[mode]]
        return from_coordinates(shape, coordinates, values, tensor.format, tensor.fill, tensor.type)

    def shape(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a tensor after the cuts."""
        stay = dict(self._of(name, len(shape)))
        return tuple(len(stay[mode]) if mode in stay else size for mode, size in enumerate(shape))

    def _of(self, name: str, rank: int) -> list[tuple[int, Ints]]:
        return [(mode, self.stay[name, mode]) for mode in range(rank) if (name, mode) in self.stay]


@dataclass(frozen=True, slots=True, eq=False)
class Propagation:
    """A program without what it does not need, with its tensors.

    `cuts` has the coordinates that stay, and `shapes` the shapes of the outputs before the cuts.
    """

    program: Program
    tensors: Mapping[str, Tensor]
    cuts: Cuts = field(default_factory=lambda: Cuts({}))
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def restored(self, outputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return outputs in the shapes that they had. Elements that were cut out have the implicit value."""
        return {
            name: tensor if tensor.shape == self.shapes[name] else self.cuts.restored(name, tensor, self.shapes[name])
            for name, tensor in outputs.items()
        }


def propagate(program: Program, tensors: Mapping[str, Tensor], analysis: Analysis) -> Propagation:
    """Return a program and its tensors without the elements that an analysis of the program calls dead or idle."""
    types = analysis.program.declared
    absent = frozenset(name for name, tensor in types.items() if tensor.fill == 0 and not (~analysis.dead_mask(name)).count())
    without = replace(program, einsums=tuple(replace(e, body=_without(e.body, absent)) for e in program.einsums))
    simpler = replace(without.computing(program.outputs), outputs=program.outputs)
    cut = cuts(analysis)
    declared = tuple(replace(tensor, shape=cut.shape(tensor.name, tensor.shape)) for tensor in simpler.tensors)
    smaller = replace(simpler, tensors=declared)
    verify(smaller)
    stored = {name: _stored(tensor, analysis.dead_mask(name)) for name, tensor in tensors.items() if name in smaller.declared}
    remaining = {name: cut.restricted(name, tensor) for name, tensor in stored.items()}
    return Propagation(smaller, remaining, cut, {name: types[name].shape for name in program.outputs})


def _stored(tensor: Tensor, dead: TensorMask) -> Tensor:
    """Return a tensor without its dead entries. A tensor of tiles, or one that stores every element anyway, keeps all."""
    if tensor.tile or tensor.format.all_dense or tensor.format.complete or not dead.count():
        return tensor
    coordinates, values = tensor.entries()
    kept = ~dead.at(coordinates)
    if kept.all():
        return tensor
    return from_coordinates(tensor.shape, coordinates[:, kept], values[kept], tensor.format, tensor.fill, tensor.type)


def _without(node: Expr, absent: frozenset[str]) -> Expr:
    """Return an expression without its summands that read `absent` tensors, which are 0 wherever they are read."""
    node = map_children(lambda child: _without(child, absent), node)
    match node:
        case Apply("add" | "sub", (first, second)) if _is_absent(second, absent) and _has_indices_of(first, second):
            return first
        case Apply("add", (first, second)) if _is_absent(first, absent) and _has_indices_of(second, first):
            return second
    return node


def _has_indices_of(node: Expr, other: Expr) -> bool:
    return set(free_indices(other)) <= set(free_indices(node))


def _is_absent(node: Expr, absent: frozenset[str]) -> bool:
    return isinstance(node, Access) and node.tensor in absent


def cuts(analysis: Analysis) -> Cuts:
    """Return the cuts of a program: the coordinates that stay. At least one of each dimension stays."""
    program, useful = analysis.program, _useful_reductions(analysis)
    stay: dict[TensorAxis, Ints] = {}
    for members in _classes(program.einsums, program.tensors):
        axes = [(name, mode) for name, mode in members if isinstance(mode, int)]
        indices = [(name, index) for name, index in members if isinstance(index, str)]
        extent = program.declared[axes[0][0]].shape[axes[0][1]]
        used = np.zeros(extent, dtype=bool)
        for name, mode in axes:
            used |= (~analysis.idle_mask(name)).along(mode)
        for index in indices:
            used |= useful.get(index, False)
        if extent and not used.all():
            kept = np.flatnonzero(used) if used.any() else np.zeros(1, dtype=np.int64)
            stay |= dict.fromkeys(axes, kept)
    return Cuts({axis: kept for axis, kept in stay.items() if len(kept) < program.declared[axis[0]].shape[axis[1]]})


def _classes(einsums: Iterable[Einsum], tensors: Iterable[TensorType]) -> Iterator[list[Axis]]:
    """Yield the dimensions and indices that must lose the same coordinates, without the ones that cannot lose any."""
    dims, members = Dimensions(), dict[Axis, None]()
    fixed: set[Axis] = {(tensor.name, mode) for tensor in tensors if _is_fixed(tensor) for mode in range(len(tensor.shape))}
    for einsum in einsums:
        for axis, index in axes_of(einsum):
            if isinstance(index, str):
                dims.join(axis, (einsum.name, index))
                members |= {axis: None, (einsum.name, index): None}
            else:  # the coordinate says where in a part of the dimension it stands
                fixed |= {axis, *((einsum.name, name) for name in index_names((index,)))}
        if isinstance(einsum.body, Keep) and isinstance(
            einsum.body.rule, Largest
        ):  # it also compares entries at idle coordinates
            fixed.update((einsum.name, name) for name in einsum.body.over)
    groups: dict[Axis, list[Axis]] = {}
    for member in members:
        groups.setdefault(dims.find(member), []).append(member)
    yield from (group for group in groups.values() if fixed.isdisjoint(group))


def _is_fixed(tensor: TensorType) -> bool:
    """Return whether the coordinates of a tensor may not change: it is in blocks, or has levels that store groups."""
    return bool(tensor.block) or (tensor.format is not None and any(level.pads for level in tensor.format.levels))


def _useful_reductions(analysis: Analysis) -> dict[tuple[str, str], Bits]:
    """Return for each index that an Einsum reduces at which of its coordinates the reductions matter."""
    useful: dict[tuple[str, str], Bits] = {}
    sizes, shapes = extents(analysis.program), {t.name: t.shape for t in analysis.program.tensors}
    for einsum in analysis.program.einsums:
        reductions = [node for node in walk(einsum.body) if isinstance(node, Reduce)]
        if not reductions:
            continue
        expressions = Expressions(analysis.attributes, shapes, sizes[einsum.name])
        left, known = Access(einsum.name, einsum.indices), analysis.attributes[einsum.name]
        if isinstance(known, Entries):
            matters = EVERYWHERE  # elements that are 0 beside the entries must stay 0
        else:
            junk = np.isnan(known) & ~analysis.reached[einsum.name]
            matters = read(left, ~junk, shapes[einsum.name], sizes[einsum.name], False)
        for node in reductions:
            for name in node.over:
                mask = _useful(node, name, expressions, any_over(matters, free_indices(node)))
                useful[einsum.name, name] = useful.get((einsum.name, name), np.asarray(False)) | mask
    return useful


def _useful(node: Reduce, name: str, expressions: Expressions, matters: LabeledArray) -> Bits:
    """Return at which coordinates of the index `name` a reduction folds more than its identity, where its result `matters`."""
    values = [expressions.value(factor) for factor in product_factors(node)]
    masks = [alive(value) for value in values]
    if not values or any(isinstance(value, LabeledArray) and np.isinf(value.array).any() for value in values):
        value, identity = expressions.value(node.body), reducer(node.op).identity
        masks = [EVERYWHERE if isinstance(value, Entries) else value.map(lambda array: ~(array == identity))]
    mask = any_product([matters, *masks], (name,), (), expressions.sizes).over((name,))
    return np.broadcast_to(mask, (expressions.sizes[name],))
