"""Attributes: the facts about a tensor that are known before the analysis. They say which elements have a value that no run changes.

An array of attributes has the known value of each element, and NaN where it is unknown. A dimension of extent 1 stands for a
whole dimension along which nothing changes. So the array of a tensor without any known value has one element.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.errors import AttributesError
from fuseflow.ops import Array
from fuseflow.propagation.labeled import MAX_POINTS, Bits, Entries
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """The known facts about a tensor: its `values`, with NaN where one is unknown, and a `mask` that is false where an element is pruned.

    Of a tensor with the implicit value 0 and more elements than an array should have, `crds` lists the elements that are not
    pruned instead, as an array [rank, n]. All of them are unknown.
    """

    values: npt.ArrayLike = np.nan
    mask: npt.ArrayLike = True
    crds: Ints | None = None

    def known(self, tensor: TensorType) -> Array | Entries:
        """Return the known values of a tensor as an array, or the entries that are unknown. A pruned element has the implicit value.

        Raise `AttributesError` for values, a mask or coordinates of another shape.
        """
        if self.crds is not None:
            return _listed(tensor, self.crds)
        values, mask = np.asarray(self.values, dtype=np.float64), np.asarray(self.mask, dtype=bool)
        for what, array in (("array of values", values), ("mask", mask)):
            if array.ndim and array.shape != tensor.shape:
                raise AttributesError(
                    f"`{tensor.name}`: the {what} has the shape {list(array.shape)}, and the tensor has {list(tensor.shape)}",
                    hint="give an element for each element of the tensor",
                )
        known = np.where(mask, values, tensor.fill)
        return folded(known.reshape(known.shape or (1,) * len(tensor.shape)))


def pruned(mask: npt.ArrayLike) -> Attribute:
    """Return the attribute of a tensor that is pruned where a mask is false. The numbers that are kept are unknown."""
    return Attribute(mask=mask)


def constant(values: npt.ArrayLike, mask: npt.ArrayLike = True) -> Attribute:
    """Return the attribute of a tensor whose values are known, except where the array has NaN."""
    return Attribute(values, mask)


def _listed(tensor: TensorType, crds: Ints) -> Entries:
    rank, extents = len(tensor.shape), np.asarray(tensor.shape)[:, None]
    if crds.ndim != 2 or len(crds) != rank or (crds < 0).any() or (crds >= extents).any():
        raise AttributesError(
            f"`{tensor.name}`: the coordinates have the shape {list(crds.shape)}, or leave {list(tensor.shape)}",
            hint="give a row of coordinates for each dimension",
        )
    if tensor.fill != 0:
        raise AttributesError(f"`{tensor.name}` has the implicit value {tensor.fill:g}", hint="give it a `mask`")
    return Entries(crds, np.ones(crds.shape[1], dtype=bool))


def folded(array: Array) -> Array:
    """Return an array of attributes with extent 1 for each dimension along which all values are equal."""
    for axis in range(array.ndim):
        first = array[(slice(None),) * axis + (slice(0, 1),)]
        if array.shape[axis] > 1 and np.array_equal(np.broadcast_to(first, array.shape), array, equal_nan=True):
            array = first.copy()
    return array


def attributes_of(
    program: Program,
    tensors: Mapping[str, Tensor],
    fixed: Collection[str],
    constants: Collection[str] = (),
    masks: Mapping[str, Bits] | None = None,
) -> dict[str, Attribute]:
    """Return the attributes of the inputs of a program.

    A tensor that is `fixed` stores the same entries in every run, so that all others are pruned. One that is stored dense says nothing,
    unless `masks` has a mask for it, which is true where it is not pruned. For `constants`, the numbers are known, too, unless
    the tensor has more than `MAX_POINTS` elements. Then its entries are listed.
    """
    attributes = {}
    for declared in program.inputs:
        name, tensor, mask = declared.name, tensors.get(declared.name), (masks or {}).get(declared.name)
        if mask is not None and name not in constants:
            attributes[name] = Attribute(mask=mask.reshape(declared.shape))
        elif tensor is not None and not tensor.tile:
            has_pattern, is_large = name in fixed and not tensor.format.all_dense, math.prod(tensor.shape) > MAX_POINTS
            if is_large and has_pattern and tensor.fill == 0:
                attributes[name] = Attribute(crds=tensor.coordinates())
            elif not is_large and name in constants:
                attributes[name] = Attribute(tensor.to_dense())
            elif not is_large and has_pattern:
                stored = np.zeros(tensor.shape, dtype=bool)
                stored[tuple(tensor.coordinates())] = True
                attributes[name] = Attribute(mask=stored)
    return attributes
