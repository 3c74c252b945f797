"""Whole models as circuits: every region beside the simulator, and every module in front of linters and synthesizers.

    python tools/hardware_models.py [--tool verilator|icarus|python] [--only gcn]
    python tools/hardware_models.py --lint [--only gcn]
    python tools/hardware_models.py --synthesize [--only gcn]
    python tools/hardware_models.py --lint --random 300
    python tools/hardware_models.py --kernels [--tool verilator]
    python tools/hardware_models.py --memory hbm2 [--kernels]

Models run on the machine `rtl`, at their small size, with another memory behind it if `--memory` names one. Every token of every region
must be given in the cycle of the simulator. The values that the circuit writes must be those of the simulator bit for bit, and the outputs
of the model those of PyTorch within 1e-4. The operators, tokens, firings and bytes of which its energy is made must be those of the
circuit. With --lint Verilator must have nothing to say of any region. With --synthesize yosys makes gates of all modules of each region,
those of floats and memories among them. There must be no latch, no loop and no wire that nothing drives.
Loops through several modules are looked for in the region as one module. With --random N they get so many random graphs instead of models,
which have all primitives; with a memory that takes time these are at random ones. With --kernels the 41 kernels of figure 13 run instead of
models. Exit status 1 if something differs or is refused.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, islice
from math import prod
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "figures"))

import figure13
from energy_counters import circuit_counters, energy_counters
from hardware_cases import Tally, circuit_of, hardware_case
from lane_cases import lane_case

import fuseflow as ff
from fuseflow.hardware.cosimulate import Cosimulation, cosimulate
from fuseflow.hardware.output import save_verilog
from fuseflow.hardware.primitives.write import WRITTEN
from fuseflow.hardware.tools import NAMES
from fuseflow.rules.rules import EMPTY, VALUE
from fuseflow.run.compiled import Compiled
from fuseflow.samml import nodes as n
from fuseflow.sim import Machine, Simulation, load_machine
from fuseflow.sim.memory.settings import MODEL_SETTINGS

ROOT = Path(__file__).resolve().parents[1]
MACHINE, BOUND = "rtl", 1e-4
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


@click.command(help=__doc__.partition("\n")[0])
@click.option("--tool", default="verilator", show_default=True, type=click.Choice(NAMES), help="what runs the circuits")
@click.option("--only", multiple=True, type=click.Choice(list(ALL_MODELS)), help="of these models")
@click.option("--memory", default="ideal", show_default=True, type=click.Choice(list(MODEL_SETTINGS)), help="behind the machine")
@click.option("--lint", is_flag=True, help="let Verilator lint each region")
@click.option("--synthesize", is_flag=True, help="let yosys make gates of each region")
@click.option("--random", "graphs", default=0, type=click.IntRange(0), metavar="N", help="take random graphs for these")
@click.option("--kernels", is_flag=True, help="run the kernels of figure 13 instead of models")
def main(tool: str, only: tuple[str, ...], memory: str, lint: bool, synthesize: bool, graphs: int, kernels: bool) -> None:
    models = {name: ALL_MODELS[name] for name in only or ALL_MODELS}
    if graphs and (only or not (lint or synthesize)):
        raise click.UsageError("--random goes with --lint and --synthesize, and without --only")
    if kernels and (only or lint or synthesize):
        raise click.UsageError("--kernels goes with --tool and --memory alone")
    machine = load_machine(MACHINE, {"memory": memory})
    if kernels:
        equal = [kernels_equal(some, tool, machine) for some in figure13.MODELS]
        sys.exit(not all(equal))
    if lint or synthesize:
        circuits = islice(random_circuits(memory), graphs) if graphs else model_circuits(models, machine)
        good = [accepted(*circuit, lint, synthesize) for circuit in circuits]
        sys.exit(not all(good))
    good = [ran(name, model.compile(machine), tool) for name, model in models.items()]
    sys.exit(not all(good))


# Beside the simulator -------------------------------------------------------------------------------------------------------


def ran(name: str, compiled: Compiled, tool: str) -> bool:
    """Whether all regions of a model are equal to the simulator's, and its outputs near those of PyTorch."""
    equal = True

    def execute(graph: n.Graph, tensors: Mapping[str, Any], machine: Any, *_: Any, **__: Any) -> Simulation:
        nonlocal equal
        run = cosimulate(graph, tensors, machine, tool)
        assert run.simulation is not None, f"{graph.name} has a deadlock: {run.waiting}"
        values, wrong = compared_values(graph, run)
        verdict = f"differs: {run.difference}" if run.difference else "equal"
        counters, counted = circuit_counters(graph, machine, run), energy_counters(graph, machine, run)
        verdict += (
            ", as are the counts of its energy" if counters == counted else f"; the energy counts {counted}, not {counters}"
        )
        equal &= counters == counted
        click.echo(
            f"{name}/{graph.name}: {verdict}; {run.nodes} nodes, {run.firings:,} firings, {run.tokens:,} tokens, {run.cycles:,} cycles "
            f"(simulator {run.simulator_cycles:,}), {values:,} values written, {wrong} with other bits; {run.seconds:.1f} s"
        )
        equal &= run.difference is None and not wrong and values > 0
        return run.simulation

    check = compiled.run(dedup=False, execute=execute).check
    assert check is not None and check.reference == "PyTorch"
    click.echo(f"{name}: largest error against PyTorch {check.max_rel_error:.1e} of the largest output")
    return equal and check.max_rel_error <= BOUND


