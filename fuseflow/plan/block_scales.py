"""Constants in blocks of small floats that share a scale: a statement computes the tensor from its elements and its scales.

    W[i, j] = ...                                            a constant of 32-bit floats
    W[i, h*32 + c] = W.elements[i, h, c] * W.scale[i, h]     mx: elements of e4m3, and powers of 2

Blocks lie along the last dimension, which they divide. `mx` is that of the OCP: 32 elements of e4m3 share a power of 2, which maps the
largest magnitude to the binade of 448. `nvfp4` has blocks of 16 elements of e2m1 that share an e4m3, and a factor for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.index_names import fresh_indices
from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Program, Split, TensorType
from fuseflow.plan.products import first_free
from fuseflow.tensors import Format, Tensor, pack
from fuseflow.tensors.dtypes import DTYPES

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BlockForm:
    """Blocks of `size` elements of a type, with scales of another one. If it is `in_two_steps`, all scales share one more factor."""

    elements: str
    size: int
    scale: str
    in_two_steps: bool

    @property
    def bits(self) -> float:
        """The bits of an element, with its part of a scale."""
        return DTYPES[self.elements].bits + DTYPES[self.scale].bits / self.size

    def fits(self, declared: TensorType) -> bool:
        """Return whether a constant can be stored so: dense 32-bit floats without blocks, whose last dimension the blocks divide."""
        dense = declared.format is None or declared.format.all_dense
        return bool(
            dense and not declared.block and declared.dtype == "f32" and declared.shape and declared.shape[-1] % self.size == 0
        )

    def divided(self, numbers: Floats) -> tuple[Floats, Floats, float]:
        """Return the elements [..., blocks, size], the scales [..., blocks] and the factor of all that represent finite numbers."""
        blocks = numbers.reshape(*numbers.shape[:-1], -1, self.size)
        largest = np.abs(blocks).max(axis=-1, initial=0.0)
        elements, end = DTYPES[self.elements], DTYPES[self.elements].parameters[1]
        if not self.in_two_steps:
            power = np.floor(np.log2(np.maximum(largest, 2.0**-126))) - np.floor(np.log2(end))
            whole, scales = 1.0, np.exp2(np.maximum(power, -127.0))
        else:
            whole = float(np.float32(largest.max(initial=0.0) / (end * DTYPES[self.scale].parameters[1]))) or 1.0
            scales = DTYPES[self.scale].round(largest / end / whole)
        steps = np.where(scales == 0, 1.0, scales * whole)[..., None]
        return np.where(scales[..., None] == 0, 0.0, elements.round(blocks / steps)), scales, whole


FORMS: Mapping[str, BlockForm] = MappingProxyType(
    {"mx": BlockForm("e4m3", 32, "e8m0", in_two_steps=False), "nvfp4": BlockForm("e2m1", 16, "e4m3", in_two_steps=True)}
)
"""The forms that are known, by name."""


def in_blocks(program: Program, tensors: Mapping[str, Tensor], forms: Mapping[str, str]) -> tuple[Program, Mapping[str, Tensor]]:
    """Return a program and its tensors with some constants in blocks, whose forms are given by their names."""
    for name, form in forms.items():
        program, tensors = _in_blocks(program, tensors, name, FORMS[form])
    return program, tensors


def _in_blocks(
    program: Program, tensors: Mapping[str, Tensor], name: str, form: BlockForm
) -> tuple[Program, Mapping[str, Tensor]]:
    shape = infer(program).declared[name].shape
    *outer, block, inner = islice(fresh_indices(), len(shape) + 1)
    *numbers, whole = form.divided(tensors[name].to_dense().astype(np.float64))
    declared, body, stored = list[TensorType](), list[Expr](), dict(tensors)
    taken = {*program.declared, *program.defined}
    parts = (("elements", form.elements, (*outer, block, inner)), ("scale", form.scale, (*outer, block)))
    for array, (part, dtype, indices) in zip(numbers, parts, strict=True):
        own, format = first_free(f"{name}.{part}", taken), Format.dense(array.ndim)
        declared.append(TensorType(own, array.shape, format, dtype))
        stored[own] = pack(DTYPES[dtype].hold(array), format, type=DTYPES[dtype])
        body.append(Access(own, indices))
    product: Expr = Apply("mul", tuple(body))
    product = Apply("mul", (product, Const(whole))) if form.in_two_steps else product
    statement = Einsum(name, (*outer, Split(block, inner, form.size)), product)
    kept = [tensor for tensor in program.tensors if tensor.name != name]
    del stored[name]
    return replace(program, tensors=(*kept, *declared), einsums=(statement, *program.einsums)), stored
