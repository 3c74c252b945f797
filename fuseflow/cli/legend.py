"""The option `--legend`: below all tables that a command printed, the meanings of their columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from fuseflow.cli.command import Command

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_LEGEND = "fuseflow.legend"


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
        from rich.table import Table

        from fuseflow.report.column_meanings import column_meaning

        lines = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        for head in self.heads:
            if head.strip() and (meaning := column_meaning(head)) is not None:
                lines.add_row(" ".join(head.split()), meaning)
        console, self.console = self.console, None
        console.print("\ncolumns", highlight=False)
        console.print(lines)


def legend_option(command: Command) -> Command:
    show = "Say what the columns of the tables mean, below them."
    option = click.option("--legend", is_flag=True, is_eager=True, expose_value=False, callback=_remember, help=show)
    return option(command)


def _remember(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        legend = Legend()
        context.meta[_LEGEND] = legend
        context.call_on_close(legend.show)


def asked_legend() -> Legend | None:
    """Return the legend of the command that is being run, or None if `--legend` was not passed."""
    context = click.get_current_context(silent=True)
    legend = None if context is None else context.meta.get(_LEGEND)
    return legend if isinstance(legend, Legend) else None
