"""The estimate of preloads, and of writers in lanes, against runs: rows of a graph that are summed up, in lanes."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.compiler import compile
from fuseflow.einsum.parse import parse
from fuseflow.estimate.memory_load import WrittenLines
from fuseflow.run.compiled import Compiled
from fuseflow.samml.writers import LanePart
from fuseflow.schedule import Schedule

NEIGHBOURS = """
tensor A[{rows}, {rows}] csr f32
tensor X[{rows}, 16] dense f32
Y[i, h] = sum(k) A[i, k] * X[k, h]
output Y
"""


def neighbours(rows: int, degree: int, lanes: int, writers: str, preload: int) -> Compiled:
    rng = np.random.default_rng(0)
    a = (rng.random((rows, rows)) < degree / rows).astype(np.float32)
    tensors = {"A": a, "X": rng.random((rows, 16)).astype(np.float32)}
    schedule = Schedule.fuse("none").block("X", 1, 16).order("Y", "h,i,k").par(i=lanes).depth("Y", 256).lower(writers=writers)
    schedule = schedule.preload("X", preload) if preload else schedule
    return compile(parse(NEIGHBOURS.format(rows=rows)), tensors=tensors, schedule=schedule, machine="rda")


@pytest.mark.parametrize("degree", [4, 12])
@pytest.mark.parametrize("ports", [8, 16])
@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("writers", ["lanes", "once"])
def test_preloads_take_what_they_are_expected_to(degree: int, ports: int, lanes: int, writers: str) -> None:
    compiled = neighbours(1_500, degree, lanes, writers, ports)
    run, expected = compiled.run(check=False).cycles, compiled.estimate().cycles
    assert expected == pytest.approx(run, rel=0.2), (run, expected)


def test_lines_that_lanes_share_are_written_by_each() -> None:
    """Of 2,708 rows of 28 bytes, each of four lanes writes 1.375 lines a row, and each of two lanes writes all lines, as simulated."""
    size = 2_708 * 28
    assert WrittenLines.of(size, None, 32, 64) == WrittenLines(1_185)
    four = WrittenLines.of(size, LanePart(0, 4, 7), 32, 64)
    assert (four.writers, four.lines * 4) == (4, pytest.approx(3_723, abs=1))
    assert WrittenLines.of(size, LanePart(1, 2, 7), 32, 64) == WrittenLines(1_185, 2)
    assert WrittenLines.of(size, LanePart(0, 4, 16), 32, 64).lines * 4 == pytest.approx(size / 64)
