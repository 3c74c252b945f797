"""What `fuseflow explain cycles` says: the printed form, the sentence for each kind of bottleneck, and what other schedules would take."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.explain.cycles import CyclesReport, explain_cycles
from fuseflow.report.cycle_tables import bottleneck_sentence, cycles_json, cycles_lines
from fuseflow.report.tables import print_table
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import json_text
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"


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


LANES = {
    "y[] = sum(j) exp(A[j]) / B[j]": "`fork_j_A_j_crd` (fork), which fires 602 times; it is the distributor, which deals to 8 lanes",
    "y[j] = exp(A[j]) / B[j]": "`write_y_val` (write_values), which fires 602 times; it is outside the lanes, so that more of them",
}


@pytest.mark.parametrize("statement", LANES)
def test_what_stays_serial_beside_lanes_is_named(statement: str):
    program = parse(f"tensor A[600]\ntensor B[600]\n{statement}\noutput y")
    data = np.arange(1, 601, dtype=np.float32) / 600
    made = ff.compile(program, tensors={"A": data, "B": data}, schedule=Schedule.par(j=8), machine="ideal")
    (region,) = explain_cycles(made, with_changes=False, engine="reference").regions
    assert LANES[statement] in bottleneck_sentence(region)


def test_the_report_is_json():
    values = cycles_json(explain_cycles(spmm("rda")))
    json_text(values)
    (region,) = values["regions"]
    assert sum(step["cycles"] for step in region["path"]) == region["cycles"] == values["cycles"]
