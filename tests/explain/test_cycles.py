"""The causes of cycles: critical paths add up to all cycles of a run, and changes compile."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuseflow as ff
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
