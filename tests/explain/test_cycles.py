"""The causes of cycles: critical paths add up to all cycles of a run, and changes compile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.explain.cycles import explain_cycles, path_shares
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"


def spmm(machine: str = "ideal", schedule: Schedule | None = None) -> Compiled:
    return ff.compile(EXAMPLE / "spmm.ein", tensors=EXAMPLE / "tensors.yaml", machine=machine, schedule=schedule)


@pytest.mark.parametrize("machine", ["ideal", "rda", "comal"])
def test_the_path_adds_up(machine: str):
    report = explain_cycles(spmm(machine, Schedule.fuse("none")), with_changes=False)
    assert len(report.regions) > 1
    for region in report.regions:
        assert sum(step.cycles for step in region.path.steps) == region.result.cycles
        assert sum(share.cycles for share in path_shares(region.path)) == region.result.cycles
    assert sum(r.result.times * r.path.cycles for r in report.regions) == report.result.cycles


def test_changes_compile_and_are_not_what_there_is():
    report = explain_cycles(spmm())
    assert report.changes == tuple(sorted(report.changes, key=lambda change: change.cycles))
    assert not any(change.flags == "--fuse full" for change in report.changes)  # the same graph
    flags = [change.flags for change in report.changes if not change.measured]
    assert any(flag.startswith("--par") for flag in flags) and any(flag.startswith("--order") for flag in flags)
    for flag in (flag for flag in flags if flag.startswith("--par")):
        spmm(schedule=Schedule.from_flags(par=[flag.removeprefix("--par ")]))


RESIDUAL = """
tensor X[32, 8]
tensor V[8, 16]
tensor W[16, 8]
F[i, g] = sum(k) X[i, k] * V[k, g]
R[i, g] = relu(F[i, g])
G[i, j] = sum(g) R[i, g] * W[g, j]
Y[i, j] = G[i, j] + X[i, j]
output Y
"""


def residual(depth: int) -> Compiled:
    rng = np.random.default_rng(0)
    tensors = {name: rng.random(shape, np.float32) for name, shape in {"X": (32, 8), "V": (8, 16), "W": (16, 8)}.items()}
    machine = ff.load_machine("ideal", {"fifo_depth": depth})
    return ff.compile(parse(RESIDUAL), tensors=tensors, schedule=Schedule.fuse("full"), machine=machine)


def test_a_residual_around_two_products_names_the_fifo_that_holds_it():
    """The next row may begin only when the residual of the row before has left its FIFO, so the two products never work at once. A FIFO of
    four times the depth holds several rows: the recommended change takes at most 1 / 1.6 of the cycles, in a run of its own."""
    compiled = residual(12)
    report = explain_cycles(compiled)
    (region,) = report.regions
    share = path_shares(region.path)[0]
    longest = next(step for step in region.path.steps if step.kind == "full")
    assert share.kind == "full" and share.cycles > region.path.cycles / 2
    assert longest.edge is not None
    writer = region.region.graph.by_name[longest.edge.node].inputs[longest.edge.input].node
    assert region.region.graph.by_name[longest.edge.node].op == "join" and writer.startswith("X_"), (longest.edge, writer)
    change = next(change for change in report.changes if change.flags.startswith("--set fifo_depth="))
    assert change.measured
    assert 1.6 * replace(compiled, machine=change.machine).run(check=False).cycles <= report.result.cycles


def test_a_fifo_that_is_deep_enough_is_not_named():
    report = explain_cycles(residual(1024), with_changes=False)
    assert all(step.kind != "full" for region in report.regions for step in region.path.steps)
