"""Changes of how a tensor of a program is stored, or read. Results of the program stay as they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.index_names import substitute_tensors, unused_name
from fuseflow.einsum.nodes import Keep, Program, TensorType
from fuseflow.frontend.imported_program import Source
from fuseflow.keep_rules import NONZERO
from fuseflow.tensors import Format


class LayoutChange(ABC):
    """A change of how one tensor or several are stored, or read. Equal changes are the same."""

    @abstractmethod
    def applied(self, source: Source) -> Source:
        """Return the source with this change. It has the same outputs."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the change as plain values, which `from_json` reads."""

    @abstractmethod
    def __str__(self) -> str:
        """Return a sentence for the user, without a full stop."""


@dataclass(frozen=True, slots=True)
class StoredAs(LayoutChange):
    """Tensors, by name, are stored in other formats."""

    formats: tuple[tuple[str, Format], ...]

    def applied(self, source: Source) -> Source:
        types = infer(source.program).declared
        declared = dict(source.program.declared)
        for name, format in self.formats:
            known = declared.get(name, TensorType(name, types[name].shape, dtype=types[name].dtype))
            declared[name] = replace(known, format=format)
        return replace(source, program=replace(source.program, tensors=tuple(declared.values())))

    def to_json(self) -> dict[str, Any]:
        return {"formats": [[name, str(format)] for name, format in self.formats]}

    def __str__(self) -> str:
        return ", ".join(f"`{name}` is stored {format.short()}" for name, format in self.formats)


@dataclass(frozen=True, slots=True)
class WithoutZeros(LayoutChange):
    """The result of an Einsum is stored in another format, and its zeros are not stored."""

    result: str
    format: Format

    def applied(self, source: Source) -> Source:
        stored = StoredAs(((self.result, self.format),)).applied(source)
        kept = (replace(e, body=Keep(NONZERO, (), e.body)) if e.name == self.result else e for e in stored.program.einsums)
        return replace(stored, program=replace(stored.program, einsums=tuple(kept)))

    def to_json(self) -> dict[str, Any]:
        return {"result": self.result, "format": str(self.format)}

    def __str__(self) -> str:
        return f"`{self.result}` is stored {self.format.short()} without its zeros"


@dataclass(frozen=True, slots=True)
class SecondCopy(LayoutChange):
    """The Einsum `reader` reads a copy of an input whose levels are in the opposite order. It is a further input, made once."""

    reader: str
    tensor: str

    def applied(self, source: Source) -> Source:
        program, copy = source.program, self.copy(source.program)
        declared = {**program.declared, copy.name: copy}
        einsums = [
            replace(e, body=substitute_tensors(e.body, {self.tensor: copy.name})) if e.name == self.reader else e
            for e in program.einsums
        ]
        return replace(
            source,
            program=replace(program, tensors=tuple(declared.values()), einsums=tuple(einsums)),
            tensors={**source.tensors, copy.name: source.tensors[self.tensor]},
            constants=(*source.constants, *([copy.name] if self.tensor in source.constants else [])),
            copies={**source.copies, copy.name: self.tensor},
        )

    def copy(self, program: Program) -> TensorType:
        """Return the declaration of the copy: the one that the program has, or a new one."""
        own = program.declared[self.tensor]
        assert own.format is not None, "only an input with a compressed level is copied"
        format = replace(own.format, order=own.format.order[::-1])
        name = f"{self.tensor}.by_{'rows' if format.order[0] == 0 else 'columns'}"
        wanted = replace(own, name=name, format=format)
        taken = program.declared.keys() | program.defined.keys()
        return wanted if program.declared.get(name) == wanted else replace(wanted, name=unused_name(name, taken))

    def to_json(self) -> dict[str, Any]:
        return {"reader": self.reader, "tensor": self.tensor}

    def __str__(self) -> str:
        return f"`{self.reader}` reads a second copy of `{self.tensor}`, by the other dimension"


def from_json(values: Mapping[str, Any], program: Program) -> LayoutChange:
    """Return the change of a program of which these are the plain values."""
    if "reader" in values:
        return SecondCopy(values["reader"], values["tensor"])
    ranks = {name: len(type.shape) for name, type in infer(program).declared.items()}
    if "result" in values:
        return WithoutZeros(values["result"], Format.parse(values["format"], ranks[values["result"]]))
    return StoredAs(tuple((name, Format.parse(text, ranks[name])) for name, text in values["formats"]))
