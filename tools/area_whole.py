"""Compares the area of a graph, which is the sum of its parts, with that of the graph as one module.

    python tools/area_whole.py docs/example/spmm.ein --tensors docs/example/tensors.yaml
    python tools/area_whole.py models/gcn.py --data karate --region layer2

Yosys makes gates of the circuit as one module, by the commands with which it makes gates of a part. Memories are left out on both sides,
since they are no gates. So what is told is how much of the parts goes away beside each other: outputs that nobody reads, and
inputs of which some bits are constant. Takes some minutes for each region. Exit status 1 if a region differs by more than 5 percent.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

import fuseflow as ff
from fuseflow.hardware.area.circuit_area import circuit_areas
from fuseflow.hardware.area.gates import GATE_EQUIVALENT, gate_area
from fuseflow.hardware.area.synthesis import GATES, OPTIMIZE, PROGRAM, STEPS
from fuseflow.hardware.output import bounded_circuit, save_verilog
from fuseflow.samml import nodes as n
from fuseflow.sim import Machine, load_machine

MACHINE, BOUND = "rtl", 0.05


@click.command(help=__doc__.partition("\n")[0])
@click.argument("model")
@click.option("--data", default=None, help="the data of a model file")
@click.option("--tensors", default=None, help="YAML that names the inputs of a program")
@click.option("-O", "--option", "options", multiple=True, metavar="KEY=VALUE", help="an option of a model file's build")
@click.option("--memory", default="ideal", show_default=True, help="behind the machine")
@click.option("--region", "regions", multiple=True, help="of these regions only")
def main(
    model: str, data: str | None, tensors: str | None, options: tuple[str, ...], memory: str, regions: tuple[str, ...]
) -> None:
    machine = load_machine(MACHINE, {"memory": memory})
    given = {"small": True, **dict(option.split("=", 1) for option in options)} if model.endswith(".py") else None
    compiled = ff.compile(model, data=data, tensors=tensors, options=given, machine=machine)
    graphs = [region.graph for region in compiled.regions if not regions or region.graph.name in regions]
    good = [compared(Path(model).stem, graph, machine) for graph in graphs]
    sys.exit(not good or not all(good))


def compared(model: str, graph: n.Graph, machine: Machine) -> bool:
    """Whether the area of a graph is near that of the graph as one module."""
    (area,) = circuit_areas([bounded_circuit(graph, machine)])
    parts = sum(row.total for row in area.parts if row.part.kind != "memory")
    started = time.perf_counter()
    whole = whole_area(graph, machine)
    off = parts / whole - 1
    click.echo(
        f"{model}/{graph.name}: {len(graph.nodes)} nodes, sum of parts {parts:,.0f}, as one module {whole:,.0f}: {off:+.2%}; "
        f"{time.perf_counter() - started:.0f} s"
    )
    return abs(off) <= BOUND


def whole_area(graph: n.Graph, machine: Machine) -> float:
    """The area of a graph as one module, without its memories, in gate equivalents."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "verilog"
        save_verilog(folder, [graph], machine)
        (top,) = (region["top"] for region in json.loads((folder / "circuit.json").read_text())["regions"])
        files = (folder / "files.f").read_text().split()
        memories = [file for file in files if is_memory(file)]
        boxes = [f"read_verilog -sv -lib {' '.join(memories)}"] if memories else []
        script = [
            *boxes,
            f"read_verilog -sv {' '.join(file for file in files if file not in memories)}",
            f"hierarchy -check -top {top}",
            STEPS,
            f"abc -g {GATES} -script {OPTIMIZE}",
            "opt_clean -purge",
            "tee -q -o whole.json stat -json",
        ]
        (folder / "whole.ys").write_text("\n".join(script) + "\n")
        subprocess.run([PROGRAM, "-q", "-s", "whole.ys"], cwd=folder, check=True)
        text = (folder / "whole.json").read_text()
        cells = json.loads(text[text.index("{") :])["design"]["num_cells_by_type"]
    gates = {name: count for name, count in cells.items() if not any(name.startswith(p) or p in name for p in MEMORIES)}
    return gate_area(gates) / GATE_EQUIVALENT


MEMORIES = ("ff_memory", "ff_sram")


def is_memory(file: str) -> bool:
    return file.startswith(MEMORIES)


if __name__ == "__main__":
    main()
