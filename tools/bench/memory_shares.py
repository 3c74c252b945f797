"""Measure the shares of the peak that memories move at three patterns of reads, which `fuseflow machines` lists.

    python tools/bench/memory_shares.py [--write] [NAME...]

NAME is a preset (all if none is given), or a machine file. Lines of 64 bytes are offered twice as fast as the peak: in order, 4 KB apart,
and at random places. A run meets two refreshes of each bank. For each kind of refresh of a memory a line of YAML is printed; `--write` puts
them into the file of the preset.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from fuseflow.machine.files import load_machine
from fuseflow.memory import table_files
from fuseflow.memory.mapping import Ints
from fuseflow.memory.memory import Memory
from fuseflow.memory.models import Dram
from fuseflow.memory.settings import DramMemory

LINE = 64
REFRESHES = 1.92308
"""How many refreshes of all banks a run meets: those of 30,000 lines at HBM2 with eight channels."""
STEPS = 2560
"""Shares are multiples of 1 / 2,560, a tenth of a byte of the 256 bytes that HBM2 moves in a cycle."""
WITHOUT_REFRESH = 3900
"""The cycles that count as the period of a memory without refresh."""
PRESETS = Path(table_files.__file__).parent / "presets"


def patterns(lines: int, capacity: int) -> dict[str, Ints]:
    """The addresses of the lines of each pattern."""
    return {
        "sequential": LINE * np.arange(lines),
        "strided": 4096 * np.arange(lines) % (capacity // 2),
        "random": LINE * np.random.default_rng(0).integers(0, capacity // LINE, lines),
    }


def shares(memory: DramMemory) -> dict[str, float]:
    """The share of each pattern in percent."""
    table = memory.dram
    peak = table.bytes_per_cycle * memory.channels
    period = table.refresh_period * (table.banks if table.refresh == "per-bank" else 1) or WITHOUT_REFRESH
    lines, found = round(REFRESHES * period * peak / LINE), dict[str, float]()
    for name, addresses in patterns(lines, memory.channels * table.channel_bytes).items():
        model = Memory(Dram(memory.channels, lambda _: memory.address_mapping, table), ports=1)
        units = (addresses[:, None] + np.arange(0, LINE, table.transaction)).ravel()
        model.issue_all(0, units, table.transaction, 0, np.arange(len(units)) * table.transaction // (2 * peak))
        model.drain()
        share = LINE * lines / int(model.requests(0)["done"].max()) / peak
        found[name] = round(STEPS * share) / STEPS * 100
    return found


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--write", is_flag=True, help="Put the shares into the files of presets.")
def main(names: tuple[str, ...], write: bool) -> None:
    for name in names or table_files.preset_names():
        memory = load_machine(name).memory
        if not isinstance(memory, DramMemory):
            raise click.UsageError(f"{name} has no DRAM")
        lines = ["measured: # in percent of the peak"]
        for kind in memory.refreshes:
            refreshed = load_machine(name, {"memory.refresh": kind}).memory
            assert isinstance(refreshed, DramMemory)
            cells = ", ".join(f"{pattern}: {share:.4f}" for pattern, share in shares(refreshed).items())
            lines.append(f"  {kind}: {{{cells}}}")
        print(f"{name}:", *lines, sep="\n", flush=True)
        if write and name in table_files.preset_names():
            path = PRESETS / f"{name}.yaml"
            kept, _, _ = path.read_text().partition("measured:")
            path.write_text(kept + "\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
