"""A console that shows control characters in texts instead of sending them to the terminal, and the legend below its tables."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fuseflow.errors import visible
from fuseflow.report.column_meanings import column_meaning
from fuseflow.report.table_width import TableConsole

LEGEND, WIDE = "fuseflow.legend", "fuseflow.wide"
"""The keys of the `Legend`, and of whether tables keep all columns, in a context of click."""


@dataclass(slots=True)
class Legend:
    """The heads of the tables that were printed, in their order, and the console on which they were printed."""

    heads: dict[str, None] = field(default_factory=dict)
    console: Console | None = None

    def note(self, table: Table, console: Console) -> None:
        """Remember the columns of a table that was printed."""
        self.heads |= dict.fromkeys(str(column.header) for column in table.columns)
        self.console = console

    def show(self) -> None:
        """Print the meaning of every column once. Columns that the user named, such as the axes of a sweep, have none."""
        if self.console is None:
            return
        lines = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        for head in self.heads:
            if head.strip() and (meaning := column_meaning(head)) is not None:
                lines.add_row(" ".join(head.split()), meaning)
        console, self.console = self.console, None
        console.print("\ncolumns", highlight=False)
        console.print(lines)


def ask_for_legend(context: click.Context) -> None:
    """Let the command of a context end with a legend of the tables that it printed."""
    legend = context.meta[LEGEND] = Legend()
    context.call_on_close(legend.show)


def asked_legend() -> Legend | None:
    """Return the legend of the command that is being run, or None if `--legend` was not passed."""
    context = click.get_current_context(silent=True)
    legend = None if context is None else context.meta.get(LEGEND)
    return legend if isinstance(legend, Legend) else None


def asked_wide() -> bool:
    """Return whether `--wide` was passed to the command that is being run."""
    context = click.get_current_context(silent=True)
    return context is not None and WIDE in context.meta


class SafeConsole(TableConsole):
    """A console on which a name that holds an escape sequence does nothing. All strings that are printed pass through
    `render_str`, also strings in the cells of tables. `legend` notes the tables that are printed."""

    def __init__(self, *, legend: Legend | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.legend = legend

    def print(self, *objects: Any, **settings: Any) -> None:
        super().print(*objects, **settings)
        for printed in objects:
            if self.legend is not None and isinstance(printed, Table):
                self.legend.note(printed, self)

    def render_str(self, text: str, *args: Any, **kwargs: Any) -> Text:
        return super().render_str(visible(text), *args, **kwargs)

    def on_broken_pipe(self) -> None:
        """End the command in silence if the reader of its output has ended, as in `fuseflow ops | head -1`."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
