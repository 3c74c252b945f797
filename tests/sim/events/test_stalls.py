"""Stalls over time: added up over all windows they are what the statistics of the run say, which simulators count in another way."""

from __future__ import annotations

import pytest
from anywhere import anywhere

from fuseflow.errors import FuseFlowError
from fuseflow.sim import Engine, simulate
from fuseflow.sim.events.stalls import WINDOWS
from fuseflow.sim.traced_rerun import find_stalls


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_stalls_add_up_to_the_statistics(engine: Engine):
    checked = 0
    for seed in range(12):
        case = anywhere(seed)
        if case.machine.rules == "comal":  # where the firing on `D` costs no cycle
            continue
        try:
            simulation = simulate(case.graph, case.tensors, case.machine, engine=engine)
        except FuseFlowError:
            continue
        stalls = find_stalls(case.graph, case.tensors, case.machine, simulation)
        for node in simulation.nodes:
            counts = stalls.nodes[node.name]
            busy, starved, memory, blocked = counts.sum(axis=1).tolist()
            assert counts.min(initial=0) >= 0 and counts.shape[1] <= WINDOWS
            assert counts.max(initial=0) <= stalls.window * stalls.processes[node.name]
            assert stalls.processes[node.name] == node.processes
            spent = node.busy + node.starved + node.waited + node.blocked
            assert busy >= node.busy and busy + starved + memory + blocked == spent, (seed, node)
            checked += 1
    assert checked > 50
