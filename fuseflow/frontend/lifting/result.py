"""The analysis of a model: tensors with their masks, and a table of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch import Tensor

from fuseflow.errors import FrontendError, did_you_mean
from fuseflow.frontend.lifting.exported import Kind
from fuseflow.frontend.lifting.scrambling import Guess
from fuseflow.propagation.rows import AttributeRow, TensorKind, total

_KINDS: Mapping[Kind, TensorKind] = {
    "parameter": "constant",
    "buffer": "buffer",
    "input": "input",
    "intermediate": "intermediate",
}
"""The names in the table for the kinds of tensors of a graph."""


@dataclass(frozen=True, slots=True, eq=False)
class TensorAttributes:
    """The known and needed entries of a tensor, as masks of its shape.

    - `stored`: entries that the user's masks keep.
    - `known`: entries whose number is known before the model runs, with the numbers in `value`, which is 0 elsewhere.
    - `needed`: entries that some output needs.
    """

    name: str
    kind: Kind
    stored: Tensor
    known: Tensor
    value: Tensor
    needed: Tensor

    @property
    def dead(self) -> Tensor:
        """Entries that need not be stored: known to be 0, or not known and not needed."""
        return (self.known & (self.value == 0)) | (~self.known & ~self.needed)

    @property
    def row(self) -> AttributeRow:
        """The counts of this tensor. It is cut only by `shrink`, so that its shape stays."""
        masks = (self.stored, self.dead, self.known & (self.value != 0), self.needed, self.stored & ~self.dead)
        stored, dead, constant, needed, now = (int(mask.sum()) for mask in masks)
        shape, kind = tuple(self.known.shape), _KINDS[self.kind]
        layer = self.name.rpartition(".")[0]
        return AttributeRow(self.name, kind, layer, shape, self.known.numel(), stored, dead, constant, needed, now, shape)


@dataclass(frozen=True, slots=True, eq=False)
class ModuleAttributes(Mapping[str, TensorAttributes]):
    """The known and needed entries of every tensor of a model, by its name: of a parameter or a buffer, of an argument of
    `forward`, or of a module and an operator in it, such as `layer1.relu`. `guesses` has the operators without a rule.

    A name of a tied weight finds the same tensor as its first name, under which it is listed.
    """

    tensors: Mapping[str, TensorAttributes]
    aliases: Mapping[str, str]
    guesses: tuple[Guess, ...]

    def __getitem__(self, name: str) -> TensorAttributes:
        tensor = self.tensors.get(self.aliases.get(name, name))
        if tensor is None:
            raise FrontendError(f"the model has no tensor `{name}`", hint=did_you_mean(name, [*self.tensors, *self.aliases]))
        return tensor

    def __contains__(self, name: object) -> bool:
        return name in self.tensors or name in self.aliases

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    @property
    def rows(self) -> tuple[AttributeRow, ...]:
        """The counts of each tensor, in the order of the graph."""
        return tuple(tensor.row for tensor in self.tensors.values())

    def total(self, kind: TensorKind = "constant") -> AttributeRow:
        """Return the sums of the counts of all tensors of a kind. Parameters are `constant`."""
        return total((row for row in self.rows if row.kind == kind), "", kind)

    def __str__(self) -> str:
        rows = [row for row in self.rows if row.kind == "constant"]
        cells = [("tensor", "shape", "stored before", "dead", "constant", "needed", "now"), *map(_cells, [*rows, self.total()])]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        table = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in cells]
        return "\n".join([*table, *map(str, self.guesses)])


def _cells(row: AttributeRow) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (row.stored, row.dead, row.constant, row.needed, row.now))
    return (row.name, " x ".join(map(str, row.shape)), *counts)
