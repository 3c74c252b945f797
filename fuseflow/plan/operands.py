"""The other operands of a divided product: each is stored once for each block that some part needs.

    B1 in blocks of 32x1, B2 in single elements        A1 in blocks of 1x32, and A in single elements

An input is copied into other blocks. A tensor that is computed is written once, so that all parts must need it in the same blocks. Blocks
are declared where they were before. Elsewhere they follow from the blocks of the parts, so that indices without parts stay free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from fuseflow.einsum.indices import substitute_tensors
from fuseflow.einsum.nodes import Access, Einsum, Program, Split, TensorType, stored_index
from fuseflow.errors import PlanError
from fuseflow.tensors.blocks import Block, block_text


@dataclass(frozen=True, slots=True)
class Stored:
    """The numbers of the input `source`, stored in blocks."""

    source: str
    block: Block


@dataclass(slots=True)
class Operands:
    """The tensors of a program that is being divided: their declarations by name, how inputs are stored that divided products read, and in
    which blocks results are needed."""

    program: Program
    stored: dict[str, Stored]
    types: dict[str, TensorType] = field(init=False)
    computed: dict[str, Block] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.types = dict(self.program.declared)

    def fresh_name(self, name: str, like: TensorType) -> str:
        """Return a name that no tensor has, and take it for a tensor that is declared like another one."""
        fresh = next(f"{name}{n}" for n in count(1) if f"{name}{n}" not in self.types.keys() | self.program.defined.keys())
        self.types[fresh] = replace(like, name=fresh)
        return fresh

    def in_blocks(self, access: Access, sizes: Mapping[str, int]) -> Access:
        """Return an access to the same numbers, stored in blocks of these sizes along the indices. Along others, blocks stay as they are.

        Raise `PlanError` for a tensor that cannot be stored so.
        """
        declared = self.types.get(access.tensor)
        present = (1,) * len(access.indices) if declared is None or not declared.block else declared.block
        names = (index.inner if isinstance(index, Split) else index for index in map(stored_index, access.indices))
        block = tuple(sizes.get(name, size) for name, size in zip(names, present, strict=True))
        block = block if max(block, default=1) > 1 else ()
        if declared is None or access.tensor in self.program.defined:
            self._compute(access.tensor, block)
            return access
        if block and declared.format is not None and any(level.pads for level in declared.format.levels):
            stored = f"`{access.tensor}` is stored {declared.format.short()}"
            raise PlanError(f"{stored}, and needed in blocks of {block_text(block)}", hint="store it in another format")
        return replace(access, tensor=self._input(declared, block))

    def program_of(self, einsums: Sequence[Einsum], operand: str, parts: Sequence[TensorType]) -> Program:
        """Return the program of divided statements, with `parts` instead of an operand. Inputs that no statement reads any more
        are removed, and the only copy of such an input gets its name."""
        before = {name for einsum in self.program.einsums for name in einsum.operands}
        names = self._lone_copies(einsums)
        renamed = tuple(replace(e, body=substitute_tensors(e.body, names)) for e in einsums) if names else tuple(einsums)
        read = {name for einsum in renamed for name in einsum.operands}
        gone = {operand, *names.values()} | (before - read - self.program.defined.keys())
        kept = {names.get(name, name): type for name, type in self.types.items() if name not in gone}
        types = {name: replace(type, name=name) for name, type in kept.items()} | {part.name: part for part in parts}
        self.stored = {names.get(name, name): stored for name, stored in self.stored.items() if name not in gone}
        sources = {part.name: operand for part in parts} | {name: stored.source for name, stored in self.stored.items()}
        places = {name: place for place, name in enumerate(self.program.declared)}
        ordered = sorted(types.values(), key=lambda type: places.get(sources.get(type.name, type.name), len(places)))
        return replace(self.program, tensors=tuple(ordered), einsums=renamed)

    def _compute(self, name: str, block: Block) -> None:
        present = self.computed.setdefault(name, block)
        if present != block:
            blocks = " and ".join(f"blocks of {block_text(sizes)}" if sizes else "single elements" for sizes in (present, block))
            raise PlanError(
                f"`{name}` is computed, and would be needed in {blocks}",
                hint="give all parts the same size along the index that is reduced",
            )
        if name in self.types and self.types[name].block:
            self.types[name] = replace(self.types[name], block=block)

    def _input(self, declared: TensorType, block: Block) -> str:
        """Return the name of the tensor that holds the numbers of the input `declared` in these blocks: itself or a copy."""
        wanted = Stored(self._stored(declared.name).source, block)
        name = next((name for name in self.types if self._stored(name) == wanted), None) or self.fresh_name(
            wanted.source, declared
        )
        self.stored[name] = wanted
        if declared.block:
            self.types[name] = replace(self.types[name], block=block)
        return name

    def _stored(self, name: str) -> Stored:
        return self.stored.get(name, Stored(name, self.types[name].block))

    def _lone_copies(self, einsums: Sequence[Einsum]) -> dict[str, str]:
        """Return the new copies that are the only one of an input that nothing reads any more, each with that input."""
        read = {name for einsum in einsums for name in einsum.operands}
        sources = [stored.source for name, stored in self.stored.items() if name in read]
        new = {name: stored.source for name, stored in self.stored.items() if name not in self.program.declared}
        return {name: source for name, source in new.items() if source not in read and sources.count(source) == 1}
