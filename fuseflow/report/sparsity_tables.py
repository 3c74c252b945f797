"""Tables with a row for each tensor of a model: the elements that its outputs need, and what is kept of a sparse tensor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich.table import Table

from fuseflow.propagation.attribute_table import AttributeRow, total
from fuseflow.report.tables import add_footer, plain_table, shape_text

if TYPE_CHECKING:
    from fuseflow.sparsity.summary import SummaryRow


def attribute_table(rows: Sequence[AttributeRow]) -> Table:
    """Return a table with a row for each tensor, sums for each layer of several tensors, and the sums of all below."""
    columns = ("tensor", "shape", "stored\nbefore", "dead", "constant", "needed", "stored\nnow", "shape\nnow")
    table = plain_table(*columns, numbers_from=1, footer=True)
    for layer, group in groupby(rows, key=lambda row: row.layer):
        members = list(group)
        for row in members:
            table.add_row(row.name, shape_text(row.shape), *_counts(row), shape_text(row.shape_now) if row.now else "")
        if layer and len(members) > 1:
            table.add_row(f"  {layer}, total", "", *_counts(total(members, layer)), "", style="dim")
    add_footer(table, "total", "", *_counts(total(rows, "")), "")
    return table


def _counts(row: AttributeRow) -> tuple[str, ...]:
    return tuple(f"{count:,}" for count in (row.stored, row.dead, row.constant, row.needed, row.now))


def sparsity_table(rows: Sequence[SummaryRow]) -> Table:
    """Return a table with a row for each sparse tensor, and the sums of its numbers below."""
    columns = ("tensor", "rule", "layout", "shape", "kept", "share", "energy", "bytes\nbefore", "bytes\nafter")
    table = plain_table(*columns, numbers_from=3, footer=True)
    for row in rows:
        energy = "" if row.energy is None else f"{row.energy:.4f}"
        sizes = ("" if size is None else f"{size:,}" for size in (row.bytes_before, row.bytes_after))
        kept = f"{row.kept:,}", _share(row.kept, row.size)
        table.add_row(row.name, row.rule, row.layout, shape_text(row.shape), *kept, energy, *sizes)
    weights = [row for row in rows if row.kind == "weight"]
    kept_of_all, size_of_all = sum(row.kept for row in weights), sum(row.size for row in weights)
    before, after = sum(row.bytes_before or 0 for row in weights), sum(row.bytes_after or 0 for row in weights)
    sums = f"{kept_of_all:,}", _share(kept_of_all, size_of_all), "", f"{before:,}", f"{after:,}"
    add_footer(table, "weights", "", "", "", *sums)
    return table


def _share(kept: int, size: int) -> str:
    return f"{kept / size:.4f}" if size else ""
