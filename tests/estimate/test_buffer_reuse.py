"""What the estimate says of reuse buffers, against loops that are walked, and against runs."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
import pytest
import reuse_buffers

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.estimate.buffer_reuse import OwnLoop, fetched_share, lines_at_once, new_line_share
from fuseflow.estimate.port_lines import read_lines
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.estimate.stream_flow import Flow
from fuseflow.memory.buffer_assignment import buffered_ports

PRODUCT = """
tensor X[60, 200] csr
tensor W[200, {columns}] {format}
T[i, j] = sum(k) X[i, k] * W[k, j]
output T
"""


def nest(*turns: float) -> Flow:
    """References in loops of so many turns each, outermost first."""
    counts = [float(np.prod(turns[:k])) for k in range(len(turns) + 1)]
    return Flow(tuple(counts[:-1]), tuple(counts[:-1]), counts[-1])


def fetched(lines: Iterable[int], size: int) -> int:
    asked = list(lines)
    return len(asked) - reuse_buffers.hits(asked, size)


@pytest.mark.parametrize("capacity", [1, 3, 4, 16, 79, 80, 200])
def test_rows_that_are_read_again_one_after_the_other(capacity: int) -> None:
    """`for k in 20, i in 6, line in 4` of an array of 80 lines."""
    trace = [4 * k + line for k in range(20) for _ in range(6) for line in range(4)]
    share = fetched_share(nest(20, 6, 4), (OwnLoop(20, 4), None, OwnLoop(4, 1)), len(trace), 1, 80, capacity)
    assert share * len(trace) == pytest.approx(fetched(trace, capacity))


@pytest.mark.parametrize("capacity", [1, 40, 79, 80, 200])
def test_an_array_that_is_read_again_as_a_whole(capacity: int) -> None:
    """`for i in 7, line in 80`: a buffer that does not hold all of it finds nothing."""
    trace = [line for _ in range(7) for line in range(80)]
    share = fetched_share(nest(7, 80), (None, OwnLoop(80, 1)), len(trace), 1, 80, capacity)
    assert share * len(trace) == pytest.approx(fetched(trace, capacity))


@pytest.mark.parametrize("capacity", [2, 50, 100, 150, 200, 400])
def test_rows_of_its_own_choice_in_each_turn(capacity: int) -> None:
    rng = random.Random(capacity)
    trace = [line for _ in range(60) for line in sorted(rng.sample(range(200), 20))]
    share = fetched_share(nest(60, 20), (None, OwnLoop(200, 1)), len(trace), 1, 200, capacity)
    assert share * len(trace) == pytest.approx(fetched(trace, capacity), rel=0.1)


@pytest.mark.parametrize("capacity", [1, 29, 30, 31, 200])
def test_columns_of_lines_that_hold_several(capacity: int) -> None:
    """`for j in 64, k in 30` of 30 rows of 4 lines, each line with 16 of the j."""
    trace = [4 * k + j // 16 for j in range(64) for k in range(30)]
    share = fetched_share(nest(64, 30), (OwnLoop(64, 1 / 16), OwnLoop(30, 4)), len(trace), 1, 120, capacity)
    assert share * len(trace) == pytest.approx(fetched(trace, capacity))


def test_without_a_buffer_everything_is_fetched() -> None:
    assert fetched_share(nest(20, 6), (None, OwnLoop(4, 1)), 120, 1, 80, 0) == 1


@pytest.mark.parametrize("order", ["i,k,j", "k,i,j", "j,i,k"])
@pytest.mark.parametrize(("format", "columns"), [("dense", 64), ("csr", 100)])
def test_what_is_fetched_in_runs(order: str, format: str, columns: int) -> None:
    """Over all ports with a buffer, for sizes from a few lines to the whole array."""
    rng = np.random.default_rng(1)
    tensors = {
        name: (rng.random(shape) * (rng.random(shape) < share)).astype(np.float32)
        for name, shape, share in (("X", (60, 200), 0.1), ("W", (200, columns), 1 if format == "dense" else 0.2))
    }
    program = parse(PRODUCT.format(columns=columns, format=format))
    for size in (256, 4096, 65536):
        schedule = ff.Schedule.fuse("full").order("T", order).buffer("W", size).buffer("X", size)
        compiled = ff.compile(program, tensors=tensors, schedule=schedule, machine="rda")
        run, estimate = compiled.run(check=False), compiled.estimate()
        for region, expected, known in zip(run.regions, estimate.regions, estimator_regions(compiled.regions), strict=True):
            assert region.resources.buffer == expected.resources.buffer
            memory = region.simulation.memory
            assert memory is not None
            moved = sum(of.fetches for port, of in memory.ports if port.buffer)
            estimator = Estimator()
            knowledge = estimator.knowledge(compiled.program, compiled.source.tensors)
            for earlier in estimator_regions(compiled.regions):
                if earlier.graph is known.graph:
                    break
                estimator.region(earlier, compiled.machine, knowledge)
            counts, buffers = estimator.bounds(known.graph, knowledge).counts, buffered_ports(known.graph, 64)
            ports = read_lines(counts.graph, counts.flows, 64, counts.array_bytes, buffers)
            lines = sum(port.lines for port in ports if any(name == port.node for name, _ in buffers))
            assert lines == pytest.approx(moved, rel=0.25, abs=20), (size, region.name)


def test_a_buffer_of_what_is_read_in_order_below_a_level_of_one_coordinate_saves_nothing() -> None:
    """Rows of A are blocks, one in each row, so that the values are read by the references of the rows. The simulator gives them a buffer,
    which no line is found in."""
    program = parse("tensor A[64, 4]\nT = sum(i, k) A[i, k]\noutput T\n")
    values = np.arange(256, dtype=np.float32).reshape(64, 4)
    of_buffers = []
    for schedule in (blocked := ff.Schedule.fuse("none").block("A", 1, 4), blocked.buffer("A", 512)):
        compiled = ff.compile(program, tensors={"A": values}, schedule=schedule, machine="rda")
        (region,), (estimate,) = compiled.run().regions, compiled.estimate().regions
        read = {row.tensor: row.bytes for row in estimate.work.traffic}
        assert read == {row.tensor: row.bytes for row in region.simulation.traffic} == {"A": 1024, "T": 4}
        of_buffers.append((region.cycles, estimate.bound.cycles))
    assert of_buffers[0] == of_buffers[1]


def test_lines_of_a_row_that_is_looked_up_again_for_every_column_are_few():
    """`B[k, j]` in `for i in 50, j in 16, 6 of k`, where a line has the 16 columns of a row."""
    rng, again = random.Random(0), 16
    trace = [line for _ in range(50) for line in again * sorted(rng.sample(range(200), 6))]
    loops = (None, OwnLoop(again, 1 / again), OwnLoop(200, 1))
    windows = [len({*trace[at : at + 32]}) for at in range(len(trace) - 32)]
    different, in_list = lines_at_once(nest(50, again, 6), loops, len(trace), 32)
    assert different == pytest.approx(np.mean(windows), rel=0.1)
    assert in_list == pytest.approx(1 / (1 + 32 / (6 * again)))


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_short_rows_share_lines_with_those_before(share: float):
    """`G[j, k]` in `for i in 20, some of j in 200, k in 4`, where a line has four rows."""
    rng, rows = random.Random(1), round(200 * share)
    asked = [j // 4 for _ in range(20) for j in sorted(rng.sample(range(200), rows))]
    lines = [line for line, before in zip(asked, [-1, *asked], strict=False) if line != before]
    loops = (None, OwnLoop(200, 1 / 4), OwnLoop(4, 1 / 16))
    left = new_line_share(nest(20, rows, 4), loops, len(asked))
    assert left * len(asked) == pytest.approx(len(lines), rel=0.1)


@pytest.mark.parametrize("columns", [3, 5, 12])
def test_a_short_row_that_is_looked_up_again_is_in_the_line_before(columns: int):
    """`X[i, d]` in `for i in 64, k in 16, d in 3`: where a row lies in two lines, each k requests both."""
    asked = [(columns * i + d) // 16 for i in range(64) for _ in range(16) for d in range(columns)]
    lines = [line for line, before in zip(asked, [-1, *asked], strict=False) if line != before]
    left = new_line_share(nest(64, 16, columns), (OwnLoop(64, columns / 16), None, OwnLoop(columns, 1 / 16)), 64 * 16)
    assert left * 64 * 16 == pytest.approx(len(lines), rel=0.1)
