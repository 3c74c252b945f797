"""Element types of tensors. Everything that is known of a type stands in its row of the table, and no other code tests the name
of a type."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fuseflow.errors import TensorError, did_you_mean
from fuseflow.ops import Precision, operator


@dataclass(frozen=True, slots=True)
class ElementType:
    """The type of the elements of a tensor. In accelerator memory an element has `bits` bits; on this machine it is kept in a `holder`.

    Operators compute in the `precision` of the type. A value is rounded to a float or a `narrow` type, which has less than 32 bits, by the
    operator `rounding`, whose other operands are `parameters`. A result of narrow operands alone has the type `promoted`, unless
    another one is declared. `mlir` is the name of the type in MLIR. `has_nan` says whether the type has a bit pattern for NaN, and
    `has_zero` whether it has numbers that are not above 0.
    """

    name: str
    bits: int
    kind: Literal["integer", "float"]
    holder: np.dtype[Any]
    promoted: str
    mlir: str
    rounding: str = ""
    parameters: tuple[float, ...] = ()
    has_nan: bool = True
    has_zero: bool = True

    @property
    def narrow(self) -> bool:
        """Whether values are rounded to the type with saturation, or to fewer digits than a float of 32 bits has."""
        return self.bits < 32

    @property
    def precision(self) -> Precision:
        """The numbers in which operators on such elements compute."""
        return "integer" if self.is_integer else "f64" if self.bits == 64 else "f32"

    @property
    def is_integer(self) -> bool:
        return self.kind == "integer"

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest number of an integer type."""
        if self.narrow:
            least, greatest = self.parameters
            return int(least), int(greatest)
        limits = np.iinfo(self.holder)
        return int(limits.min), int(limits.max)

    def round(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the numbers of a narrow type that are nearest to these values, ties to even. NaN stays NaN."""
        return operator(self.rounding)(values, *self.parameters)

    def unholdable(self, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return where values have no number of a narrow type to be rounded to: NaN, and numbers that are not above 0, in types that have
        no such bit patterns."""
        nan = np.isnan(values)
        below = np.zeros_like(nan) if self.has_zero else ~nan & ~((values > 0) & (values < np.inf))
        return np.asarray(below if self.has_nan else below | nan)

    def implicit(self, value: float) -> float:
        """Return the implicit value of a tensor that is nearest to a number: 0, which is not stored, where the type has none for it."""
        return 0.0 if self.narrow and not self.is_integer and self.unholdable(np.array(value)) else self.nearest(value)

    def nearest(self, value: float) -> float:
        """Return a value rounded to a narrow type; any other type leaves it as it is."""
        return operator(self.rounding).scalar(value, *self.parameters) if self.narrow else value

    def hold(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return computed values in the holder of the type. Values are rounded to a narrow type. Values of a wide integer type
        are whole and in its range. Values beyond a float become infinite."""
        with np.errstate(over="ignore"):
            if self.narrow:
                values = self.round(values)
            return values.astype(self.holder, copy=False)


def _integer(name: str, bits: int, holder: type[np.generic], mlir: str, signed: bool = True) -> ElementType:
    least, greatest = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return ElementType(
        name, bits, "integer", np.dtype(holder), "i32", mlir, "saturate", (float(least), float(greatest)), has_nan=False
    )


def _float(name: str, bits: int, holder: type[np.generic], digits: int, least_power: int, mlir: str = "") -> ElementType:
    """Return a float type with this number of binary `digits`, whose smallest number above 0 is 2**least_power."""
    promoted, parameters = "f64" if bits == 64 else "f32", (2.0 ** (1 - digits), 2.0**least_power)
    return ElementType(name, bits, "float", np.dtype(holder), promoted, mlir or name, "nearest", parameters)


def _finite_float(name: str, bits: int, digits: int, greatest: float, mlir: str, has_nan: bool) -> ElementType:
    """Return a float type with this number of binary `digits`, whose greatest number is `greatest`, and that has no infinities."""
    parameters = (2.0 ** (1 - digits), greatest)
    return ElementType(name, bits, "float", np.dtype(np.float32), "f32", mlir, "nearest_finite", parameters, has_nan)


DTYPES: dict[str, ElementType] = {
    row.name: row
    for row in (
        _float("f32", 32, np.float32, digits=24, least_power=-149),
        _float("f64", 64, np.float64, digits=53, least_power=-1074),
        ElementType("i32", 32, "integer", np.dtype(np.int32), "i32", "i32"),
        ElementType("i64", 64, "integer", np.dtype(np.int64), "i64", "i64"),
        _integer("i4", 4, np.int8, "i4"),
        _integer("u4", 4, np.uint8, "ui4", signed=False),
        _integer("i8", 8, np.int8, "i8"),
        _integer("u8", 8, np.uint8, "ui8", signed=False),
        _integer("i16", 16, np.int16, "i16"),
        _float("f16", 16, np.float16, digits=11, least_power=-24),
        _float("bf16", 16, np.float32, digits=8, least_power=-133),
        _float("e5m2", 8, np.float32, digits=3, least_power=-16, mlir="f8E5M2"),
        _finite_float("e4m3", 8, digits=4, greatest=448.0, mlir="f8E4M3FN", has_nan=True),
        _finite_float("e2m1", 4, digits=2, greatest=6.0, mlir="f4E2M1FN", has_nan=False),
        replace(_float("e8m0", 8, np.float32, digits=1, least_power=-127, mlir="f8E8M0FNU"), has_zero=False),
    )
}

EXACT_INTEGERS = 2**53
"""Integers below this magnitude are exact in the 64-bit floats in which they are computed. Others may be rounded to their neighbours."""


def parse_dtype(name: str) -> ElementType:
    """Return the element type `name`. Raise `TensorError` with the nearest right name if there is none.

    >>> parse_dtype("i4").range
    (-8, 7)
    """
    if name not in DTYPES:
        raise TensorError(f"unknown dtype `{name}`", hint=did_you_mean(name, DTYPES))
    return DTYPES[name]


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a NumPy type. Raise `TensorError` for a type that tensors cannot have.

    >>> dtype_name(np.dtype("float32"))
    'f32'
    """
    for row in DTYPES.values():
        if row.holder == dtype and row.bits == 8 * dtype.itemsize:
            return row.name
    numpy_types = (str(row.holder) for row in DTYPES.values() if row.bits == 8 * row.holder.itemsize)
    raise TensorError(f"tensors cannot hold `{dtype}`", hint=f"convert to one of {', '.join(numpy_types)}")


def of_mlir(name: str) -> str:
    """Return the name of the element type whose name in MLIR this is, or the name itself if there is none."""
    return next((row.name for row in DTYPES.values() if row.mlir == name), name)
