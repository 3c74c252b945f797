"""A run that stands still is tried with deeper FIFOs, and returns to where it stood, whatever grew on the way."""

from __future__ import annotations

import graph_fuzz
import numpy as np
import pytest
from engines import LIMITS
from random_graphs.case import Case

from fuseflow.errors import SimulationError
from fuseflow.native.kernel_library import library
from fuseflow.sim.engine.buffer_growth import PartOutput, collect_all
from fuseflow.sim.engine.execute import first_clearing_depth, run
from fuseflow.sim.engine.network_layout import NetworkLayout, lay_out
from fuseflow.sim.engine.node_layout import Limits
from fuseflow.sim.engine.outcome import full_readers
from fuseflow.sim.engine.snapshot import Snapshot


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


@pytest.mark.parametrize("limits", LIMITS)
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
