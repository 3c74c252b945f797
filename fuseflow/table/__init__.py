"""Fusion tables: a fused region in a loop order becomes a table of primitives, and the table a graph (the paper's Algorithm 2)."""

from fuseflow.table.results import build_table
from fuseflow.table.table import FusionTable, TableNodes, TableStep, emit

__all__ = ["FusionTable", "TableNodes", "TableStep", "build_table", "emit"]