def kernels_equal(kernels: figure13.Kernels, tool: str, machine: Machine) -> bool:
    """Whether all kernels of a model are equal to the simulator's in every token and its cycle."""
    good = []

    def report(_: figure13.Kernels, region: str, run: Cosimulation, __: float) -> None:
        good.append(run.difference is None and run.cycles == run.simulator_cycles)
        verdict = f"differs: {run.difference}" if run.difference else "equal"
        click.echo(f"{kernels.name}/{region}: {verdict}; {run.tokens:,} tokens, {run.cycles:,} cycles")

    figure13.compare(kernels, report, tool, machine)
    return all(good) and bool(good)


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


# In front of other tools ----------------------------------------------------------------------------------------------------


Circuits = tuple[str, list[n.Graph], Machine]
"""The name of a model, its graphs, and the machine that they are circuits of."""


def model_circuits(models: Mapping[str, Model], machine: Machine) -> Iterator[Circuits]:
    for name, model in models.items():
        compiled = model.compile(machine)
        yield name, [region.graph for region in compiled.regions], compiled.machine


def random_circuits(memory: str) -> Iterator[Circuits]:
    """The cases of odd seeds, which compute in 32-bit floats; one of five is written in lanes. FIFOs without a bound get 4 slots, since a
    circuit needs one."""
    for seed in count(1, 2):
        case = (lane_case if seed % 10 == 5 else hardware_case)(seed, "ideal" if memory == "ideal" else "fixed")
        if circuit_of(case, Tally()) is None:
            continue
        depth = 4 if case.machine.fifo_depth is None else case.machine.fifo_depth
        yield f"seed {seed}", [case.graph], case.machine.model_copy(update={"fifo_depth": depth})


def accepted(name: str, graphs: list[n.Graph], machine: Machine, lint: bool, synthesize: bool) -> bool:
    """Whether the tools accept some circuits."""
    good = True
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "verilog"
        save_verilog(folder, graphs, machine)
        for file in sorted(folder.glob("[0-9][0-9]-*.sv")):
            good &= not lint or linted(name, file)
            good &= not synthesize or synthesized(name, file)
    return good


def top_of(file: Path) -> str:
    return file.stem.partition("-")[2]


def linted(model: str, file: Path) -> bool:
    command = ["verilator", "--lint-only", "-Wall", "--top-module", top_of(file), "-f", "files.f"]
    started = time.perf_counter()
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    good = done.returncode == 0 and not done.stderr
    modules = len(re.findall("^module ", file.read_text(encoding="utf-8"), re.MULTILINE))
    click.echo(
        f"{model}/{top_of(file)}: {'clean' if good else 'REFUSED'}, {modules} modules, {time.perf_counter() - started:.1f} s"
    )
    if not good:
        click.echo(done.stderr[:2000])
    return good


NO_LATCH = "select -assert-none t:$_DLATCH* t:$dlatch* t:$adlatch* t:$_SR_* t:$sr"


def synthesized(model: str, file: Path) -> bool:
    """Whether yosys makes gates of all modules of a region, and finds no loop in the region as one module."""
    top, started, folder = top_of(file), time.perf_counter(), file.parent
    sources = (folder / "files.f").read_text(encoding="utf-8").split()
    gates = f"read_verilog -sv {' '.join(sources)}; synth -top {top}; check -assert; {NO_LATCH}; tee -q -o cells.txt stat"
    paths = " ".join(paths_of(folder / name).name for name in sources)
    whole = f"read_verilog -sv {paths}; hierarchy -check -top {top}; proc; flatten; opt_clean; check -assert; {NO_LATCH}"
    good = all(yosys(f"{model}/{top}", script, folder) for script in (gates, whole))
    if good:
        cells = re.findall(r"Number of cells: +(\d+)", (folder / "cells.txt").read_text(encoding="utf-8"))[-1]
        click.echo(f"{model}/{top}: {int(cells):,} cells, no latch and no loop, {time.perf_counter() - started:.1f} s")
    return good


def paths_of(file: Path) -> Path:
    """The file, or for a memory one that has its combinational paths and holds nothing. Yosys looks for no loops through memories."""
    text = file.read_text(encoding="utf-8")
    paths = re.sub(r"= store\[(address\d)\];", r"= {W{^\1}};", text)
    if paths == text:
        return file
    other = file.with_name(f"paths_{file.name}")
    other.write_text(paths, encoding="utf-8")
    return other


def yosys(what: str, script: str, folder: Path) -> bool:
    done = subprocess.run(["yosys", "-q", "-p", script], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        click.echo(f"{what}: REFUSED\n{(done.stdout + done.stderr)[-2000:]}")
    return done.returncode == 0


if __name__ == "__main__":
    main()
