"""The partition of an operand: which of its entries are in which part.

Parts that are stored n:m come first, and take as many entries as fit. The other entries are covered by blocks; single elements
are the smallest. An entry is in no part whose type does not hold it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.verify import TENSOR_NAME
from fuseflow.errors import PlanError, TensorError
from fuseflow.plan.cover import Mask, Option, check_weight, cover
from fuseflow.tensors import Format
from fuseflow.tensors.blocks import Block, block_text, parse_block
from fuseflow.tensors.dtypes import parse_dtype
from fuseflow.tensors.levels import Dense
from fuseflow.tensors.levels.compressed import Compressed
from fuseflow.tensors.levels.nm import NM


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A part of an operand as a plan has it. `weight` is what one of its blocks costs, or None where that is not known or not needed."""

    form: Form
    weight: float | None = None

    def __post_init__(self) -> None:
        if self.weight is not None:
            check_weight(self.weight, str(self.form))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A part of an operand with its entries."""

    form: Form
    entries: Mask


def check_planned(name: str, parts: Sequence[PlannedPart]) -> None:
    """Raise `PlanError` if no operand can have this name, or be divided into such parts."""
    if not TENSOR_NAME.fullmatch(name):
        raise PlanError(f"`{name}` cannot name a tensor", hint="names are words joined by dots: `layer1.weight`")
    if not parts:
        raise PlanError(f"`{name}` has no parts", hint="leave it out, or give it one, such as `elements`")
    forms = [part.form for part in parts]
    twice = next((form for form in forms if forms.count(form) > 1), None)
    if twice is not None:
        raise PlanError(f"`{name}` has two parts `{twice}`", hint="keep one of them")
    first_block = next((place for place, form in enumerate(forms) if form.nm is None), len(forms))
    late = next((form for form in forms[first_block:] if form.nm is not None), None)
    if late is not None:
        raise PlanError(f"`{late}` of `{name}` stands behind `{forms[first_block]}`", hint="n:m parts come first")


def needs_weights(parts: Sequence[PlannedPart]) -> bool:
    """Return whether a choice between blocks has to be made, which needs their weights: several parts are not n:m."""
    return sum(part.form.nm is None for part in parts) > 1


def require_weights(name: str, parts: Sequence[PlannedPart]) -> None:
    """Raise `PlanError` if the parts of the operand `name` need weights and one has none."""
    lacking = next((part for part in parts if part.form.nm is None and part.weight is None), None)
    if lacking is not None and needs_weights(parts):
        hint = "give each part a `weight`, or measure them on a machine"
        raise PlanError(f"`{name}`: nothing says what blocks of `{lacking.form}` cost", hint=hint)


def partition(
    name: str, values: npt.NDArray[Any], needed: Mask, planned: Sequence[PlannedPart], innermost: int
) -> tuple[Part, ...]:
    """Divide the entries of a matrix that are needed and not 0. Parts without entries are there, too. `innermost` is the
    dimension along which n:m counts. Raise `PlanError` for a weight that is missing, and for an entry that no part holds."""
    check_planned(name, planned)
    require_weights(name, planned)
    left, parts = needed & (values != 0), list[Part]()
    blocks = [part for part in planned if part.form.nm is None]
    for part in planned:
        if part.form.nm is not None:
            taken = nm_part(left & _held(values, part.form), part.form.nm.n, part.form.nm.m, innermost)
            left = left & ~taken
            parts.append(Part(part.form, taken))
    held = [_held(values, part.form) for part in blocks]
    _require_held(name, values, left & ~np.any(held, axis=0) if held else left)
    if len(blocks) == 1:
        return (*parts, Part(blocks[0].form, left))
    if not blocks:
        return tuple(parts)
    options = [Option(part.form.block, part.weight or 0, mask) for part, mask in zip(blocks, held, strict=True)]
    covered = cover(left, options)
    return (*parts, *(Part(part.form, covered.held_by(number)) for number, part in enumerate(blocks)))


def check_parts(name: str, values: npt.NDArray[Any], needed: Mask, parts: Sequence[Part]) -> None:
    """Raise `PlanError` unless parts are disjoint, hold every needed entry that is not 0, and can store what they hold."""
    if not parts:
        raise PlanError(f"`{name}` has no parts", hint="leave it out, or give it one, such as `elements`")
    for part in parts:
        if part.entries.dtype != np.bool_:
            raise PlanError(
                f"the mask of the part `{part.form}` of `{name}` has {part.entries.dtype}", hint="give a mask of booleans"
            )
        if part.entries.shape != values.shape:
            shapes = f"{part.entries.shape}, and `{name}` {values.shape}"
            raise PlanError(f"the mask of the part `{part.form}` of `{name}` has the shape {shapes}")
    count = np.sum([part.entries for part in parts], axis=0)
    if (count > 1).any():
        both = [str(part.form) for part in parts if part.entries[_first(count > 1)]]
        hint = f"both have the entry {_entry(values, count > 1)}"
        raise PlanError(f"the parts `{both[0]}` and `{both[1]}` of `{name}` overlap", hint=hint)
    _require_held(name, values, needed & (values != 0) & (count == 0))
    for part in parts:
        lost = part.entries & ~_held(values, part.form)
        if lost.any():
            problem = f"the part `{part.form}` of `{name}` cannot hold the entry {_entry(values, lost)}"
            raise PlanError(problem, hint="leave its `dtype` out, or give the entry to another part")


def _held(values: npt.NDArray[Any], form: Form) -> Mask:
    """Return which values a part holds without rounding."""
    if not form.dtype:
        return np.ones(values.shape, dtype=bool)
    numbers = values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        held: Mask = parse_dtype(form.dtype).hold(numbers).astype(np.float64) == numbers
    return held


def _require_held(name: str, values: npt.NDArray[Any], missing: Mask) -> None:
    if missing.any():
        problem = f"no part of `{name}` holds the entry {_entry(values, missing)}"
        raise PlanError(problem, hint="add a part that holds every entry, such as `elements`")


def _entry(values: npt.NDArray[Any], mask: Mask) -> str:
    """Return the coordinates and the value of the first entry of a mask, as text."""
    place = _first(mask)
    return f"({', '.join(map(str, place))}), which is {values[place]:g}"


def _first(mask: Mask) -> tuple[int, ...]:
    return tuple(map(int, np.argwhere(mask)[0]))


def nm_part(mask: Mask, n: int, m: int, axis: int = -1) -> Mask:
    """Return the first n entries of every m coordinates along an axis, counted from coordinate 0. The last group may be shorter.

    >>> nm_part(np.array([1, 1, 0, 1, 1], dtype=bool), 1, 2).astype(int).tolist()
    [1, 0, 0, 1, 1]
    """
    if not 1 <= n <= m:
        raise PlanError(f"{n} of every {m} coordinates", hint="the entries come first, as in 2 of every 4")
    along = np.moveaxis(mask, axis, -1)
    *rest, size = along.shape
    groups = -(-size // m)
    padded = np.zeros((*rest, groups * m), dtype=bool)
    padded[..., :size] = along
    grouped = padded.reshape(*rest, groups, m)
    first = (grouped & (grouped.cumsum(axis=-1) <= n)).reshape(padded.shape)
    return np.moveaxis(first[..., :size], -1, axis)


ELEMENTS = "elements"
"""How blocks of a single element are written."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a part of a matrix: blocks of `block` entries, or single entries, at most n of them in every m coordinates.
    `dtype` is a key of `DTYPES`, or "" for the type of the operand.

    >>> str(Form((32, 32), dtype="i8")), str(Form())
    ('32x32 i8', 'elements')
    """

    block: tuple[int, int] = (1, 1)
    nm: NM | None = None
    dtype: str = ""

    def __post_init__(self) -> None:
        try:
            checked = parse_block(block_text(self.block), 2)
            if self.dtype:
                parse_dtype(self.dtype)
        except TensorError as error:
            raise PlanError(error.message, hint=error.hint) from None
        if checked and self.nm is not None:
            raise PlanError(f"`{self.nm.text}` in blocks of {block_text(self.block)}", hint="give each a part of its own")

    @classmethod
    def parse(cls, text: str, dtype: str = "") -> Form:
        """Read how a part is stored. Raise `PlanError` for another text, and for an unknown type."""
        try:
            if text.startswith("nm"):
                return cls(nm=NM.parse(text), dtype=dtype)
            if text == ELEMENTS:
                return cls(dtype=dtype)
            rows, columns = parse_block(text, 2) or (1, 1)
        except TensorError as error:
            raise PlanError(error.message, hint=f"{error.hint or 'write `32x32`'}; or `{ELEMENTS}`, or `nm(2:4)`") from None
        return cls((rows, columns), dtype=dtype)

    @property
    def storage(self) -> str:
        """The text of the form without its type, as `parse` reads it."""
        if self.nm is not None:
            return self.nm.text
        return ELEMENTS if self.block == (1, 1) else block_text(self.block)

    def __str__(self) -> str:
        return f"{self.storage} {self.dtype}".rstrip()

    def format(self, operand: Format) -> Format:
        """Return the format of a part of an operand: its levels if they are sparse, or else those of CSR. The order stays."""
        if self.nm is not None:
            return Format((Dense(), self.nm), operand.order)
        if operand.all_dense or any(level.pads for level in operand.levels):
            return Format((Dense(), Compressed()), operand.order)
        return replace(operand, complete=False)


def common_blocks(forms: Sequence[Form], shared: Collection[int]) -> tuple[Block, ...]:
    """Return the block in which each part is stored. Along the `shared` dimensions all blocks have one size, the greatest that
    divides the sizes of all parts. A larger block is stored as several.

    >>> common_blocks((Form((32, 32)), Form((4, 4))), (1,)), common_blocks((Form((32, 32)), Form()), (1,))
    (((32, 4), (4, 4)), ((32, 1), ()))
    """
    divisors = [math.gcd(*(form.block[d] for form in forms)) if d in shared else 0 for d in range(2)]
    blocks = (tuple(divisor or size for divisor, size in zip(divisors, form.block, strict=True)) for form in forms)
    return tuple(block if max(block) > 1 else () for block in blocks)
