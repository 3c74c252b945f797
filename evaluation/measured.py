"""One run of a program, as the studies of this folder report it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from fuseflow.lower.regions import CompiledRegion
from fuseflow.report.table_width import print_table
from fuseflow.run.result import RegionResult


class Differs(Exception):
    """A run that computes something else than it must."""


def must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Differs(otherwise)


@dataclass(frozen=True, slots=True)
class Run:
    """Regions one after the other, added up. `order` is that of the last; `copies` are the cycles of permuted copies, in `cycles` too."""

    order: tuple[str, ...]
    cycles: int
    copies: int
    firings: int
    flops: int
    bytes_read: int
    bytes_written: int

    @classmethod
    def of(cls, compiled: Sequence[CompiledRegion], results: Sequence[RegionResult]) -> Run:
        runs = [r.simulation for r in results]
        moved = [row for run in runs for row in run.traffic]
        return cls(
            order=compiled[-1].fused.order,
            cycles=sum(r.cycles for r in results),
            copies=sum(r.cycles for r in results if not r.einsums),
            firings=sum(run.firings for run in runs),
            flops=sum(run.flops for run in runs),
            bytes_read=sum(row.bytes for row in moved if row.direction == "read"),
            bytes_written=sum(row.bytes for row in moved if row.direction == "write"),
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "order": ",".join(self.order)}


def show(table: Table) -> None:
    """On standard output, however wide it is."""
    print_table(Console(markup=False, highlight=False), table)
