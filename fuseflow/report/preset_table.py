"""The table of the memories that a machine may name."""

from __future__ import annotations

from rich.table import Table

from fuseflow.memory.table_files import preset, preset_names
from fuseflow.report.tables import plain_table


def preset_table() -> Table:
    """Return a table of the presets of memories: the bytes of a nanosecond at most, the nanoseconds of a read in an idle channel whose bank
    has the row open (hit), is closed, or has another row open (conflict), and for each kind of refresh the shares of the peak that patterns
    of lines reach."""
    table = plain_table(
        "DRAM", "refresh", "channels", "peak\nGB/s", "hit\nns", "closed\nns", "conflict\nns", "in order\n% of peak",
        "4 KB apart\n% of peak", "random\n% of peak", numbers_from=2,
    )  # fmt: skip
    for name in preset_names():
        file = preset(name)
        dram = file.table()
        times = (f"{cycles * dram.cycle_ps / 1000:.1f}" for cycles in dram.idle_reads())
        cells = (str(dram.channels), f"{dram.channels * dram.peak:.1f}", *times)
        for kind in (each.refresh for each in file.tables if each.refresh != "none"):
            measured = dict(file.measured)[kind]
            shares = (measured.sequential, measured.strided, measured.random)
            table.add_row(name, kind, *cells, *(f"{share:.1f}" for share in shares))
    return table
