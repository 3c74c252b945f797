"""How long importing a model takes and how much memory: every model of the repository, and a graph convolution on a graph of 235,868 nodes.

    python tools/bench/frontend.py [--case NAME] [--repeats 5] [--json FILE|-]

Each case has a process of its own, in which PyTorch is loaded first: `cold` is the first import in it, `warm` the median of the others, in
seconds; running the model in PyTorch, for the check of a run, is not part of it. Memory in MB: `before`, with the model and its data
built; `peak`, the most during the imports; `parameters`, the module's dense weights, and the share of them that the program has without
a copy of its own.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from host import JSON, finish

ROOT = Path(__file__).resolve().parents[2]
MB = 1 << 20


@dataclass(frozen=True)
class Case:
    name: str
    model: str
    options: dict[str, Any] = field(default_factory=dict)
    data: str | None = None


CASES = (
    Case("gcn, karate", "gcn.py"),
    Case("gcn, 235,868 nodes", "gcn.py", data="synthetic:collab"),
    Case("graphsage, karate", "graphsage.py"),
    Case("gcn_pyg, karate", "gcn_pyg.py"),
    Case("sae", "sae.py"),
    Case("gpt, small", "gpt_bigbird.py", {"small": True}),
    Case("gpt, one decoder", "gpt_bigbird.py", {"part": "decoder"}),
    Case("gpt, 12 decoders", "gpt_bigbird.py"),
)


def measure(case: Case, repeats: int) -> dict[str, Any]:
    """In this process."""
    from fuseflow.errors import FuseFlowError
    from fuseflow.frontend import import_model, load_model

    try:
        model = load_model(ROOT / "models" / case.model, case.data, options=case.options)
    except FuseFlowError as error:
        return {"name": case.name, "skipped": error.message}
    parameters = {
        p.data_ptr(): p.numel() * p.element_size() for p in model.module.parameters() if str(p.layout) == "torch.strided"
    }
    before, seconds = memory("VmRSS"), []
    for _ in range(1 + repeats):
        start = time.perf_counter()
        imported = import_model(model.module, model.inputs, model.formats)
        seconds.append(time.perf_counter() - start)
    shared = sum(parameters.get(t.values.ctypes.data, 0) for t in imported.tensors.values())
    total = sum(parameters.values())
    return {
        "name": case.name,
        "einsums": len(imported.program.einsums),
        "cold": round(seconds[0], 3),
        "warm": round(statistics.median(seconds[1:]), 3),
        "before": before,
        "peak": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "parameters": round(total / MB, 1),
        "shared": round(shared / total, 3) if total else None,
    }


def memory(key: str) -> int:
    """A figure of this process, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(f"{key}:"))


def alone(case: Case, repeats: int) -> dict[str, Any]:
    """In a process of its own."""
    command = [sys.executable, __file__, "--here", "--case", case.name, "--repeats", str(repeats), "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(f"{case.name}: {done.stderr.strip() or done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)["cases"][0]
    return found


@click.command()
@click.option("--case", "wanted", default="", help="only cases whose name contains this")
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(min=1), help="warm imports of a case")
@JSON
@click.option("--here", is_flag=True, help="in this process, the first such case alone")
def main(wanted: str, repeats: int, output: str | None, here: bool) -> None:
    chosen = [case for case in CASES if wanted in case.name]
    if not chosen:
        raise click.UsageError(f"no case has `{wanted}` in its name")
    measured = [measure(case, repeats) if here else alone(case, repeats) for case in (chosen[:1] if here else chosen)]
    finish("frontend", output, map(line, measured), {"repeats": repeats, "load": load(), "cases": measured})


def line(found: dict[str, Any]) -> str:
    if "skipped" in found:
        return f"{found['name']:20} skipped: {found['skipped']}"
    shared = "" if found["shared"] is None else f", {100 * found['shared']:.0f} % shared"
    return (
        f"{found['name']:20} {found['einsums']:4} Einsums  cold {found['cold']:6.2f} s  warm {found['warm']:6.2f} s  "
        f"{found['before']:5} MB, peak {found['peak']:5} MB  parameters {found['parameters']:6.1f} MB{shared}"
    )


def load() -> float:
    return round(os.getloadavg()[0], 1)


if __name__ == "__main__":
    main()
