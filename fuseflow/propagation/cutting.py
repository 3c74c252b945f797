"""Which coordinates of a program are of no use, and can be cut out of all its tensors.

    H[i, j] = sum(k) X[i, k] * W1[k, j]        where column 3 of W1 is pruned, and so row 3 of W2 is not needed,
    Y[i, l] = sum(j) H[i, j] * W2[j, l]        coordinate 3 of j goes out of W1, H and W2

Dimensions that share an index are one class, and lose the same coordinates. A coordinate goes if it is idle in every tensor of its class,
and if every reduction over the class adds only its identity there, or something that is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fuseflow.einsum.nodes import Access, Einsum, Keep, Reduce, TensorType, free_indices, index_names, walk
from fuseflow.einsum.verify import extents
from fuseflow.ops import reducer
from fuseflow.propagation.analysis import Analysis
from fuseflow.propagation.backward import EVERYWHERE
from fuseflow.propagation.contraction import Mask, any_product
from fuseflow.propagation.entries import Entries
from fuseflow.propagation.forward import Forward, alive, product_factors
from fuseflow.propagation.labeled import Labeled, any_over, read
from fuseflow.propagation.tensor_mask import Bits
from fuseflow.selection import Largest
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Ints
from fuseflow.tensors.pack import from_coordinates
from fuseflow.tensors.restriction import restrict

Axis: TypeAlias = tuple[str, int]
"""A dimension of a tensor: its name and the number of the dimension."""
_Member: TypeAlias = tuple[str, int | str]
"""A dimension of a tensor, or an index of an Einsum by its name."""


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """The coordinates that stay, for each dimension that loses some. They ascend."""

    stay: Mapping[Axis, Ints]

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


def cuts(analysis: Analysis) -> Cuts:
    """Return the cuts of a program: the coordinates that stay. At least one of each dimension stays."""
    program, useful = analysis.program, _useful_reductions(analysis)
    stay: dict[Axis, Ints] = {}
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


def _classes(einsums: Iterable[Einsum], tensors: Iterable[TensorType]) -> Iterator[list[_Member]]:
    """Yield the dimensions and indices that must lose the same coordinates, without the ones that cannot lose any."""
    groups: dict[_Member, list[_Member]] = {}
    fixed = {member for tensor in tensors for member in _fixed_axes(tensor)}

    def join(first: _Member, second: _Member) -> None:
        one, other = groups.setdefault(first, [first]), groups.setdefault(second, [second])
        if one is not other:
            one += other
            groups.update(dict.fromkeys(other, one))

    for einsum in einsums:
        for access in (Access(einsum.name, einsum.indices), *einsum.accesses):
            for mode, index in enumerate(access.indices):
                if isinstance(index, str):
                    join((access.tensor, mode), (einsum.name, index))
                else:  # the coordinate says where in a part of the dimension it stands
                    fixed.add((access.tensor, mode))
                    fixed.update((einsum.name, name) for name in index_names((index,)))
        fixed |= {(einsum.name, name) for name in _compared(einsum)}
    unique = {id(group): group for group in groups.values()}
    for group in unique.values():
        if not fixed.intersection(group):
            yield group


def _fixed_axes(tensor: TensorType) -> Iterator[_Member]:
    """Yield the dimensions of a tensor whose coordinates may not change: tensors in blocks, and tensors with levels that store groups."""
    grouped = tensor.format is not None and any(level.pads for level in tensor.format.levels)
    if tensor.block or grouped:
        yield from ((tensor.name, mode) for mode in range(len(tensor.shape)))


def _compared(einsum: Einsum) -> tuple[str, ...]:
    """Return the indices over which a rule compares entries. It also compares entries at idle coordinates."""
    body = einsum.body
    return body.over if isinstance(body, Keep) and isinstance(body.rule, Largest) else ()


def _useful_reductions(analysis: Analysis) -> dict[tuple[str, str], Bits]:
    """Return for each index that an Einsum reduces at which of its coordinates the reductions matter."""
    useful: dict[tuple[str, str], Bits] = {}
    sizes, shapes = extents(analysis.program), {t.name: t.shape for t in analysis.program.tensors}
    for einsum in analysis.program.einsums:
        reductions = [node for node in walk(einsum.body) if isinstance(node, Reduce)]
        if not reductions:
            continue
        forward = Forward(analysis.attributes, shapes, sizes[einsum.name])
        left, known = Access(einsum.name, einsum.indices), analysis.attributes[einsum.name]
        if isinstance(known, Entries):
            matters = EVERYWHERE  # elements that are 0 beside the entries must stay 0
        else:
            junk = np.isnan(known) & ~analysis.reached[einsum.name]
            matters = read(left, ~junk, shapes[einsum.name], sizes[einsum.name], False)
        for node in reductions:
            for name in node.over:
                mask = _useful(node, name, forward, any_over(matters, free_indices(node)))
                useful[einsum.name, name] = useful.get((einsum.name, name), np.asarray(False)) | mask
    return useful


def _useful(node: Reduce, name: str, forward: Forward, matters: Labeled) -> Bits:
    """Return at which coordinates of the index `name` a reduction folds more than its identity. `matters` is true where its
    result matters."""
    values = [forward.value(factor) for factor in product_factors(node)]
    if not values or any(isinstance(value, Labeled) and np.isinf(value.array).any() for value in values):
        masks = [_not_identity(node, forward)]
    else:
        masks = [alive(value) for value in values]
    mask = any_product([matters, *masks], (name,), (), forward.sizes).over((name,))
    return np.broadcast_to(mask, (forward.sizes[name],))


def _not_identity(node: Reduce, forward: Forward) -> Mask:
    value, identity = forward.value(node.body), reducer(node.op).identity
    return EVERYWHERE if isinstance(value, Entries) else value.map(lambda array: ~(array == identity))
