"""Values as MLIR attributes. Every call belongs to the current context (`module.context`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch_mlir import ir

WIDEST = 2**63 - 1
"""The largest integer of an `i64`."""


class NoAttributeError(ValueError):
    """A value that MLIR's attributes cannot hold."""


def unit() -> ir.Attribute:
    """What stands for a value that is not there."""
    return ir.UnitAttr.get()


def string(value: str) -> ir.Attribute:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NoAttributeError(f"the text {value!r} has no UTF-8 form") from None
    return ir.StringAttr.get(value)


def strings(values: Iterable[str]) -> ir.Attribute:
    return array(map(string, values))


def boolean(value: bool) -> ir.Attribute:
    return ir.BoolAttr.get(value)


def booleans(values: Iterable[bool]) -> ir.Attribute:
    return ir.DenseBoolArrayAttr.get(list(values))


def integer(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _narrow(value))


def integers(values: Iterable[int]) -> ir.Attribute:
    return ir.DenseI64ArrayAttr.get([_narrow(value) for value in values])


def real(value: float) -> ir.Attribute:
    return ir.FloatAttr.get(ir.F64Type.get(), value)


def reals(values: Iterable[float]) -> ir.Attribute:
    return ir.DenseF64ArrayAttr.get(list(values))


def array(items: Iterable[ir.Attribute]) -> ir.Attribute:
    return ir.ArrayAttr.get(list(items))


def declared(name: str, *parameters: ir.Attribute) -> ir.Attribute:
    """An attribute that a dialect declares: `declared("einsum.split", ...)`."""
    return ir.DynamicAttr.get(name, list(parameters))


def declared_type(name: str, *parameters: ir.Attribute) -> ir.Type:
    """A type that a dialect declares: `declared_type("samml.crd", integer(2))`."""
    return ir.DynamicType.get(name, list(parameters))


def segments(operands: Sequence[int], results: Sequence[int]) -> dict[str, ir.Attribute]:
    """How many operands and results there are of each group that an operation declares."""
    sizes = ir.DenseI32ArrayAttr.get
    return {"operandSegmentSizes": sizes(list(operands)), "resultSegmentSizes": sizes(list(results))}


def _narrow(value: int) -> int:
    if abs(value) > WIDEST:
        raise NoAttributeError(f"the number {value} does not fit into 64 bits")
    return value
