"""The form of a part of an operand: how its entries are stored, and the type of their numbers.

elements       32x32       nm(2:4)       32x32 i8
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from fuseflow.errors import PlanError, TensorError
from fuseflow.tensors import Format
from fuseflow.tensors.blocks import Block, block_text, parse_block
from fuseflow.tensors.dtypes import parse_dtype
from fuseflow.tensors.levels import Dense
from fuseflow.tensors.levels.compressed import Compressed
from fuseflow.tensors.levels.nm import NM

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
