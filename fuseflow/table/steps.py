"""The steps of Algorithm 2: what each of them does, and the cells that it fills."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

LAST_COLUMNS = ("repeat", "alu", "range", "fill", "join")


@dataclass(frozen=True, slots=True)
class Column:
    """A view (or producer, or the joins): for each row, what stands in its cell."""

    name: str
    cells: tuple[tuple[str, tuple[str, ...]], ...]

    def cell(self, row: str) -> tuple[str, ...]:
        return dict(self.cells).get(row, ())


@dataclass(frozen=True, slots=True)
class TableStep:
    """`cells` are (column, row, what is added there)."""

    title: str
    cells: tuple[tuple[str, str, str], ...]


@dataclass(slots=True)
class Recorder:
    """Takes the steps down while a table is filled. Steps that fill no cell are left out."""

    title: str = ""
    _steps: list[tuple[str, list[tuple[str, str, str]]]] = field(default_factory=list)
    _filled: dict[tuple[str, str, str], None] = field(default_factory=dict)

    def begin(self, title: str) -> None:
        self.title = title

    def note(self, column: str, row: str, text: str) -> None:
        cell = (column, row, text)
        if cell in self._filled:
            return
        self._filled[cell] = None
        if not self._steps or self._steps[-1][0] != self.title:
            self._steps.append((self.title, []))
        self._steps[-1][1].append(cell)

    def steps(self) -> tuple[TableStep, ...]:
        return tuple(TableStep(title, tuple(cells)) for title, cells in self._steps)


def columns(steps: Iterable[TableStep]) -> tuple[Column, ...]:
    """The table that these steps make: views and producers as they come, then what they share."""
    grid: dict[str, dict[str, list[str]]] = {}
    for step in steps:
        for column, row, text in step.cells:
            grid.setdefault(column, {}).setdefault(row, []).append(text)
    names = sorted(grid, key=lambda c: LAST_COLUMNS.index(c) if c in LAST_COLUMNS else -1)
    return tuple(Column(c, tuple((row, tuple(cell)) for row, cell in grid[c].items())) for c in names)
