"""Fusion tables: a fused region in a loop order becomes a table of primitives, and the table a graph (the paper's Algorithm 2)."""

from fuseflow.table.emit import emit
from fuseflow.table.results import build_table
from fuseflow.table.steps import Column, TableStep
from fuseflow.table.table import FusionTable, TableNodes

__all__ = ["Column", "FusionTable", "TableNodes", "TableStep", "build_table", "emit"]
