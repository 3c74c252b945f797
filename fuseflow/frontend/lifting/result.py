"""What an analysis of a model found: tensors with their masks, and a table of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from fuseflow.errors import FrontendError, did_you_mean
from fuseflow.frontend.lifting.exported import Kind
from fuseflow.frontend.lifting.scrambling import Guess


@dataclass(frozen=True, slots=True)
class Row:
    """How many entries of a tensor, of `size`, were stored before; how many are dead now, known to be another number than 0, and needed."""

    name: str
    kind: str
    shape: tuple[int, ...]
    size: int
    stored: int
    dead: int
    constant: int
    needed: int

    @property
    def share(self) -> float:
        """The share of the entries that is dead."""
        return self.dead / self.size if self.size else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return {**asdict(self), "shape": list(self.shape)}


@dataclass(frozen=True, slots=True, eq=False)
class TensorAttributes:
    """What is known of the entries of a tensor, as masks of its shape.

    - `stored`: what the user's masks kept.
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
    def row(self) -> Row:
        """The counts of this tensor."""
        counts = (self.stored, self.dead, self.known & (self.value != 0), self.needed)
        return Row(self.name, self.kind, tuple(self.known.shape), self.known.numel(), *(int(mask.sum()) for mask in counts))


@dataclass(frozen=True, slots=True, eq=False)
class ModuleAttributes(Mapping[str, TensorAttributes]):
    """What is known and needed of every tensor of a model, by its name: that of a parameter or a buffer, of an argument of `forward`, or of
    a module and an operator in it, such as `layer1.relu`. `guesses` has the operators without a rule.

    A name of a tied weight finds the same tensor as its first name, under which it is listed.
    """

    tensors: Mapping[str, TensorAttributes]
    aliases: Mapping[str, str]
    guesses: tuple[Guess, ...]

    def __getitem__(self, name: str) -> TensorAttributes:
        found = self.tensors.get(self.aliases.get(name, name))
        if found is None:
            raise FrontendError(f"the model has no tensor `{name}`", hint=did_you_mean(name, [*self.tensors, *self.aliases]))
        return found

    def __contains__(self, name: object) -> bool:
        return name in self.tensors or name in self.aliases

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The counts of each tensor, in the order of the graph."""
        return tuple(tensor.row for tensor in self.tensors.values())

    def total(self, kind: Kind = "parameter") -> Row:
        """Return the sums of the counts of all tensors of a kind."""
        return sum_of(kind, (row for row in self.rows if row.kind == kind))

    def __str__(self) -> str:
        total = self.total()
        lines = [row for row in self.rows if row.kind == "parameter"]
        cells = [("tensor", "shape", "stored before", "dead", "constant", "needed"), *map(_cells, [*lines, total])]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        table = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in cells]
        return "\n".join([*table, *map(str, self.guesses)])


def sum_of(kind: str, rows: Iterable[Row]) -> Row:
    """Return a row with the sums of the counts of others."""
    counts = [(row.size, row.stored, row.dead, row.constant, row.needed) for row in rows]
    return Row("total", kind, (), *map(sum, zip(*counts, strict=True))) if counts else Row("total", kind, (), 0, 0, 0, 0, 0)


def _cells(row: Row) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (row.stored, row.dead, row.constant, row.needed))
    return (row.name, " x ".join(map(str, row.shape)), *counts)
