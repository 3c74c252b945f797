"""How many transactions a second the model of DRAM completes, trace by trace, next to the golden check.

    python tools/bench/memory.py --golden ../shared/golden/hbm [--trace c1_rand]... [--repeats 5] [--json FILE|-]
    python tools/bench/memory.py --golden ../shared/golden/dram/ddr5

Each trace, under both mappings of the golden data, is issued at once and advanced until everything is answered. The rate is that of the
median CPU time; memory and requests are made before. A completion that is not the golden one is exit status 1.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path
from typing import Any

import click
import numpy as np
from host import JSON, finish, seconds

from fuseflow.memory.dram_table import DramTable
from fuseflow.memory.mapping import MAPPINGS
from fuseflow.memory.memory import Memory
from fuseflow.memory.models import Dram
from fuseflow.memory.table_files import preset

MAPPING_FILES = {"RoBaRaCoCh": "ro", "MOP4CLXOR": "mop"}
PRESETS = {
    "ddr4": ("ddr4-3200", "A"),
    "ddr5": ("ddr5-4800", "A"),
    "lpddr5": ("lpddr5-6400", "A"),
    "gddr6": ("gddr6-14000", "A"),
    "hbm2": ("hbm2-2400-perbank", "B"),
    "hbm3": ("hbm3-6400", "A"),
    "hbm4": ("hbm4-8000", "A"),
}
"""The preset and the configuration of the golden data of each standard. Other folders have those of `hbm2`."""


def measure(trace: dict[str, Any], table: DramTable, mapping: str, latency: Any, repeats: int) -> dict[str, Any]:
    """The figures of a trace."""
    times = []
    for _ in range(repeats + 1):  # the first loads the kernels
        memory = Memory(Dram(trace["nch"], MAPPINGS[mapping], table), ports=1)
        memory.issue_all(0, trace["addr"], table.transaction, trace["rw"], trace["arr"])
        times.append(seconds(memory.drain))
    done = memory.requests(0)["done"]
    same, count = int((done - trace["arr"] == latency).sum()), len(done)
    return {
        "name": trace["name"],
        "mapping": mapping,
        "channels": trace["nch"],
        "transactions": count,
        "identical": same,
        "bytes_per_cycle": round(table.transaction * count / int(done.max()), 2),
        "cpu_seconds": round(statistics.median(times[1:]), 6),
        "transactions_per_second": round(count / statistics.median(times[1:])),
    }


def traces(golden: Path, transaction: int, names: tuple[str, ...]) -> list[dict[str, Any]]:
    with np.load(golden / "traces.npz") as stored:
        found = [key.removesuffix("/nch") for key in stored.files if key.endswith("/nch")]
        return [
            {
                "name": name,
                "nch": int(stored[f"{name}/nch"]),
                "arr": stored[f"{name}/arr"].astype(np.int64),
                "addr": stored[f"{name}/addr"].astype(np.int64) * transaction,
                "rw": stored[f"{name}/rw"].astype(np.int64),
            }
            for name in found
            if not names or any(part in name for part in names)
        ]


@click.command()
@click.option(
    "--golden", default="tests/data/hbm", show_default=True, type=click.Path(exists=True, path_type=Path), help="their folder"
)
@click.option("--trace", "names", multiple=True, help="only traces whose name contains this")
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(min=1), help="runs of a trace")
@JSON
def main(golden: Path, names: tuple[str, ...], repeats: int, output: str | None) -> None:
    name, config = PRESETS.get(golden.name, ("hbm2", "r21"))
    table, cases = preset(name).table(), []
    for mapping, file in MAPPING_FILES.items():
        with np.load(golden / f"golden_{config}_{file}.npz") as latencies:
            for trace in traces(golden, table.transaction, names):
                if f"{trace['name']}/lat" in latencies:
                    cases.append(measure(trace, table, mapping, latencies[f"{trace['name']}/lat"], repeats))
    if not cases:
        raise click.UsageError("no trace has such a name")
    rates = [case["transactions_per_second"] for case in cases]
    mean, total, same = statistics.harmonic_mean(rates), *(sum(c[key] for c in cases) for key in ("transactions", "identical"))
    figures = {"repeats": repeats, "load": round(os.getloadavg()[0], 1), "harmonic_mean": round(mean), "transactions": total}
    last = f"harmonic mean {mean / 1e6:.2f} M transactions/s; {same:,} of {total:,} completions identical"
    wrong = ["completions differ from the golden data"] if same != total else []
    finish("memory", output, [*map(line, cases), last], {**figures, "identical": same, "cases": cases}, wrong)


def line(case: dict[str, Any]) -> str:
    return (
        f"{case['name']:20} {case['mapping']:10} {case['transactions']:6,} transactions  "
        f"{100 * case['identical'] / case['transactions']:7.3f} % identical  {case['bytes_per_cycle']:7.2f} B/cycle  "
        f"{case['transactions_per_second'] / 1e6:5.2f} M/s"
    )


if __name__ == "__main__":
    main()
