"""Reading and writing MLIR modules of the dialects: a context that knows them, and operations whose attributes are read with their types.

MLIR checks an operation against its declaration when a text is parsed. A reader that refuses an operation afterwards gives its place in
the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from torch_mlir import ir
from torch_mlir.dialects import irdl

from fuseflow.dialects.attributes import UnrepresentableError
from fuseflow.dialects.sandboxed_parser import Diagnostic, InvalidModuleError, canonical_text, declaration_text
from fuseflow.dialects.text_screen import screen_text
from fuseflow.errors import FuseFlowError, Span

T = TypeVar("T")


@contextmanager
def context(*dialects: str, error: type[FuseFlowError], file: str = "<mlir>") -> Iterator[None]:
    """Enter a new MLIR context that knows these dialects. An MLIR error inside the block is raised as an `error` with its place in
    `file`."""
    with ir.Context(), ir.Location.unknown():
        for dialect in dialects:
            irdl.load_dialects(ir.Module.parse(declaration_text(dialect)))
        try:
            yield
        except ir.MLIRError as problem:
            diagnostics = [Diagnostic(d.message, str(d.location), tuple(map(str, d.notes))) for d in problem.error_diagnostics]
            raise _refusal(diagnostics, error, _span(diagnostics[0].location, file)) from None
        except UnrepresentableError as problem:
            raise error(f"there is no MLIR form: {problem}") from None


def show(module: ir.Module) -> str:
    """Verify a module and return its text in MLIR's generic form."""
    module.operation.verify()
    return str(module.operation.get_asm(assume_verified=True))


def parse(text: str, file: str, dialects: Sequence[str], error: type[FuseFlowError]) -> Module:
    """Parse a text in the current context, which must know `dialects`. Raise `error` if the module holds operations of other dialects."""
    screen_text(text, file, dialects, error)
    try:
        canonical = canonical_text(text, dialects)
    except InvalidModuleError as problem:
        raise _refusal(problem.diagnostics, error, _span(problem.diagnostics[0].location, file) or Span(file, 1)) from None
    module = Module(ir.Module.parse(canonical), file, error)
    for op in module.operations:
        if op.name.partition(".")[0] not in dialects:
            dialect_names = " and ".join(f"`{dialect}`" for dialect in dialects)
            op.refuse("does not belong here", f"the module should hold operations of {dialect_names} alone")
    return module


def _refusal(diagnostics: Sequence[Diagnostic], error: type[FuseFlowError], span: Span | None) -> FuseFlowError:
    """Return the error that says why MLIR refuses a module."""
    first = diagnostics[0]
    return error(f"MLIR: {first.message}", notes=[note for note in first.notes if "see current operation" not in note], span=span)


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed module. Its operations hold a reference to it, because MLIR's Python objects do not keep it alive."""

    handle: ir.Module
    file: str
    error: type[FuseFlowError]

    @property
    def operations(self) -> list[Operation]:
        """The operations of the module, in order."""
        return [Operation(op.operation, self) for op in self.handle.body.operations]

    def only(self, name: str) -> Operation:
        """Return the one operation with this name. Raise the error of the module if there is none or more than one."""
        operations = self.operations
        matches = [op for op in operations if op.name == name]
        if len(matches) > 1:
            matches[1].refuse("stands here a second time", "a module holds one")
        if not matches:
            contents = ", ".join(list(dict.fromkeys(op.name for op in operations))[:10]) or "nothing"
            raise self.error(f"the module has no `{name}`; it holds {contents}", span=Span(self.file, 1))
        return matches[0]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a module. Each reading method returns an attribute as a Python value and raises an error with the place of the
    operation if the attribute has another type."""

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
        """The place of the operation in the text, or None if the text does not tell."""
        return _span(str(self.op.location), self.module.file)

    def refuse(self, reason: str, hint: str = "") -> NoReturn:
        """Raise the error of the module with the place of this operation."""
        raise self.module.error(f"`{self.name}` {reason}", hint=hint, span=self.place)

    def operand(self, position: int, values: Mapping[ir.Value, T]) -> T:
        """Return the entry of `values` for an operand. MLIR lets an operation stand before the one that makes its operand; this method
        refuses that."""
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

    def read(self, name: str, reader: Callable[[ir.Attribute], T], expected: str) -> T:
        """Return the result of `reader` on an attribute. `expected` says in words which attributes the reader accepts."""
        text = "an attribute"
        try:
            attribute = self.op.attributes[name]  # which MLIR's Python cannot hold if its elements have no bits
            text = str(attribute)
            return reader(attribute)
        except (ValueError, TypeError, RuntimeError):
            # A list or attribute of other elements than it should have, or a string that is no UTF-8.
            excerpt = text if len(text) < 100 else f"{text[:100]} ..."
            self.refuse(f"has the attribute `{name}` = {excerpt}; it should be {expected}")


def _span(location: str, file: str) -> Span | None:
    """Return the place of a location in the parsed text, or None if the text itself gives the operation another location."""
    place = re.fullmatch(r'loc\("-":(\d+):(\d+)\)', location)
    return Span(file, int(place[1]), int(place[2])) if place else None


# The functions below return the value of an attribute. Each of them raises `ValueError` for an attribute of another type.


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
    """Return a reader that gives None for the attribute `unit` and is `reader` for any other."""
    return lambda attribute: None if isinstance(attribute.maybe_downcast(), ir.UnitAttr) else reader(attribute)


def parameters(attribute: ir.Attribute, name: str) -> list[Any]:
    """Return the parameters of an attribute that a dialect declares as `name`. Raise `ValueError` for another attribute."""
    dynamic = ir.DynamicAttr(attribute)
    if dynamic.attr_name != name:
        raise ValueError(f"{dynamic.attr_name} is not {name}")
    return list(dynamic.params)
