"""The table of the sparse tensors of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from fuseflow.report.tables import plain_table

if TYPE_CHECKING:
    from fuseflow.sparsity.summary import SummaryRow


def sparsity_table(rows: Sequence[SummaryRow]) -> Table:
    """Return a table with a row for each tensor, and the sums of its numbers below."""
    table = plain_table(
        "tensor",
        "rule",
        "layout",
        "shape",
        "kept",
        "share",
        "energy",
        "bytes\nbefore",
        "bytes\nafter",
        numbers_from=3,
        footer=True,
    )
    for row in rows:
        energy = "" if row.energy is None else f"{row.energy:.4f}"
        sizes = ("" if size is None else f"{size:,}" for size in (row.bytes_before, row.bytes_after))
        shape = " x ".join(map(str, row.shape))
        table.add_row(row.name, row.rule, row.layout, shape, f"{row.kept:,}", _share(row.kept, row.size), energy, *sizes)
    weights = [row for row in rows if row.kind == "weight"]
    kept, size = sum(row.kept for row in weights), sum(row.size for row in weights)
    before, after = (
        (sum(filter(None, sizes)) for sizes in zip(*((r.bytes_before, r.bytes_after) for r in weights), strict=True))
        if weights
        else (0, 0)
    )
    footers = ("weights", "", "", "", f"{kept:,}", _share(kept, size), "", f"{before:,}", f"{after:,}")
    for column, footer in zip(table.columns, footers, strict=True):
        column.footer = footer
    return table


def _share(kept: int, size: int) -> str:
    return f"{kept / size:.4f}" if size else ""
