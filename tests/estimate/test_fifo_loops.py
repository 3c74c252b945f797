"""Loops of FIFOs: by hand on four nodes, and in runs of a decoder whose residual goes around two products."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.estimate.fifo_loops import Fifo, FifoLoops, LineWait, loop_cycles

ROOT = Path(__file__).resolve().parents[2]
ROWS, ROW = 10, 49
NO_LINES = [LineWait()] * 4


@pytest.mark.parametrize(("slots", "rows"), [(64, 1), (97, 1), (98, 2), (500, 10)])
def test_a_row_begins_when_the_short_way_has_room(slots: int, rows: int):
    """Node 0 gives rows to 3 on a FIFO, and through 1 and 2, which hold a row back for 100 cycles each."""
    ways = (Fifo(0, 1, 0, ROWS * ROW), Fifo(1, 2, 0, ROWS), Fifo(0, 3, 0, ROWS * ROW), Fifo(2, 3, 1, ROWS))
    loops = FifoLoops(ways, (0, ROWS, ROWS, 0), (0, 1, 1, 0), (0.0, 2 / ROWS, 2 / ROWS, 0.0))
    work = loops.work([ROWS * ROW, 100 * ROWS, 100 * ROWS, ROWS * ROW])
    cycles = loop_cycles(loops.shares([slots] * 4), loops.longest([0, 0, 0, 0], NO_LINES, work, [0, 0, 0, 0]))
    assert cycles[3, 0] == pytest.approx(ROWS * 201 / rows)  # a slot is free in the next cycle
    assert cycles[0, 3] == 0, "there is no way"
    assert cycles[1, 0] == pytest.approx(ROWS * ROW / slots), "a way without another beside it waits for slots only"


@pytest.mark.parametrize(("slots", "ahead"), [(49, 0), (64, 15), (90, 41)])
def test_the_part_of_a_row_that_has_room_does_not_wait(slots: int, ahead: int):
    """As before, but the node at the end takes a token a cycle: what is ahead begins that much sooner."""
    ways = (Fifo(0, 1, 0, ROWS * ROW), Fifo(1, 2, 0, ROWS), Fifo(0, 3, 0, ROWS * ROW), Fifo(2, 3, 1, ROWS))
    loops = FifoLoops(ways, (0, ROWS, ROWS, 0), (0, 1, 1, 0), (0.0, 2 / ROWS, 2 / ROWS, 0.0))
    occupied = [ROWS * ROW, 100 * ROWS, 100 * ROWS, ROWS * ROW]
    cycles = loop_cycles(loops.shares([slots] * 4), loops.longest([0, 0, 0, 0], NO_LINES, loops.work(occupied), occupied))
    assert cycles[3, 0] == pytest.approx(ROWS * (201 - ahead))


@pytest.mark.parametrize(("slots", "waits"), [(8, 10.0), (16, 10.0), (40, 4.0)])
def test_tokens_of_a_line_wait_for_it_once(slots: int, waits: float):
    """Node 0 gives 160 tokens to 2 on a FIFO, and through 1, where each of 10 lines of 16 is awaited for 35 of 36 cycles. Up to 16 slots
    hold one line at a time, and each token goes round in two cycles besides: one in node 1, and one for the slot."""
    ways = (Fifo(0, 1, 0, 160), Fifo(0, 2, 0, 160), Fifo(1, 2, 1, 160))
    loops = FifoLoops(ways, (0, 0, 0), (0, 0, 0), (0.0, 0.0, 0.0))
    lines = [LineWait(), LineWait(35.0, 10 * 35.0), LineWait()]
    cycles = loop_cycles(loops.shares([slots] * 3), loops.longest([0, 36, 0], lines, loops.work([160] * 3), [160] * 3))
    assert cycles[2, 0] == pytest.approx(waits * 35 + 160 / slots * 2)


@pytest.mark.parametrize("memory", ["hbm2", "ddr4-3200", "lpddr5-6400"])
@pytest.mark.parametrize("depth", [8, 16])
@pytest.mark.parametrize("fuse", ["none", "layerwise"])
def test_shallow_fifos_before_a_memory(memory: str, depth: int, fuse: str):
    machine = ff.load_machine("rda", {"memory": memory, "fifo_depth": depth})
    compiled = ff.compile(ROOT / "models/gcn.py", data="karate", schedule=ff.Schedule.fuse(fuse), machine=machine)
    assert compiled.estimate().cycles == pytest.approx(compiled.run(check=False).cycles, rel=0.1)


SOFTMAX = """
tensor X[{rows}, {columns}]
m[i] = max(j) X[i, j]
E[i, j] = exp(X[i, j] - m[i])
s[i] = sum(j) E[i, j]
P[i, j] = E[i, j] / s[i]
output P
"""


@pytest.mark.parametrize(("rows", "columns"), [(64, 16), (64, 30), (20, 40), (20, 64), (20, 100), (20, 200), (3, 300)])
def test_a_softmax_takes_as_long_as_rows_are_under_way_at_once(rows: int, columns: int):
    """FIFOs of 64 slots hold several rows, a row and a part of one, or are deepened until they hold a row. Lines are fetched ahead."""
    values = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    program = parse(SOFTMAX.format(rows=rows, columns=columns))
    compiled = ff.compile(program, tensors={"X": values}, schedule=ff.Schedule.fuse("full"), machine="rda")
    assert compiled.estimate().cycles == pytest.approx(compiled.run(check=False).cycles, rel=0.1)


@pytest.fixture(scope="module")
def decoder() -> dict[str, ff.Compiled]:
    schedule = ff.Schedule.load(ROOT / "schedules" / "gpt_partial.yaml")
    machines = {"shallow": ff.load_machine("rda"), "deep": ff.load_machine("rda", {"fifo_depth_start": 4096})}
    data, options = "bigbird:block=8,length=64,features=48", {"decoders": 1, "heads": 3}

    def compiled(schedule: ff.Schedule, machine: str) -> ff.Compiled:
        model = ROOT / "models" / "paper" / "gpt.py"
        return ff.compile(model, data=data, options=options, schedule=schedule, machine=machines[machine])

    chosen = compiled(schedule.lower(depth_policy="auto"), "shallow")
    return {"shallow": compiled(schedule, "shallow"), "deep": compiled(schedule, "deep"), "chosen": chosen}


def test_a_decoder_takes_as_long_as_its_fifos_let_it(decoder: dict[str, ff.Compiled]):
    runs = {name: compiled.run(check=False) for name, compiled in decoder.items()}
    for name, compiled in decoder.items():
        assert compiled.estimate().cycles == pytest.approx(runs[name].cycles, rel=0.1)
    limit = decoder["shallow"].estimate().regions[-1].bound
    assert limit.limit == "FIFOs" and limit.fifo is not None and limit.fifo[1] == "union_e"
    # With the slots that are needed, it is nearly as fast as with 4,096 everywhere, in an eighth of the bytes.
    assert runs["chosen"].cycles <= 1.1 * runs["deep"].cycles < 0.7 * runs["shallow"].cycles
    chosen, deep = (sum(r.resources.fifo or 0 for r in runs[name].regions) for name in ("chosen", "deep"))
    assert chosen <= deep / 8


def test_stated_depths_stay_as_they_are():
    schedule = ff.Schedule.fuse("full").lower(depth_policy="auto").depth("full", 16)
    assert ff.Schedule.from_yaml(schedule.to_yaml()) == schedule
    compiled = ff.compile(ROOT / "docs/example/spmm.ein", tensors=ROOT / "docs/example/tensors.yaml", schedule=schedule)
    assert {depth for _, depth in compiled.regions[0].graph.depths} == {16}
