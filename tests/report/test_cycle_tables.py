"""What `fuseflow explain cycles` says: the printed form, the sentence for each kind of bottleneck, and what other schedules would take."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.explain.cycles import CyclesReport, explain_cycles
from fuseflow.filesystem import json_text
from fuseflow.report.cycle_tables import advice_sentence, bottleneck_sentence, cycles_json, cycles_lines
from fuseflow.report.table_width import print_table
from fuseflow.run.compiled import Compiled
from fuseflow.samml.nodes import Edge
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine, simulate
from fuseflow.sim.events.critical_path import CriticalPath
from fuseflow.tensors import Tensor

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"
MODELS = Path(__file__).parents[2] / "models"


def spmm(machine: str | Machine = "ideal", schedule: Schedule | None = None) -> Compiled:
    return ff.compile(EXAMPLE / "spmm.ein", tensors=EXAMPLE / "tensors.yaml", machine=machine, schedule=schedule)


def text(report: CyclesReport) -> str:
    out = io.StringIO()
    console = Console(file=out, width=120)
    for piece in cycles_lines(report, 4):
        if isinstance(piece, str):
            console.print(piece, soft_wrap=True)
        else:
            print_table(console, piece)
    return out.getvalue()


@pytest.mark.parametrize("machine", ["ideal", "rda", "comal"])
def test_what_is_printed(machine: str, golden: Callable[[str, str], None]):
    golden(f"explain_cycles_{machine}.txt", text(explain_cycles(spmm(machine), engine="reference")))


def test_a_slow_unit_is_named():
    machine = load_machine("ideal", {"interval.div": 50})
    (region,) = explain_cycles(spmm(machine), with_changes=False).regions
    assert "the work of `div` (alu div)" in bottleneck_sentence(region)


def test_a_slow_memory_is_named():
    machine = load_machine("rda", {"memory.channels": 1, "memory.outstanding": 1, "memory.prefetch": 0, "memory.line": 32})
    report = explain_cycles(spmm(machine))
    assert "waits for the memory: `" in bottleneck_sentence(report.regions[0])
    assert any(change.flags == "--set memory.outstanding=2" and change.measured for change in report.changes)
    assert min(change.cycles for change in report.changes if change.measured) < report.result.cycles


def test_a_full_fifo_is_named():
    machine = load_machine("ideal", {"fifo_depth": "auto", "fifo_depth_start": 1, "latency.default": 9})
    report = explain_cycles(spmm(machine))
    assert any(step.kind == "full" and step.edge is not None for step in report.regions[0].path.steps)
    (deeper,) = [change for change in report.changes if change.flags.startswith("--set fifo")]
    assert deeper.measured and deeper.cycles < report.result.cycles


def test_the_fifo_that_limits_a_decoder_is_in_the_headline():
    """The residual of a row goes around two products in a FIFO that holds one row, so the products of two rows never work at once. The
    headline names it, for coordinates and for values, and a run in which these two alone are deeper shows that they limit the region."""
    compiled = ff.compile(
        MODELS / "gpt_bigbird.py", options={"small": "true", "part": "decoder"}, data="bigbird:block=4,length=16,features=32",
        schedule=Schedule.fuse("layerwise"), machine=load_machine("ideal", {"fifo_depth": "auto", "fifo_depth_start": 64}),
    )  # fmt: skip
    runs: dict[str, Mapping[str, Tensor]] = {}
    compiled.run(check=False, watch=lambda region, read, _: runs.update({region.name: read}))
    report = explain_cycles(compiled, with_changes=False)
    longest = max(report.regions, key=lambda region: region.result.cycles)
    said = re.match(r"\d+% of it waits for room in (.*) of `(\w+)` \(join\)$", bottleneck_sentence(longest))
    assert said is not None and said[1] == "the FIFOs of 64 tokens from `acc_h` to inputs 2 and 3"
    deep = replace(longest.region.graph, depths=tuple((Edge(said[2], number), 4096) for number in (2, 3)))
    assert 1.6 * simulate(deep, runs[longest.result.name], compiled.machine).cycles <= longest.result.cycles


def test_a_fifo_that_takes_less_than_the_work_is_in_the_headline():
    """Work of 55 % does not hide a FIFO of 45 %, whose depth is what a user can change."""
    machine = load_machine("ideal", {"fifo_depth": "auto", "fifo_depth_start": 1, "latency.default": 9})
    (region,) = explain_cycles(spmm(machine), with_changes=False).regions
    full = next(step for step in region.path.steps if step.kind == "full" and step.edge is not None)
    work = next(step for step in region.path.steps if step.kind == "work")
    mixed = CriticalPath(100, (replace(work, cycles=55), replace(full, cycles=45)), 1)
    assert full.edge is not None
    sentence = bottleneck_sentence(replace(region, path=mixed))
    assert sentence.startswith("55% of it is the work of")
    assert re.search(rf"45% of it waits for room in the FIFO.* {full.edge.input}\b.* of `{full.edge.node}`", sentence)
    rare = CriticalPath(100, (replace(work, cycles=90), replace(full, cycles=10)), 1)
    assert "FIFO" not in bottleneck_sentence(replace(region, path=rare))


LANES = {
    "y[] = sum(j) exp(A[j]) / B[j]": "`fork_j_A_j_crd` (fork), which fires 602 times; it is the distributor, which deals to 8 lanes",
    "y[j] = exp(A[j]) / B[j]": "`write_y_val` (write_values), which fires 602 times; it is the one writer of the values of `y`, which",
}


@pytest.mark.parametrize("statement", LANES)
def test_what_stays_serial_beside_lanes_is_named(statement: str):
    program = parse(f"tensor A[600]\ntensor B[600]\n{statement}\noutput y")
    data = np.arange(1, 601, dtype=np.float32) / 600
    made = ff.compile(program, tensors={"A": data, "B": data}, schedule=Schedule.par(j=8).lower(writers="once"), machine="ideal")
    (region,) = explain_cycles(made, with_changes=False, engine="reference").regions
    assert LANES[statement] in bottleneck_sentence(region)


def test_one_writer_is_named_and_what_is_proposed_was_run():
    """A product by rows whose lanes end in one writer: more lanes are no proposal, and writers in lanes are."""
    text = "tensor A[48, 48] csr\ntensor B[48, 8]\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y"
    tensors = {"A": np.eye(48, dtype=np.float32) + np.eye(48, k=5, dtype=np.float32), "B": np.ones((48, 8), np.float32)}
    for order, lanes in (("i,k,j", 8), ("i,k,j", 16), ("i,j,k", 16)):
        schedule = Schedule.fuse("full").order("Y", order).par(i=lanes).lower(writers="once")
        report = explain_cycles(ff.compile(parse(text), tensors=tensors, schedule=schedule, machine="ideal"))
        sentence = bottleneck_sentence(report.regions[0])
        assert "it is the one writer of" in sentence or "for the one writer of" in sentence
        assert advice_sentence(report).startswith("--writers lanes takes ")
        first = cycles_json(report)["regions"][0]["limits"]
        assert f"`{first}`" in sentence.split(". ")[0]


def test_the_report_is_json():
    values = cycles_json(explain_cycles(spmm("rda")))
    json_text(values)
    (region,) = values["regions"]
    assert sum(step["cycles"] for step in region["path"]) == region["cycles"] == values["cycles"]
