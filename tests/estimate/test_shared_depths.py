"""A graph with other depths of FIFOs is not counted again, and its estimate is what it is if it were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import fuseflow as ff
from fuseflow.compiler import compile_source
from fuseflow.estimate.program import Estimator
from fuseflow.samml.nodes import Edge

ROOT = Path(__file__).resolve().parents[2]
PARTIAL = ff.Schedule.load(ROOT / "schedules" / "gcn_partial.yaml")
DEPTHS = (None, 2, 256, 1024)


@pytest.mark.parametrize("machine", ["rda", "ideal", "comal"])
def test_depths_change_no_count(machine: str) -> None:
    path = ROOT / "models" / "paper" / "gcn.py"
    compiled = ff.compile(path, data="random:nodes=20,features=8,classes=3", schedule=PARTIAL, machine=machine)
    shared, cycles = Estimator(), set[float]()
    for lanes in (1, 3):
        schedule = compiled.schedule.par(i=lanes) if lanes > 1 else compiled.schedule
        for depth in DEPTHS if machine != "comal" else DEPTHS[:1]:
            stated = schedule if depth is None else schedule.depth("layer1", depth).depth("layer2", depth)
            program = compile_source(compiled.source, stated, compiled.machine)
            one, other = program.estimate(shared), program.estimate(Estimator())
            assert [(r.bound, r.resources, r.firings) for r in one.regions] == [
                (r.bound, r.resources, r.firings) for r in other.regions
            ]
            cycles.add(one.cycles)
    assert len(cycles) > (2 if machine == "rda" else 1)


def test_what_is_counted_is_shared_and_slots_are_not() -> None:
    path = ROOT / "models" / "paper" / "gcn.py"
    compiled = ff.compile(path, data="random:nodes=12,features=4,classes=3", schedule=PARTIAL, machine="rda")
    estimator, region = Estimator(), compiled.regions[0]
    knowledge = estimator.knowledge(compiled.program, compiled.source.tensors)
    shallow = {Edge(node.name, k): 2 for node in region.graph.nodes for k in range(len(node.inputs))}
    plain, deep = (estimator.bounds(replace(region.graph, depths=()).with_depths(d), knowledge) for d in ({}, shallow))
    assert deep.counts.streams is plain.counts.streams
    assert deep.counts.graph.depths and not plain.counts.graph.depths
    assert deep.on(compiled.machine).bound.cycles > plain.on(compiled.machine).bound.cycles
