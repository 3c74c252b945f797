"""Links: every token a cycle later on every machine, to all readers at once, with the facts of its stream."""

from __future__ import annotations

import pytest
from driving import drive, inputs_of

from fuseflow.errors import MachineError
from fuseflow.samml import nodes as n
from fuseflow.samml.text import parse, show
from fuseflow.samml.verify import verify
from fuseflow.sim import Machine, load_machine, simulate
from fuseflow.tensors import Format, pack

TEXT = """\
graph squares
tensor x[5]  (compressed) f64
tensor y[5]  (compressed) f64
output y

root = root()
x_i = scan(root) x.0 sequential
far = link(x_i.ref)
x_v = load(far) x sequential
x_w = load(far) x sequential
mul = alu(x_v, x_w) mul N->0,N->0
y_i = write(x_i.crd) y.0
y_v = write(mul) y.vals

hops far[0] 2
hops x_w[0] 3
"""
TENSORS = {"x": pack([0.0, 2.0, 0.0, 3.0, 1.0], Format.parse("(compressed)", 1))}


def test_every_token_is_given_on() -> None:
    assert drive(n.Link("l", inputs_of(1)), "1 N S0 S0 5@9 S1 D").fired == ["1@0 N@1 S0@2 S0@3 5@9 S1@10 D@11"]


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_it_takes_a_cycle_on_every_machine(engine: str) -> None:
    graph = parse(TEXT)
    verify(graph)
    assert show(graph) == TEXT
    plain = parse(TEXT.replace("far = link(x_i.ref)\n", "").replace("(far)", "(x_i.ref)").partition("hops")[0])
    for machine in (
        load_machine("ideal"),
        Machine.model_validate({"name": "slow", "latency": {"default": 5}, "interval": {"default": 2}, "fifo_depth": 8}),
    ):
        near, far = (simulate(g, TENSORS, machine, engine=engine, check=True) for g in (plain, graph))
        assert far.cycles == near.cycles + 2 + 1 + 3
        assert far.outputs["y"].to_dense().tolist() == [0, 4, 0, 9, 1]
        assert (near.hops, far.hops, far.node_count, len(far.nodes)) == (0, 6, near.node_count, near.node_count + 1)


def test_its_fifo_covers_the_latency_of_its_writer() -> None:
    """A scan of a latency of 7 gives a token a cycle to the two slots of a link, whose reader takes one a cycle."""
    machine = Machine.model_validate({"name": "slow", "latency": {"default": 1, "memory": 7}, "fifo_depth": 64})
    graph = parse(TEXT.replace("hops far[0] 2\n", ""))
    (scan,) = (node for node in simulate(graph, TENSORS, machine).nodes if node.name == "x_i")
    assert scan.blocked == 0


def test_comal_has_none() -> None:
    with pytest.raises(MachineError, match="`far` is a hop of an array"):
        simulate(parse(TEXT.partition("hops")[0]), TENSORS, load_machine("comal"))
