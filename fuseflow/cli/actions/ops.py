"""What `fuseflow ops` does."""

from __future__ import annotations

from fuseflow.cli.common import console
from fuseflow.report.tables import operator_table, print_table, reducer_table


def ops() -> None:
    out = console()
    print_table(out, operator_table())
    out.print()
    print_table(out, reducer_table())
