"""The area of graphs from the table, against circuits that yosys made, and against sums by hand."""

from __future__ import annotations

import pytest
from matvec_graph import MATVEC

import fuseflow as ff
from fuseflow.hardware.area.parts import shallow_slots
from fuseflow.hardware.primitives.remote_lookup import REMOTE_RULES
from fuseflow.ops import OPERATORS, REDUCERS
from fuseflow.resources import graph_resources
from fuseflow.resources.area import AreaCount, FifoForm, fifo_area, unit_area
from fuseflow.resources.gate_areas import GATE_EQUIVALENT, MEMORY_BIT
from fuseflow.resources.unit_areas import OPERATOR, PORT
from fuseflow.samml import nodes as n
from fuseflow.samml.primitives import NODE_TYPES
from fuseflow.samml.text import parse
from fuseflow.sim import Machine, load_machine

LANES = """graph lanes
tensor x[6]  dense
tensor y[6]  dense
output y
root = root()
x_i = scan(root) x.0
x_v = load(x_i.ref) x
fork_x = fork(x_v) 2
a = alu(fork_x.lane0) mul N->0,2
b = alu(fork_x.lane1) mul N->0,2
out = merge(a, b) levels=0
y_i = write(x_i.crd) y.0
y_v = write(out) y.vals
"""
BY_YOSYS = {"rtl": {"layer1": 103_605, "layer2": 220_351}, "rda": {"layer1": 200_055, "layer2": 279_076}}
"""What `fuseflow area models/gcn.py --small --data karate --fuse layerwise` says, on `rda` in 32-bit floats."""
LAYERWISE = ff.Schedule.fuse("layerwise")


@pytest.mark.parametrize("name", BY_YOSYS)
def test_areas_are_near_those_of_the_gates(name: str) -> None:
    machine = load_machine(name, {"arithmetic": "f32"})
    compiled = ff.compile("models/gcn.py", data="karate", options={"small": True}, machine=machine, schedule=LAYERWISE)
    for region in compiled.estimate().regions:
        assert region.resources.area == pytest.approx(BY_YOSYS[name][region.name], rel=0.05)


FIFOS = {(8, 13, 1): 1234, (8, 34, 1): 2921, (8, 34, 4): 3526, (8, 34, 16): 5922, (8, 13, 4): 1482}
DEEP = {(64, 34, 1): 349, (64, 13, 4): 594, (64, 34, 16): 3347, (512, 26, 1): 507, (16, 10, 4): 430}
"""By slots, bits and latency, what yosys made of FIFOs without the memories of deep ones."""


def test_fifos_are_near_those_of_the_gates() -> None:
    for (depth, width, latency), area in FIFOS.items():
        assert fifo_area(FifoForm(width, latency), depth) == pytest.approx(area, rel=0.06)
    for (depth, width, latency), area in DEEP.items():
        words = depth * width * MEMORY_BIT / GATE_EQUIVALENT
        assert fifo_area(FifoForm(width, latency), depth) == pytest.approx(area + words, rel=0.06)


def test_fifos_of_tiles_are_those_of_their_module() -> None:
    """Tiles have no registers for a latency, and lie in flip-flops in as many slots as the module says."""
    tile = "tensor A[3] dense f32 tile 2x2\ntensor y[3] dense f32 tile 2x2\noutput y\nroot = root()\ni = scan(root) A.0\n"
    graph = parse(tile + "v = load(i.ref) A\nw = write(i.crd) y.0\nt = write(v) y.vals\n")
    machine = Machine(name="hand", fifo_depth=64, latency={"default": 1, "memory": 5})
    form = AreaCount(graph, machine).fifo_form(graph.by_name["t"], 0)
    assert form == FifoForm(4 * 32 + 2, 1, shallow_slots("ff_tile_channel"))
    assert fifo_area(form, 8) < fifo_area(FifoForm(4 * 32 + 2, 5), 8) / 2


def test_the_area_of_a_graph_is_the_sum_of_its_parts() -> None:
    graph, machine = parse(MATVEC), Machine(name="hand", fifo_depth=64)
    areas = AreaCount(graph, machine)
    control = sum(node.area.at_once for node in graph.nodes)
    fifos = 10 * fifo_area(FifoForm(8 + 2, 1), 64) + 4 * (
        fifo_area(FifoForm(34, 1), 64) - fifo_area(FifoForm(10, 1), 64)
    )  # four carry values
    fifos += fifo_area(FifoForm(2, 1), 64) - fifo_area(FifoForm(10, 1), 64)  # what the root gives is the kind of a token alone
    assert areas.index_bits == 8
    assert graph_resources(graph, machine, {}).area == control + OPERATOR["mul"] + OPERATOR["fold_sum"] + fifos


def test_a_memory_that_takes_time_adds_ports_and_rules() -> None:
    graph = parse(MATVEC)
    at_once, in_time = (AreaCount(graph, load_machine(name)) for name in ("ideal", "rda"))
    load, locate = graph.by_name["A_v"], graph.by_name["x_k"]
    assert at_once.node(load) == n.Load.area.at_once
    assert in_time.node(load) > n.Load.area.at_memory + PORT
    assert at_once.node(locate) == in_time.node(locate)  # a dense level is not stored


def test_two_lanes_have_two_units_and_rules_for_each_lane() -> None:
    graph = parse(LANES)
    areas = AreaCount(graph, Machine(name="hand", fifo_depth=4))
    assert areas.control(graph.by_name["fork_x"]) == 2 * n.Fork.area.at_once
    assert areas.control(graph.by_name["out"]) == 2 * n.Merge.area.at_once


def test_an_unbounded_fifo_has_no_area() -> None:
    assert graph_resources(parse(MATVEC), load_machine("ideal"), {}).area is None


def test_every_primitive_and_operator_has_an_area() -> None:
    assert all(kind.area.at_once > 0 for kind in NODE_TYPES)
    counted = REMOTE_RULES.keys() - {n.Root}  # a root waits for a scratchpad alone, whose area is refused
    assert all(kind.area.at_memory > kind.area.at_once for kind in counted)
    assert all(unit_area(name) > 0 for name in (*OPERATORS, *(f"fold_{name}" for name in REDUCERS)))
