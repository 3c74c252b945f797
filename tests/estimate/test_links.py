"""Estimates of placed graphs, with the hops between their tiles, beside runs."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import fuseflow as ff
from fuseflow.array.placed_region import PlacementSearch
from fuseflow.array.settings import load_array
from fuseflow.estimate.program import Estimator
from fuseflow.run.placed import RegionPlacing

ONYX = load_array("onyx")


def test_estimates_with_links_are_as_near_as_those_without() -> None:
    """Every operator of a GCN on Onyx, where sums go round the tiles of an accumulation."""
    compiled = ff.compile("models/gcn.py", schedule=ff.Schedule.fuse("none"))
    linked = RegionPlacing(ONYX, compiled.machine, PlacementSearch(effort=1.0, seeds=1)).linked(compiled)
    ran = {region.name: region.cycles for region in linked.run(check=False).regions}
    errors = {}
    for name, program in (("near", compiled), ("placed", linked)):
        regions = program.estimate(Estimator(assume_unknown=True)).regions
        errors[name] = [abs(float(region.bound.cycles) / ran[region.name] - 1) for region in regions]
    assert median(errors["placed"]) < 0.06 and max(errors["placed"]) < 0.15
    assert max(errors["near"]) > 0.2


def test_a_loop_round_the_tiles_of_an_accumulation_is_a_pause_behind_each_fiber() -> None:
    compiled = ff.compile("docs/example/spmm.ein", tensors="docs/example/tensors.yaml")
    linked = RegionPlacing(ONYX, compiled.machine, PlacementSearch(effort=0.1, seeds=1)).linked(compiled)
    (region,), (graph,) = linked.regions, (linked.regions[0].graph,)
    loops = {name: hops.loop for name, hops in graph.node_hops if hops.loop}
    without = replace(graph, node_hops=tuple((name, replace(hops, loop=0)) for name, hops in graph.node_hops))
    works = []
    for own in (without, graph):
        program = replace(linked, regions=(replace(region, graph=own),))
        works.append({node.name: node.occupied for node in program.estimate(Estimator()).regions[0].work.nodes})
    assert loops
    for name, before in works[0].items():
        stops, rest = divmod(works[1][name] - before, loops.get(name, 1))
        assert rest == 0 and (stops > 1 if name in loops else stops == 0)
