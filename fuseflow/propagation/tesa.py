"""The code of SparTA for the attributes of an element, in 16 bits: TeSA, a tensor with sparsity attributes.

bits 0 to 6     the width of the element in bits; 0 if it is pruned
bits 7 to 10    its type: 0 float, 1 integer, 2 unsigned integer, 3 bfloat; and, beyond the code of SparTA, 4 e5m2 and 5 e8m0
bit 11          whether it is a constant
bits 12 to 15   0
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fuseflow.errors import AttributesError
from fuseflow.propagation.analysis import Analysis
from fuseflow.propagation.attribute import Attribute
from fuseflow.propagation.labeled import Bits
from fuseflow.tensors.dtypes import DTYPES, ElementType

_WIDTH, _TYPE, _CONSTANT = 0x7F, 7, 1 << 11
_FLOAT, _INTEGER, _UNSIGNED, _BFLOAT, _E5M2, _E8M0 = range(6)
_OTHER_FLOATS = {"bf16": _BFLOAT, "e5m2": _E5M2, "e8m0": _E8M0}
"""The floats beside one of as many bits that has the type 0."""


@dataclass(frozen=True, slots=True, eq=False)
class TesaCode:
    """The codes of the elements of a tensor, an array of `uint16`. Raise `AttributesError` for numbers that are no codes."""

    codes: npt.NDArray[np.uint16]

    def __post_init__(self) -> None:
        if self.codes.dtype != np.uint16:
            raise AttributesError(f"codes are `uint16`, and these are `{self.codes.dtype}`")
        wrong = (self.codes >> 12 != 0) | (self.codes >> _TYPE & 0xF > _E8M0)
        if wrong.any():
            place = tuple(map(int, np.argwhere(wrong)[0]))
            hint = "bits 12 to 15 are 0, and a type is 0 to 5"
            raise AttributesError(f"{int(self.codes[place]):#06x} at {place} is no code", hint=hint)

    @property
    def widths(self) -> npt.NDArray[np.uint8]:
        """The bits of each element, which are 0 where it is pruned."""
        return (self.codes & _WIDTH).astype(np.uint8)

    @property
    def kept(self) -> Bits:
        """Which elements are not pruned."""
        return self.widths > 0

    @property
    def constant(self) -> Bits:
        """Which elements are constants."""
        return np.asarray((self.codes & _CONSTANT) != 0)

    def types(self) -> npt.NDArray[np.str_]:
        """Return the name of the type of each element: `f32`, `i8`, `bf16`, and "" where it is pruned. Raise `AttributesError` for a type
        that is not there, such as a float of 5 bits."""
        names = np.full(self.codes.shape, "", dtype="<U8")
        for code in np.unique(self.codes & ~np.uint16(_CONSTANT)):
            names[(self.codes & ~np.uint16(_CONSTANT)) == code] = _name(int(code))
        return names

    @property
    def attribute(self) -> Attribute:
        """The attribute of the tensor for an analysis: which elements are pruned."""
        return Attribute(mask=self.kept)


def tesa_code(analysis: Analysis, name: str) -> TesaCode:
    """Return the attributes of a tensor, as the analysis found them, in the code of SparTA: dead elements have width 0, and
    others the width of the tensor."""
    row = DTYPES[analysis.program.declared[name].dtype]
    code = _type_of(row) << _TYPE | row.bits
    constant = np.where(analysis.constant_mask(name).whole(name), _CONSTANT, 0)
    return TesaCode(np.where(analysis.dead(name), 0, code | constant).astype(np.uint16))


def _type_of(row: ElementType) -> int:
    if row.kind == "float":
        return _OTHER_FLOATS.get(row.name, _FLOAT)
    return _UNSIGNED if row.range[0] == 0 else _INTEGER


def _name(code: int) -> str:
    width, kind = code & _WIDTH, code >> _TYPE
    if width == 0:
        return ""
    for row in DTYPES.values():
        if row.bits == width and _type_of(row) == kind:
            return row.name
    raise AttributesError(f"no type has {width} bits and the number {kind}", hint=f"types are {', '.join(DTYPES)}")
