"""The smallest depth of a FIFO that clears a deadlock, in few runs to the end, however deep it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import graph_fuzz
import numpy as np
import pytest
from engines import LIMITS
from random_graphs.case import Case
from row_graphs import offsets

from fuseflow.errors import DeadlockError, SimulationError
from fuseflow.native.kernel_library import library
from fuseflow.samml.nodes import Edge
from fuseflow.sim import Machine, simulate
from fuseflow.sim.engine.buffer_growth import PartOutput, collect_all
from fuseflow.sim.engine.execute import NEAR, Snapshot, first_clearing_depth, run, smallest_clearing_depth
from fuseflow.sim.engine.network_layout import NetworkLayout, lay_out
from fuseflow.sim.engine.node_layout import Limits
from fuseflow.sim.engine.outcome import full_readers
from fuseflow.sim.outcome.deadlock import MOST_SLOTS
from fuseflow.tensors import pack

OFFSETS = offsets(2, 700)


@pytest.mark.parametrize("stuck", [1, 16, 2048])
@pytest.mark.parametrize("beyond", [1, 2, NEAR, NEAR + 1, 2 * NEAR, 5_000, 70_001, MOST_SLOTS // 2])
def test_the_depth_is_tight_and_runs_to_the_end_are_few(stuck: int, beyond: int) -> None:
    needed, ended, attempted = stuck + beyond, 0, 0

    def clearing_depth(depths: Iterable[int]) -> int | None:
        nonlocal ended, attempted
        for depth in depths:
            attempted += 1
            if depth >= needed:
                ended += 1
                return depth
        return None

    assert smallest_clearing_depth(stuck, clearing_depth) == needed
    assert ended <= 3
    assert attempted <= 3_000


def test_a_fifo_that_clears_nothing_is_not_deepened_for_ever() -> None:
    assert smallest_clearing_depth(16, lambda depths: None if sum(1 for _ in depths) else 0) is None


def test_a_row_that_is_far_longer_than_its_fifo() -> None:
    tensors = {"x": pack(np.arange(1.0, 1401.0).reshape(2, 700), OFFSETS.declared["x"].format)}
    deep = Machine(name="deep", fifo_depth=1024)

    def run(depth: int) -> int:
        return simulate(replace(OFFSETS, depths=((Edge("off", 0), depth),)), tensors, deep, engine="fast").cycles

    with pytest.raises(DeadlockError) as caught:
        run(16)
    depth = int(caught.value.hint.split()[1])
    assert depth > 16 + NEAR
    assert run(depth) > 0
    with pytest.raises(DeadlockError, match=f"full at depth {depth - 1}"):
        run(depth - 1)


def stuck(case: Case, limits: Limits) -> tuple[NetworkLayout, PartOutput] | None:
    controller, part_output = case.machine.controller(), PartOutput()
    layout = lay_out(case.graph, case.tensors, case.machine, library(), limits, controller=controller)
    return None if run(layout, part_output, library()) else (layout, part_output)


def end(layout: NetworkLayout, part_output: PartOutput) -> list[object]:
    """Go on with deep FIFOs, and return what every part did and when, how full FIFOs were, and what was written. Requests are answered at
    once, since the memory is past the cycles of some."""
    if layout.controller is not None:
        layout.controller.memory.forget_cycles()
    layout.readers["depth"][layout.readers["depth"] > 0] = 1 << 20
    run(layout, part_output, library())
    collect_all(layout, part_output)
    done = [layout.nodes[name].tolist() for name in ("firings", "first", "last", "starved", "blocked", "waited", "waits")]
    written = [
        np.concatenate(chunks).tobytes() for outputs in (part_output.elements, part_output.ends) for chunks in outputs.values()
    ]
    memory = [] if layout.controller is None else [repr(layout.controller.memory.statistics())]
    return [*done, layout.readers["popped"].tolist(), layout.readers["peak"].tolist(), *written, *memory]


@pytest.mark.parametrize("limits", [pytest.param(each, marks=[pytest.mark.slow] * (k % 3 > 0)) for k, each in enumerate(LIMITS)])
def test_a_trial_leaves_no_trace(limits: Limits) -> None:
    """The layouts of random graphs with tiny rings, which grow in the trial, at memories that take time and others."""
    found = 0
    for seed in range(250):
        case = graph_fuzz.drawn(seed, "small")
        try:
            runs = [stuck(case, limits) for _ in range(2)]
        except SimulationError:
            continue
        if runs[0] is None or runs[1] is None:
            continue
        layout = runs[0][0]
        edges = [edge for r in full_readers(layout).values() if (edge := layout.edges[r].edge) is not None]
        snapshot, answers = Snapshot(layout), []
        for edge in [*edges[:2], *edges[:2]]:
            depth = int(layout.readers["depth"][layout.reader_of[edge]])
            answers.append(first_clearing_depth(layout, [edge], [*range(depth + 1, depth + 4), 1 << 20], library()))
            snapshot.restore()
        assert answers[: len(answers) // 2] == answers[len(answers) // 2 :]
        assert end(*runs[0]) == end(*runs[1])
        found += 1
    assert found > 5
