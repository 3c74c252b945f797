"""The steps of Algorithm 2, each with the cells that it fills."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

LAST_COLUMNS = ("repeat", "alu", "range", "fill", "join")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, for a view, a producer or a shared kind of primitive. `cells` has the texts of each row."""

    name: str
    cells: tuple[tuple[str, tuple[str, ...]], ...]

    def cell(self, row: str) -> tuple[str, ...]:
        return dict(self.cells).get(row, ())


@dataclass(frozen=True, slots=True)
class TableStep:
    """A step of Algorithm 2. Each of its `cells` is a column, a row and the text that the step adds there."""

    title: str
    cells: tuple[tuple[str, str, str], ...]


@dataclass(slots=True)
class Recorder:
    """Records the steps in which a table is filled. Steps that fill no cell are left out."""

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
    """Return the columns of the table that these steps make: views and producers in order, then the shared columns."""
    grid: dict[str, dict[str, list[str]]] = {}
    for step in steps:
        for column, row, text in step.cells:
            grid.setdefault(column, {}).setdefault(row, []).append(text)
    names = sorted(grid, key=lambda c: LAST_COLUMNS.index(c) if c in LAST_COLUMNS else -1)
    return tuple(Column(c, tuple((row, tuple(cell)) for row, cell in grid[c].items())) for c in names)
