"""The table of the resources that regions occupy on an accelerator."""

from __future__ import annotations

from collections.abc import Iterable

from rich.markup import escape
from rich.table import Table

from fuseflow.report.tables import plain_table
from fuseflow.resources import Resources

HEADINGS = ("mul", "add", "special", "ports", "stream\nunits", "FIFO\nbytes", "workspace\nbytes", "buffer\nbytes", "area")
"""The headings of the components, in the order of `resources.COMPONENTS`."""


def resource_table(regions: Iterable[tuple[str, Resources]]) -> Table:
    """Return a table with a row for each region, and the most of each component. Regions run one after the other, so a machine that has
    the most of each has room for all of them."""
    rows = tuple(regions)
    table = plain_table("region", *HEADINGS, numbers_from=1, footer=True)
    for name, resources in rows:
        table.add_row(escape(name), *_cells(resources))
    for column, cell in zip(table.columns, ("most", *_cells(Resources.most_of(r for _, r in rows))), strict=True):
        column.footer = cell
    return table


def _cells(resources: Resources) -> tuple[str, ...]:
    """Return the resources by component as text: with `≥` if a run may take more, `≤` if it may take less, and `unbounded`."""
    counts = (resources.mul, resources.add, resources.special, resources.port, resources.stream)
    fifo = "unbounded" if resources.fifo is None else f"{'≥ ' if resources.fifo_grows else ''}{resources.fifo:,}"
    workspace = f"{'≤ ' if resources.workspace_bound else ''}{resources.workspace:,}"
    area = "unbounded" if resources.area is None else f"{'≥ ' if resources.fifo_grows else ''}{resources.area:,}"
    return (*(f"{count:,}" for count in counts), fifo, workspace, f"{resources.buffer:,}", area)
