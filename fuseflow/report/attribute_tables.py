"""The table of the elements that outputs need of the tensors of a model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.table import Table

from fuseflow.propagation.rows import AttributeRow, total
from fuseflow.report.tables import plain_table


def attribute_table(rows: Sequence[AttributeRow]) -> Table:
    """Return a table with a row for each tensor, sums for each layer of several tensors, and the sums of all below."""
    columns = ("tensor", "shape", "stored\nbefore", "dead", "constant", "needed", "stored\nnow", "shape\nnow")
    table = plain_table(*columns, numbers_from=1, footer=True)
    for layer, group in groupby(rows, key=lambda row: row.layer):
        members = list(group)
        for row in members:
            table.add_row(row.name, _shape(row.shape), *_counts(row), _shape(row.shape_now) if row.now else "")
        if layer and len(members) > 1:
            table.add_row(f"  {layer} in all", "", *_counts(total(members, layer)), "", style="dim")
    for column, footer in zip(table.columns, ("in all", "", *_counts(total(rows, "")), ""), strict=True):
        column.footer = footer
    return table


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _counts(row: AttributeRow) -> tuple[str, ...]:
    return tuple(f"{count:,}" for count in (row.stored, row.dead, row.constant, row.needed, row.now))
