"""The area of a graph, which is the sum of its parts, is near that of the graph as one module.

Yosys makes gates of the circuit as one module, by the commands with which it makes gates of a part. Memories are left out on both sides,
since they are no gates. So what is told is how much of the parts goes away beside each other: outputs that nobody reads, and inputs of
which some bits are constant. That takes minutes for each region.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hardware_models import MODELS
from hardware_tools import require

from fuseflow.hardware.area.circuit_area import circuit_areas
from fuseflow.hardware.area.synthesis import GATES, OPTIMIZE, PROGRAM, STEPS
from fuseflow.hardware.circuit_files import bounded_circuit, save_verilog
from fuseflow.resources.gate_areas import GATE_EQUIVALENT, gate_area
from fuseflow.samml import nodes as n
from fuseflow.sim import Machine, load_machine

MEMORIES = ("ff_memory", "ff_sram")


@pytest.mark.slow
@pytest.mark.parametrize(("model", "region"), [("gcn", "layer1"), ("gcn", "layer2"), ("graphsage", "layer1")])
def test_the_sum_of_the_parts_is_near_the_whole(model: str, region: str, tmp_path: Path) -> None:
    require("pycde", "yosys")
    machine = load_machine("rtl")
    (graph,) = (each.graph for each in MODELS[model].compile(machine).regions if each.graph.name == region)
    (area,) = circuit_areas([bounded_circuit(graph, machine)])
    parts = sum(row.total for row in area.parts if row.part.kind != "memory")
    assert parts / whole_area(graph, machine, tmp_path / "verilog") == pytest.approx(1, abs=0.05)


def whole_area(graph: n.Graph, machine: Machine, folder: Path) -> float:
    """The area of a graph as one module, without its memories, in gate equivalents."""
    save_verilog(folder, [graph], machine)
    (top,) = (region["top"] for region in json.loads((folder / "circuit.json").read_text())["regions"])
    files = (folder / "files.f").read_text().split()
    memories = [file for file in files if file.startswith(MEMORIES)]
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
    gates = {name: count for name, count in cells.items() if not any(part in name for part in MEMORIES)}
    return gate_area(gates) / GATE_EQUIVALENT
