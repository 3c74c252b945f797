"""Models at their small size as circuits, the bits that these write, and their modules in front of linters and synthesizers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt
from hardware_cases import Tally, circuit_of, hardware_case
from lane_cases import lane_case

import fuseflow as ff
from fuseflow.firing_rules.rules import EMPTY, VALUE
from fuseflow.hardware.circuit_files import save_verilog
from fuseflow.hardware.cosimulate import Cosimulation
from fuseflow.primitives.write import WRITTEN
from fuseflow.run.compiled import Compiled
from fuseflow.samml import nodes as n
from fuseflow.sim import Machine

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 32
"""The bits of a number on this machine."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model at its small size. `data` is "" for the data that the model file names. Of tensors in `blocks` circuits compute with so many
    `units`."""

    file: str
    data: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    blocks: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    units: int = 0

    def compile(self, machine: Machine, schedule: ff.Schedule | None = None) -> Compiled:
        schedule = schedule or ff.Schedule()
        for tensor, block in self.blocks.items():
            schedule = schedule.block(tensor, *block)
        if self.units:
            machine = machine.model_copy(update={"tile_macs": self.units})
        path, options = ROOT / "models" / f"{self.file}.py", {"small": True, **self.options}
        return ff.compile(path, schedule=schedule, data=self.data or None, options=options, machine=machine)


MODELS = {
    "gcn": Model("gcn", "karate"),
    "graphsage": Model("graphsage", "karate"),
    "sae": Model("sae"),
    "attention": Model("gpt_bigbird", options={"part": "attention"}),
}
IN_BLOCKS = {
    "attention in blocks": Model("gpt_bigbird", options={"part": "attention"}, blocks={"mask": (4, 4)}, units=4),
    "decoder in blocks": Model("gpt_bigbird", options={"part": "decoder"}, blocks={"mask": (4, 4)}, units=4),
    "gcn in blocks": Model("gcn", "karate", blocks={"adj": (2, 2)}, units=2),
}
"""Models whose streams carry tiles."""
ALL_MODELS = MODELS | IN_BLOCKS


def compared_values(graph: n.Graph, run: Cosimulation) -> tuple[int, int]:
    """How many values a circuit wrote to its memory, and how many of them have other bits than those that the simulator stored."""
    assert run.simulation is not None
    total, wrong = 0, 0
    for node in graph.nodes:
        if isinstance(node, n.WriteValues):
            tensor = run.simulation.outputs[node.tensor]
            fill = int(np.float32(tensor.fill).view(np.uint32))
            written = written_values(run.evaluation.tokens[node.name, WRITTEN], fill, prod(tensor.tile))
            stored = tensor.values.astype(np.float32).reshape(-1).view(np.uint32)
            total += len(stored)
            wrong += len(stored) if len(written) != len(stored) else int((written != stored).sum())
    return total, wrong


def written_values(tokens: list[int], fill: int, elements: int = 1) -> npt.NDArray[np.uint32]:
    """The values of the tokens that went to a memory, as words: so many elements of each. An empty one is the value that is not stored."""
    width = WIDTH * elements
    values = [token for token in tokens if token >> width in (VALUE, EMPTY)]
    lows = range(0, width, WIDTH)
    words = [token >> low & (1 << WIDTH) - 1 if token >> width == VALUE else fill for token in values for low in lows]
    return np.array(words, np.uint32)


def random_circuits(memory: str) -> Iterator[tuple[str, n.Graph, Machine]]:
    """The cases of odd seeds, which compute in 32-bit floats; one of five is written in lanes. FIFOs without a bound get 4 slots, since a
    circuit needs one."""
    for seed in count(1, 2):
        case = (lane_case if seed % 10 == 5 else hardware_case)(seed, "ideal" if memory == "ideal" else "fixed")
        if circuit_of(case, Tally()) is None:
            continue
        depth = 4 if case.machine.fifo_depth is None else case.machine.fifo_depth
        yield f"seed {seed}", case.graph, case.machine.model_copy(update={"fifo_depth": depth})


def top_of(file: Path) -> str:
    return file.stem.partition("-")[2]


def linted(file: Path) -> str:
    """What Verilator has to say of a region."""
    command = ["verilator", "--lint-only", "-Wall", "--top-module", top_of(file), "-f", "files.f"]
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    return done.stderr or f"exit status {done.returncode}" * bool(done.returncode)


NO_LATCH = "select -assert-none t:$_DLATCH* t:$dlatch* t:$adlatch* t:$_SR_* t:$sr"


def synthesized(file: Path) -> str:
    """What yosys refuses when it makes gates of all modules of a region, and when it looks for a loop in the region as one module."""
    top, folder = top_of(file), file.parent
    sources = (folder / "files.f").read_text(encoding="utf-8").split()
    gates = f"read_verilog -sv {' '.join(sources)}; synth -top {top}; check -assert; {NO_LATCH}"
    paths = " ".join(paths_of(folder / name).name for name in sources)
    whole = f"read_verilog -sv {paths}; hierarchy -check -top {top}; proc; flatten; opt_clean; check -assert; {NO_LATCH}"
    return yosys(gates, folder) or yosys(whole, folder)


def paths_of(file: Path) -> Path:
    """The file, or for a memory one that has its combinational paths and holds nothing. Yosys looks for no loops through memories."""
    text = file.read_text(encoding="utf-8")
    paths = re.sub(r"= store\[(address\d)\];", r"= {W{^\1}};", text)
    if paths == text:
        return file
    other = file.with_name(f"paths_{file.name}")
    other.write_text(paths, encoding="utf-8")
    return other


def yosys(script: str, folder: Path) -> str:
    done = subprocess.run(["yosys", "-q", "-p", script], cwd=folder, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr)[-2000:] or "refused" if done.returncode else ""


def refused(graphs: list[n.Graph], machine: Machine, tool: Callable[[Path], str], folder: Path) -> list[str]:
    """What a tool has to say of the circuits of some graphs."""
    save_verilog(folder, graphs, machine)
    return [f"{file.name}: {said}" for file in sorted(folder.glob("[0-9][0-9]-*.sv")) if (said := tool(file))]
