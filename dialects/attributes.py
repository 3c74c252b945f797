"""Python values as MLIR attributes. Every function here needs a current MLIR context, such as the one of `module.context`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch_mlir import ir

MAX_INTEGER = 2**63 - 1
"""The largest integer that an `i64` attribute holds."""


class UnrepresentableError(ValueError):
    """A value has no form as an MLIR attribute."""


def unit() -> ir.Attribute:
    """Return the attribute that stands for an absent value."""
    return ir.UnitAttr.get()


def string(value: str) -> ir.Attribute:
    """Return a string attribute. Raise `UnrepresentableError` for a text that UTF-8 cannot encode."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UnrepresentableError(f"the text {value!r} has no UTF-8 form") from None
    return ir.StringAttr.get(value)


def strings(values: Iterable[str]) -> ir.Attribute:
    return array(map(string, values))


def boolean(value: bool) -> ir.Attribute:
    return ir.BoolAttr.get(value)


def booleans(values: Iterable[bool]) -> ir.Attribute:
    return ir.DenseBoolArrayAttr.get(list(values))


def integer(value: int) -> ir.Attribute:
    """Return an `i64` attribute. Raise `UnrepresentableError` for a number that needs more than 64 bits."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _checked_i64(value))


def integers(values: Iterable[int]) -> ir.Attribute:
    return ir.DenseI64ArrayAttr.get([_checked_i64(value) for value in values])


def real(value: float) -> ir.Attribute:
    return ir.FloatAttr.get(ir.F64Type.get(), value)


def reals(values: Iterable[float]) -> ir.Attribute:
    return ir.DenseF64ArrayAttr.get(list(values))


def array(items: Iterable[ir.Attribute]) -> ir.Attribute:
    return ir.ArrayAttr.get(list(items))


def declared(name: str, *parameters: ir.Attribute) -> ir.Attribute:
    """Return an attribute of a kind that a dialect declares, as in `declared("einsum.split", ...)`."""
    return ir.DynamicAttr.get(name, list(parameters))


def declared_type(name: str, *parameters: ir.Attribute) -> ir.Type:
    """Return a type of a kind that a dialect declares, as in `declared_type("samml.crd", integer(2))`."""
    return ir.DynamicType.get(name, list(parameters))


def segments(operands: Sequence[int], results: Sequence[int]) -> dict[str, ir.Attribute]:
    """Return the two attributes that say how many operands and results each group of an operation has."""
    sizes = ir.DenseI32ArrayAttr.get
    return {"operandSegmentSizes": sizes(list(operands)), "resultSegmentSizes": sizes(list(results))}


def _checked_i64(value: int) -> int:
    if abs(value) > MAX_INTEGER:
        raise UnrepresentableError(f"the number {value} does not fit into 64 bits")
    return value
