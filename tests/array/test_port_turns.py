"""Ports that nodes share: who shares one, what helps where they are too few, and what it takes."""

from __future__ import annotations

import random
from itertools import combinations
from math import inf

import pytest
from arrays import recorded_graph

import fuseflow as ff
from fuseflow.array.capacity import require_fit, tile_use
from fuseflow.array.links import at_equal_slots, linked_graph
from fuseflow.array.placed_region import PlacementSearch, place_region
from fuseflow.array.port_turns import _packed, port_counts, port_groups, with_turns
from fuseflow.array.settings import ArraySettings, load_array
from fuseflow.errors import ArrayError
from fuseflow.estimate.program import Estimator
from fuseflow.run.compiled import Compiled
from fuseflow.samml.nodes import Turn
from fuseflow.samml.verify import verify
from fuseflow.sim import simulate

ONYX = load_array("onyx")


def sharing(share: int, array: ArraySettings = ONYX) -> ArraySettings:
    return array.model_copy(update={"ports": array.ports.model_copy(update={"share": share})})


@pytest.fixture(scope="module")
def gcn() -> Compiled:
    """README's GCN on the karate club, fully fused, with four lanes."""
    return ff.compile("models/gcn.py", data="karate", schedule=ff.Schedule.fuse("full").par(i=4))


def test_no_port_is_shared_where_there_are_enough() -> None:
    graph = recorded_graph("gcn", 1)
    assert port_groups(graph, sharing(64)) == port_groups(graph, ONYX)
    assert with_turns(graph, sharing(64)) == graph


@pytest.mark.parametrize("share", [2, 3, 5, 64])
def test_every_node_has_a_turn_at_one_port(share: int) -> None:
    graph = recorded_graph("gcn", 4)
    groups = port_groups(graph, sharing(share))
    assert sorted(name for group in groups for name in group) == sorted(port_counts(graph, ONYX))
    assert len(groups) == 32 and max(map(len, groups)) <= share
    turned = with_turns(graph, sharing(share))
    verify(turned)
    assert dict(turned.turns) == {
        name: Turn(turn, len(group)) for group in groups for turn, name in enumerate(group) if len(group) > 1
    }


def test_outer_streams_share_first() -> None:
    graph = recorded_graph("gcn", 4)
    types = graph.types()
    depths = [
        [max(types[port].depth for port in (*graph.by_name[name].inputs, *graph.by_name[name].ports)) for name in group]
        for group in port_groups(graph, sharing(3))
    ]
    assert max(max(depth) for depth in depths if len(depth) == 3) < max(max(depth) for depth in depths if len(depth) == 1)


def test_no_other_groups_have_a_smaller_load() -> None:
    """By enumeration of all ways to cut up to nine nodes into groups."""
    rng = random.Random("loads")
    for _ in range(200):
        weights = {f"n{k}": 1 << rng.randint(1, 5) for k in range(rng.randint(2, 9))}
        names, share = sorted(weights, key=lambda name: -weights[name]), rng.randint(2, 4)
        ports = rng.randint(-(-len(names) // share), len(names))
        least: float = inf
        for cuts in combinations(range(1, len(names)), ports - 1):
            groups = [names[a:b] for a, b in zip((0, *cuts), (*cuts, len(names)), strict=True)]
            if max(map(len, groups)) <= share:
                least = min(least, max(len(group) * weights[group[0]] for group in groups))
        assert len(_packed(names, weights, int(least), share)) <= ports < len(_packed(names, weights, int(least) - 1, share)) or (
            least == max(weights.values())
        )


def test_what_would_help_is_said_with_numbers(gcn: Compiled) -> None:
    (region,) = gcn.regions
    with pytest.raises(ArrayError) as refused:
        require_fit(tile_use(region.graph, ONYX), "full")
    assert "needs 69 ports, and array `onyx` has 32" in refused.value.message
    preloads = " ".join(f"--preload {name}=1" for name in ("layer1.bias", "layer1.weight", "layer2.bias", "layer2.weight"))
    assert refused.value.hint == (
        f"a cut (`--fuse`), fewer lanes (`--par`), or `{preloads}` (57 ports), or `ports: {{share: 3}}` in the array file "
        "(69 streams at 32 ports)"
    )
    use = [tile_use(region.graph, sharing(share)) for share in (2, 3)]
    assert [one.fits for one in use] == [False, True]


def test_what_is_preloaded_has_the_ports_of_its_first_node() -> None:
    schedule = ff.Schedule.fuse("full").par(i=4).preload("layer1.weight", 3).preload("layer2.weight", 1)
    (region,) = ff.compile("models/gcn.py", data="karate", schedule=schedule).regions
    groups = port_groups(region.graph, sharing(3))
    assert len(port_groups(region.graph, ONYX)) == 69 - 4 - 4 + 3 + 1
    (first,) = {group[0] for group in groups if groups.count(group) == 3}
    assert region.graph.by_name[first].tensor == "layer1.weight"
    assert first not in dict(with_turns(region.graph, sharing(3)).turns)


def test_a_placed_graph_has_its_turns() -> None:
    """Eight streams at the four ports of a narrow array, two at each."""
    compiled = ff.compile("docs/example/spmm.ein", tensors="docs/example/tensors.yaml")
    array = ArraySettings.model_validate({**sharing(2).model_dump(), "grid": {"columns": 4, "rows": 16}})
    (region,) = compiled.regions
    placed = place_region(region.graph, array, compiled.machine, PlacementSearch(effort=0.1, seeds=1))
    assert sorted(turn.number for _, turn in linked_graph(placed).turns) == [0] * 4 + [1] * 4
    assert linked_graph(placed).turns == at_equal_slots(placed, compiled.machine).turns == with_turns(region.graph, array).turns


def test_the_price_of_shared_ports(gcn: Compiled) -> None:
    """With three streams at a port at most GCN with four lanes fits, and takes 1.06 times the cycles."""
    (region,) = gcn.regions
    tensors = gcn.memory()
    cycles = [
        simulate(with_turns(region.graph, sharing(share)), tensors, gcn.machine, engine="fast").cycles for share in (1, 3, 8)
    ]
    assert cycles == [9164, 9741, 9244]
    estimates = [gcn.estimate(Estimator(array=sharing(share))).cycles for share in (1, 3, 8)]
    assert all(abs(estimate / exact - 1) < 0.06 for estimate, exact in zip(estimates, cycles, strict=True))
