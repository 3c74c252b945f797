"""Tensors that share their places: `tensor V[i, j] like W` has an entry wherever the input `W` has one, and nowhere else.

    tensor W[4, 4] csr          tensor V[4, 4] like W          tensor next_V[4, 4] like W
    next_V[i, j] = 0.9 * V[i, j] + G[i, j]

Positions and coordinates are those of `W`, and only the values of `V` and `next_V` are their own; a 0 is stored, too. A statement gives
its result at these places alone: all other entries of `next_V` are 0, whatever `G` has there. The places of a tensor are what it
stores in its format, so that they include whole blocks, and the entries with which a level such as `nm(2:4)` fills up its groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from fuseflow.einsum.nodes import Keep, Program, Split, TensorType
from fuseflow.einsum.sparse_arrays import Operand, SparseArray, flat_positions
from fuseflow.einsum.text import show_einsum
from fuseflow.errors import ProgramError, TensorError, did_you_mean
from fuseflow.tensors import Format, Tensor, pack
from fuseflow.tensors.blocks import from_blocks, stored_in, with_structure_of
from fuseflow.tensors.levels.base import Ints
from fuseflow.tensors.pack import from_coordinates


def verify_structures(program: Program) -> None:
    """Raise `ProgramError` unless every tensor that is like another one can share the places of that one."""
    sharing = {name for t in program.tensors if t.like for name in (t.name, t.like)}
    for tensor in program.tensors:
        if tensor.like:
            _verify_sharing(program, tensor)
    for einsum in program.einsums if sharing else ():
        for name, indices in ((einsum.name, einsum.indices), *((a.tensor, a.indices) for a in einsum.accesses)):
            if name in sharing and any(isinstance(index, Split) for index in indices):
                message = f"`{name}` shares its places with other tensors, and cannot be seen in other dimensions"
                raise ProgramError(message, notes=[f"in `{show_einsum(einsum)}`"], span=einsum.location.span)


def _verify_sharing(program: Program, tensor: TensorType) -> None:
    def refuse(why: str, hint: str = "") -> NoReturn:
        raise ProgramError(f"tensor `{tensor.name}` is like `{tensor.like}`, {why}", hint=hint, span=tensor.span)

    other, einsum = program.declared.get(tensor.like), program.defined.get(tensor.name)
    if tensor.like in program.defined:
        refuse("which is computed: only an input has its places before the program runs", "declare a mask that is an input")
    if other is None:
        refuse("which is not declared", did_you_mean(tensor.like, program.declared))
    if other.like:
        refuse(f"which is like `{other.like}`", f"write `like {other.like}`")
    if other.shape != tensor.shape:
        refuse(f"whose shape is {list(other.shape)}, not {list(tensor.shape)}")
    if other.format is None or other.format.all_dense:
        refuse("which stores every entry", f"give `{other.name}` a format such as `csr`, or leave `like` out")
    if tensor.format not in (None, other.format) or tensor.block not in ((), other.block):
        refuse("and has a format of its own", "leave the format and the block out: they are the same")
    if tensor.fill != 0 or other.fill != 0:
        refuse("and the implicit value of one of them is not 0", "leave `fill` out")
    if einsum is not None and not einsum.operands:
        refuse("and a number at all of its places", "use the number itself")
    if einsum is not None and isinstance(einsum.body, Keep):
        refuse("and a `keep` says which entries it has", "give the `keep` a statement of its own")


def stored_places(tensor: Tensor, declared: TensorType) -> Ints:
    """Return the positions of the elements, counted row by row, that a tensor stores in the format and the blocks of its declaration,
    ascending. The tensor is in these blocks, or in single elements."""
    stored = tensor if tensor.tile else stored_in(tensor, declared.format or tensor.format, declared.block)
    if stored.tile:
        coordinates, tiles = stored.entries()
        listed = Format.of(*["compressed"] * len(stored.shape))
        stored = from_blocks(from_coordinates(stored.shape, coordinates, tiles, listed), declared.shape, declared.block)
    return np.sort(flat_positions(stored.shape, stored.coordinates()))


def places_of_roots(program: Program, arrays: Mapping[str, Operand]) -> dict[str, Ints]:
    """Return the positions of the places of each input that other tensors are like. A `SparseArray` has its places, and the places of
    a dense array follow from the declaration of the input."""
    places: dict[str, Ints] = {}
    for name in {t.like for t in program.tensors if t.like}:
        array, declared = arrays[name], program.declared[name]
        if isinstance(array, SparseArray):
            places[name] = array.positions
        else:
            assert declared.format is not None, "a tensor that others are like has a format"
            places[name] = stored_places(pack(array, declared.format), declared)
    return places


def outside_of(array: Operand, places: Ints) -> tuple[int, ...] | None:
    """Return the coordinates of the first element that is not 0 and is at none of these positions; None if there is none."""
    if isinstance(array, SparseArray):
        wrong = array.positions[(array.values != 0) & ~np.isin(array.positions, places)]
    else:
        others = array.ravel() != 0
        others[places] = False
        wrong = np.flatnonzero(others)
    return tuple(map(int, np.unravel_index(wrong[0], array.shape))) if len(wrong) else None


def restricted_to(array: Operand, places: Ints) -> Operand:
    """Return an array with 0 in place of every element that is at none of these positions."""
    if isinstance(array, SparseArray):
        return SparseArray(array.shape, places, array.at(places))
    kept = np.zeros_like(array)
    kept.ravel()[places] = array.ravel()[places]
    return kept


def packing_types(types: Sequence[TensorType]) -> tuple[TensorType, ...]:
    """Return the types in which given arrays are packed before they are brought to the places of the tensor that they are like: in its
    format, or dense where that format decides itself where a 0 is stored."""
    declared = {t.name: t for t in types}

    def packed(tensor: TensorType) -> TensorType:
        format = declared[tensor.like].format if tensor.like in declared else None
        pads = format is None or any(level.pads for level in format.levels)
        return replace(tensor, format=Format.dense(len(tensor.shape)) if pads else format)

    return tuple([packed(t) if t.like else t for t in types])


def at_shared_places(
    types: Mapping[str, TensorType], stored: Mapping[str, Tensor], elements: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return `stored` tensors with each one that is like another at the places of that one. `elements` has them in single elements.
    Raises `TensorError` for an entry at another place, which it names."""
    shared: dict[str, Tensor] = {}
    for name, tensor in elements.items():
        if name in types and (root := types[name].like) in stored:
            try:
                shared[name] = with_structure_of(stored[root], tensor, types[root].block)
            except TensorError as error:
                raise TensorError(f"tensor `{name}` is like `{root}`: {error.message}", hint=error.hint) from None
    return {**stored, **shared}
