"""The table of the memories that a machine may name."""

from __future__ import annotations

from rich.table import Table

from fuseflow.memory.table_files import preset, preset_names
from fuseflow.report.tables import plain_table


def preset_table() -> Table:
    """Return a table of the presets of memories: the bytes of a nanosecond at most, the nanoseconds of a read in an idle channel whose bank
    has the row open (hit), is closed, or has another row open (conflict), and the shares of the peak that patterns of lines reach."""
    table = plain_table(
        "memory", "channels", "peak\nGB/s", "hit\nns", "closed\nns", "conflict\nns", "in order\n% of peak", "4 KB apart\n% of peak",
        "random\n% of peak", numbers_from=1,
    )  # fmt: skip
    for name in preset_names():
        file = preset(name)
        dram, measured = file.table(), file.measured
        times = (f"{cycles * dram.cycle_ps / 1000:.1f}" for cycles in dram.idle_reads())
        shares = (measured.sequential, measured.strided, measured.random) if measured else ()
        table.add_row(
            name,
            str(dram.channels),
            f"{dram.channels * dram.peak:.1f}",
            *times,
            *(f"{share:.1f}" for share in shares),
        )
    return table
