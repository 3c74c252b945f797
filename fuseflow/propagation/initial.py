"""The attributes of the inputs of a program before an analysis: elements that they do not store are known, and numbers of `constants`."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np

from fuseflow.einsum.nodes import Program
from fuseflow.propagation.attribute import Attribute
from fuseflow.propagation.contraction import MAX_POINTS
from fuseflow.propagation.tensor_mask import Bits
from fuseflow.tensors import Tensor


def attributes_of(
    program: Program,
    tensors: Mapping[str, Tensor],
    fixed: Collection[str],
    constants: Collection[str] = (),
    masks: Mapping[str, Bits] | None = None,
    most: int = MAX_POINTS,
) -> dict[str, Attribute]:
    """Return the attributes of the inputs of a program.

    A tensor that is `fixed` stores the same entries in every run, so that all others are pruned. One that is stored dense says nothing,
    unless `masks` has a mask for it, which is true where it is not pruned. For `constants`, the numbers are known, too, unless
    the tensor has more than `most` elements. Then its entries are listed.
    """
    attributes = {}
    for declared in program.inputs:
        tensor = tensors.get(declared.name)
        mask = (masks or {}).get(declared.name)
        if mask is not None and declared.name not in constants:
            attributes[declared.name] = Attribute(mask=mask.reshape(declared.shape))
            continue
        if tensor is None or tensor.tile:
            continue
        is_large = math.prod(tensor.shape) > most
        if is_large and declared.name in fixed and not tensor.format.all_dense and tensor.fill == 0:
            attributes[declared.name] = Attribute(crds=tensor.coordinates())
        elif is_large:
            continue
        elif declared.name in constants:
            attributes[declared.name] = Attribute(tensor.to_dense())
        elif declared.name in fixed and not tensor.format.all_dense:
            stored = np.zeros(tensor.shape, dtype=bool)
            stored[tuple(tensor.coordinates())] = True
            attributes[declared.name] = Attribute(mask=stored)
    return attributes
