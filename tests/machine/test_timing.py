"""Latency and interval of a node, the same for every simulator."""

from __future__ import annotations

import pytest

from fuseflow.machine.timing import node_timing
from fuseflow.samml import nodes as n
from fuseflow.sim import load_machine
from fuseflow.tile_ops import TileShape

NOTHING = n.Graph("nothing", (), (), ())


@pytest.mark.parametrize(("tile", "expected"), [((), (4, 1, 1)), ((16, 16), (4, 1, 1)), ((32, 32), (7, 4, 4))])
def test_a_permute_takes_as_long_as_a_sum(tile: TileShape, expected: tuple[int, int]) -> None:
    """Its workspace is that of an accumulator, which has an adder before it."""
    machine = load_machine("rda")
    assert node_timing(n.Accumulate("a", (), "sum", 1), NOTHING, machine, [tile])[:3] == expected
    assert node_timing(n.Permute("p", (), (1, 0)), NOTHING, machine, [tile])[:3] == expected


def test_a_fold_waits_for_its_last_addition() -> None:
    """A reduction takes `interval.fold` cycles to the next value, and what an accumulate emits takes none of them. Latency is that of the
    unit, and that of a tile as before."""
    machine = load_machine("ideal", {"interval.fold": 3, "latency.add": 4, "tile_macs": 1})
    assert node_timing(n.Reduce("r", (), "sum"), NOTHING, machine, [()])[:3] == (4, 3, 1)
    assert node_timing(n.Accumulate("a", (), "sum", 1), NOTHING, machine, [()])[:3] == (4, 3, 1)
    assert node_timing(n.Accumulate("a", (), "sum", 1), NOTHING, machine, [(1, 2)])[:3] == (5, 3, 2)
    assert node_timing(n.Accumulate("a", (), "sum", 1), NOTHING, machine, [(2, 4)])[:3] == (11, 8, 8)
    assert node_timing(n.Permute("p", (), (1, 0)), NOTHING, machine, [()])[:3] == (4, 1, 1)
    assert node_timing(n.Alu("x", (), "add", ()), NOTHING, machine, [(), ()])[:3] == (4, 1, 1)
