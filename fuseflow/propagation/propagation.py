"""The use of an analysis: a program without what it does not need, which computes the same.

Dead entries of inputs are not stored. Coordinates that are of no use are cut out of all tensors, and put back into outputs. Statements that
no output reads go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Keep, Program, Reduce, free_indices
from fuseflow.einsum.verify import verify
from fuseflow.propagation.analysis import Analysis
from fuseflow.propagation.cutting import Cuts, cuts
from fuseflow.propagation.tensor_mask import TensorMask
from fuseflow.tensors import Tensor
from fuseflow.tensors.pack import from_coordinates


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
    simpler = _read_by_outputs(replace(program, einsums=tuple(_without(einsum, absent) for einsum in program.einsums)))
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


def _without(einsum: Einsum, absent: frozenset[str]) -> Einsum:
    """Return a statement without its summands that read `absent` tensors, which are 0 wherever they are read."""
    if absent.isdisjoint(einsum.operands):
        return einsum
    return replace(einsum, body=_simpler(einsum.body, absent))


def _simpler(node: Expr, absent: frozenset[str]) -> Expr:
    match node:
        case Apply("add" | "sub" as op, (first, second)):
            first, second = _simpler(first, absent), _simpler(second, absent)
            if _is_absent(second, absent) and set(free_indices(second)) <= set(free_indices(first)):
                return first
            if op == "add" and _is_absent(first, absent) and set(free_indices(first)) <= set(free_indices(second)):
                return second
            return Apply(op, (first, second))
        case Apply():
            return replace(node, args=tuple(_simpler(arg, absent) for arg in node.args))
        case Reduce() | Keep():
            return replace(node, body=_simpler(node.body, absent))
        case Access() | Const():
            return node
        case unknown:
            assert_never(unknown)


def _is_absent(node: Expr, absent: frozenset[str]) -> bool:
    return isinstance(node, Access) and node.tensor in absent


def _read_by_outputs(program: Program) -> Program:
    """Return a program without the statements and inputs that no output reads."""
    read = set(program.outputs)
    for einsum in reversed(program.einsums):
        if einsum.name in read:
            read.update(einsum.operands)
    return replace(
        program,
        einsums=tuple(einsum for einsum in program.einsums if einsum.name in read),
        tensors=tuple(tensor for tensor in program.tensors if tensor.name in read),
    )
