"""The action of the command `fuseflow ops`, which `cli/ops.py` declares."""

from __future__ import annotations

from fuseflow.cli.common import console, print_pieces
from fuseflow.report.tables import operator_table, reducer_table


def ops() -> None:
    print_pieces(console(), [operator_table(), "", reducer_table()])
