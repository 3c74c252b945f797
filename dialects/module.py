"""Reading and writing modules of the dialects: a context that has them, and operations whose attributes are read with their types.

MLIR checks an operation against its declaration when a text is parsed. What a reader still refuses, it refuses with the operation's place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn, TypeVar

from torch_mlir import ir
from torch_mlir.dialects import irdl

from fuseflow.dialects import declaration
from fuseflow.dialects.attributes import NoAttributeError
from fuseflow.dialects.screen import screen
from fuseflow.errors import FuseFlowError, Span

T = TypeVar("T")


@cache
def _declared(dialect: str) -> str:
    return declaration(dialect).read_text(encoding="utf-8")


@contextmanager
def context(*dialects: str, error: type[FuseFlowError], file: str = "<mlir>") -> Iterator[None]:
    """A fresh MLIR context with these dialects. What MLIR refuses in it becomes an `error`."""
    with ir.Context(), ir.Location.unknown():
        for dialect in dialects:
            irdl.load_dialects(ir.Module.parse(_declared(dialect)))
        try:
            yield
        except ir.MLIRError as problem:
            first = problem.error_diagnostics[0]
            notes = [str(note) for note in first.notes if "see current operation" not in str(note)]
            raise error(f"MLIR: {first.message}", notes=notes, span=_span(first.location, file)) from None
        except NoAttributeError as problem:
            raise error(f"there is no MLIR form: {problem}") from None


def show(module: ir.Module) -> str:
    """The module in generic form, verified."""
    module.operation.verify()
    return str(module.operation.get_asm(assume_verified=True))


def parse(text: str, file: str, dialects: Sequence[str], error: type[FuseFlowError]) -> Module:
    """The module that a text is. The context must be the one of these dialects, and the module must hold their operations alone."""
    screen(text, file, dialects, error)
    module = Module(ir.Module.parse(text), file, error)
    for op in module.operations:
        if op.name.partition(".")[0] not in dialects:
            known = " and ".join(f"`{dialect}`" for dialect in dialects)
            op.refuse("does not belong here", f"the module should hold operations of {known} alone")
    return module


@dataclass(frozen=True, slots=True)
class Module:
    """A module that was parsed. Its operations keep it alive, for MLIR's Python objects do not."""

    handle: ir.Module
    file: str
    error: type[FuseFlowError]

    @property
    def operations(self) -> list[Operation]:
        """The operations in order."""
        return [Operation(op.operation, self) for op in self.handle.body.operations]

    def only(self, name: str) -> Operation:
        """The one operation with this name."""
        operations = self.operations
        these = [op for op in operations if op.name == name]
        if len(these) > 1:
            these[1].refuse("stands here a second time", "a module holds one")
        if not these:
            held = ", ".join(list(dict.fromkeys(op.name for op in operations))[:10]) or "nothing"
            raise self.error(f"the module has no `{name}`; it holds {held}", span=Span(self.file, 1))
        return these[0]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a module. Its methods read an attribute as a Python value, and refuse one of another type with the place."""

    op: ir.Operation
    module: Module

    @property
    def name(self) -> str:
        return str(self.op.name)

    @property
    def operands(self) -> list[ir.Value]:
        return list(self.op.operands)

    @property
    def results(self) -> list[ir.Value]:
        return list(self.op.results)

    @property
    def place(self) -> Span | None:
        """Where the operation stands in the text."""
        return _span(self.op.location, self.module.file)

    def refuse(self, why: str, hint: str = "") -> NoReturn:
        raise self.module.error(f"`{self.name}` {why}", hint=hint, span=self.place)

    def operand(self, position: int, values: Mapping[ir.Value, T]) -> T:
        """What `values` holds for an operand. Operations of a module need not stand in order, so it may come too late."""
        value = self.op.operands[position]
        if value not in values:
            self.refuse(f"reads its operand {position} before it is made", "an operation stands after those that it reads")
        return values[value]

    def string(self, name: str) -> str:
        return self.read(name, string, "a string")

    def strings(self, name: str) -> tuple[str, ...]:
        return self.read(name, strings, 'a list of strings such as `["i", "j"]`')

    def integer(self, name: str) -> int:
        return self.read(name, integer, "a 64-bit integer such as `3 : i64`")

    def integers(self, name: str) -> tuple[int, ...]:
        return self.read(name, integers, "64-bit integers such as `array<i64: 4, 5>`")

    def real(self, name: str) -> float:
        return self.read(name, real, "a 64-bit number such as `0.5 : f64`")

    def reals(self, name: str) -> tuple[float, ...]:
        return self.read(name, reals, "64-bit numbers such as `array<f64: 0.5, 2.0>`")

    def boolean(self, name: str) -> bool:
        return self.read(name, boolean, "`true` or `false`")

    def booleans(self, name: str) -> tuple[bool, ...]:
        return self.read(name, booleans, "truth values such as `array<i1: true, false>`")

    def read(self, name: str, reader: Callable[[ir.Attribute], T], wanted: str) -> T:
        """What `reader` makes of an attribute; `wanted` says in words what it takes."""
        attribute = self.op.attributes[name]
        try:
            return reader(attribute)
        except (ValueError, TypeError, RuntimeError):
            # A list or attribute of other elements than it should have, or a string that is no UTF-8.
            text = str(attribute)
            shown = text if len(text) < 100 else f"{text[:100]} ..."
            self.refuse(f"has the attribute `{name}` = {shown}; it should be {wanted}")


def _span(location: ir.Location, file: str) -> Span | None:
    """The place in the text that was parsed, unless the text itself says where the operation comes from."""
    place = re.fullmatch(r'loc\("-":(\d+):(\d+)\)', str(location))
    return Span(file, int(place[1]), int(place[2])) if place else None


# Attributes as values. Each raises `ValueError` for an attribute of another type.


def string(attribute: ir.Attribute) -> str:
    return str(ir.StringAttr(attribute).value)


def strings(attribute: ir.Attribute) -> tuple[str, ...]:
    return tuple(map(string, ir.ArrayAttr(attribute)))


def integer(attribute: ir.Attribute) -> int:
    number = ir.IntegerAttr(attribute)
    if str(number.type) != "i64":
        raise ValueError(f"{number.type} is not i64")
    return int(number.value)


def integers(attribute: ir.Attribute) -> tuple[int, ...]:
    return tuple(map(int, ir.DenseI64ArrayAttr(attribute)))


def real(attribute: ir.Attribute) -> float:
    number = ir.FloatAttr(attribute)
    if str(number.type) != "f64":
        raise ValueError(f"{number.type} is not f64")
    return float(number.value)


def reals(attribute: ir.Attribute) -> tuple[float, ...]:
    return tuple(map(float, ir.DenseF64ArrayAttr(attribute)))


def boolean(attribute: ir.Attribute) -> bool:
    return bool(ir.BoolAttr(attribute).value)


def booleans(attribute: ir.Attribute) -> tuple[bool, ...]:
    return tuple(map(bool, ir.DenseBoolArrayAttr(attribute)))


def optional(reader: Callable[[ir.Attribute], T]) -> Callable[[ir.Attribute], T | None]:
    """The same reader, with None for `unit`."""
    return lambda attribute: None if isinstance(attribute.maybe_downcast(), ir.UnitAttr) else reader(attribute)


def parameters(attribute: ir.Attribute, name: str) -> list[Any]:
    """The parameters of an attribute that a dialect declares under this name."""
    dynamic = ir.DynamicAttr(attribute)
    if dynamic.attr_name != name:
        raise ValueError(f"{dynamic.attr_name} is not {name}")
    return list(dynamic.params)
