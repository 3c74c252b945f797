"""The `comal` machine: the published cycles of the golden cases, and what the rules say where there are none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import comal
import dataflow
import numpy as np
import pytest
import random_programs
from driving import drive, inputs_of
from hypothesis import HealthCheck, assume, given, settings
from tile_graphs import ONE

from fuseflow.einsum.format_inference import infer
from fuseflow.errors import FuseFlowError, MachineError
from fuseflow.fusion import fuse
from fuseflow.fusion.order_candidates import enumerate_orders
from fuseflow.machine.comal import broadcast_delays
from fuseflow.samml import nodes as n
from fuseflow.samml.text import parse as parse_graph
from fuseflow.sim import load_machine, simulate
from fuseflow.sim.reference.comal import RULES as comal_rules
from fuseflow.sim.reference.execute import RULES
from fuseflow.table import build_table, emit
from fuseflow.tensors import Format, Tensor, pack
from fuseflow.tile_ops import result_shape

COMAL, IDEAL = load_machine("comal"), load_machine("ideal")
LARGER = [case for case in comal.cases(comal.ALL) if case.n > 64]


@pytest.mark.parametrize("case", comal.cases(comal.HERE), ids=lambda case: case.id)
def test_golden_cases(case: comal.Case, tmp_path: Path) -> None:
    comal.check(case, tmp_path, "reference")


@pytest.mark.skipif(not comal.ALL.is_dir(), reason="../shared/golden/comal is not here")
@pytest.mark.parametrize("case", [c for c in LARGER if c.cycles < comal.SLOW], ids=lambda case: case.id)
def test_larger_golden_cases(case: comal.Case, tmp_path: Path) -> None:
    comal.check(case, tmp_path, "reference")


@pytest.mark.slow
@pytest.mark.skipif(not comal.ALL.is_dir(), reason="../shared/golden/comal is not here")
@pytest.mark.parametrize("case", [c for c in LARGER if c.cycles >= comal.SLOW], ids=lambda case: case.id)
def test_the_largest_golden_cases(case: comal.Case, tmp_path: Path) -> None:
    comal.check(case, tmp_path, "reference")


@pytest.mark.skipif(not comal.ALL.is_dir(), reason="../shared/golden/comal is not here")
def test_all_golden_cases_are_covered() -> None:
    assert len(comal.cases(comal.ALL)) == 41
    here = {case.id: case.cycles for case in comal.cases(comal.HERE)}
    assert len(here) == 14
    assert here == {case.id: case.cycles for case in comal.cases(comal.ALL) if case.n == 64}


def same_streams(graph: n.Graph, tensors: Mapping[str, Tensor]) -> None:
    found, wanted = (simulate(graph, tensors, machine, record=True, check=True) for machine in (COMAL, IDEAL))
    for port, recording in wanted.streams.items():
        np.testing.assert_equal(found.streams[port].tokens, recording.tokens, str(port))
    assert (found.operators, found.traffic, found.tokens) == (wanted.operators, wanted.traffic, wanted.tokens)
    for output, tensor in wanted.outputs.items():
        np.testing.assert_array_equal(found.outputs[output].to_dense(), tensor.to_dense())
    slow = {node.name for node in graph.nodes if isinstance(node, n.Alu) and node.function.startswith("matmul")}
    assert all(s.starved >= 0 and (s.blocked == 0 or s.name in slow) for s in found.nodes)


@pytest.mark.parametrize("name", sorted(dataflow.TEXTS))
@pytest.mark.parametrize("seed", range(6))
def test_streams_are_those_of_every_machine(name: str, seed: int) -> None:
    """Empty fibers at every level included: only times differ."""
    graph = dataflow.graph(name)
    tensors = dataflow.inputs(graph, np.random.default_rng(seed), [0.0, 0.2, 0.5, 0.8, 1.0, 0.3][seed])
    same_streams(graph, tensors)


@given(random_programs.cases(2, 3))
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_random_programs(case: random_programs.Case) -> None:
    program = infer(case.program)
    try:
        fused = fuse(program, "all", [e.name for e in program.einsums], program.outputs, {t.name: t for t in program.inputs})
        graph = emit(build_table(replace(fused, order=next(enumerate_orders(fused.constraints, fused.indices)))))
    except FuseFlowError:
        assume(False)
    same_streams(graph, case.tensors)


def fired(node: n.Node, *streams: str) -> list[str]:
    return drive(node, *streams, rules=RULES | comal_rules).fired


def test_reduce_gives_the_stop_with_the_sum() -> None:
    node = n.Reduce("r", inputs_of(1), "sum")
    assert fired(node, "1 2 S0 3 S1 S0 S1-2 D") == ["3@2 3@4 S0@4 0@5 S1@6 D@7"]


def test_repeat_takes_x_on_the_stop_and_looks_at_what_follows() -> None:
    node = n.Repeat("r", inputs_of(2))
    # the generator fires in 0, 1, ... : its tokens are there from 1 on. S0 waits for the token of x behind x
    assert fired(node, "5 6@9 S0 D", "1 2 S0 3 S1 D") == ["5@1 5@2 S0@9 6@10 S1@11 D@12"]
    # an empty fiber and a bare stop cost one firing each
    assert fired(node, "5 6 S0 S1 D", "S0 1 S1 S1-2 D") == ["S0@1 6@2 S1@3 S1-2@4 D@5"]


def test_accumulate_of_order_1_gives_a_workspace_at_once() -> None:
    node = n.Accumulate("a", inputs_of(3), "sum", 1)
    crds, rows, values = "7 8 S0 9 S1 D", "0 2 S0 1 2 S1 4 S2 D", "1 2 S0 3 4 S1 5 S2 D"
    # values in 0, 1, stop in 2; 3, 4, stop in 5, flush in 6; then 7, 8, flush in 9
    assert fired(node, crds, rows, values) == [
        "0@6 1@6 2@6 S0@6 4@9 S1@9 D@10",
        "1@6 3@6 6@6 S0@6 5@9 S1@9 D@10",
    ]


def test_accumulate_of_empty_fibers() -> None:
    node = n.Accumulate("a", inputs_of(3), "sum", 1)
    # nothing below coordinate 7: its stop in 0, the flush in 1. The next group is empty: that flush also looks at its stop, which comes
    # in 2, so the next one is in 3. No coordinate at all: the flush only
    assert fired(node, "7 S0 S1 D", "S1 S1-2 D", "S1 S1-2 D") == ["S0@1 S1@3 D@4"] * 2
    assert fired(node, "S1-1 D", "S2-2 D", "S2-2 D") == ["S1-1@0 D@1"] * 2


def test_accumulate_of_order_2() -> None:
    node = n.Accumulate("a", inputs_of(4), "sum", 2)
    streams = ("7 8 S0 D", "0 1 S0 0 S1 D", "5 S0 6 S1 4 S2 D", "1 S0 2 S1 3 S2 D")
    # six tokens of the values, a stop of the stream between for crd 7 and for 8, then one flush of the whole matrix
    assert fired(node, *streams) == ["0@8 1@8 S0@8 D@9", "4@8 5@8 S0@8 6@8 S1@8 D@9", "3@8 1@8 S0@8 2@8 S1@8 D@9"]


def test_accumulate_looks_at_the_next_token_of_every_input() -> None:
    node = n.Accumulate("a", inputs_of(3), "sum", 1)
    # the flush of the first group is due in 2, and waits for the next value
    assert (
        fired(node, "7@0 S0@1 8@2 S1@20 D@21", "0@0 S1@1 3@10 S2@20 D@21", "1@0 S1@1 2@10 S2@20 D@21")[0]
        == "0@10 S0@10 3@21 S1@21 D@22"
    )


def test_accumulate_waits_for_the_stop_of_a_stream_between() -> None:
    node = n.Accumulate("a", inputs_of(4), "sum", 2)
    streams = ("7@0 S0@1 D@2", "0@0 S1@50 D@51", "5@0 S2@1 D@2", "1@0 S2@1 D@2")
    assert fired(node, *streams) == ["0@51 S0@51 D@52", "5@51 S1@51 D@52", "1@51 S1@51 D@52"]


def test_accumulate_waits_for_the_stop_behind_a_coordinate_with_nothing_below() -> None:
    node = n.Accumulate("a", inputs_of(4), "sum", 2)
    streams = ("7@0 S0@1 D@2", "0@0 S1@50 D@51", "S2@0 D@2", "S2@0 D@2")
    assert fired(node, *streams) == ["S0@51 D@52", "S1-1@51 D@52", "S1-1@51 D@52"]


def written(stream: str, *, values: bool) -> int:
    """The cycle in which the writer ends, but for the `D` of a level."""
    decl = n.TensorDecl("Y", (9, 9, 9), Format.parse("csf", 3))
    node = n.WriteValues("w", inputs_of(1), "Y") if values else n.WriteLevel("w", inputs_of(1), "Y", 2)
    return drive(node, stream, declared=[decl], rules=RULES | comal_rules).last + values


def test_stops_that_writers_take_for_nothing() -> None:
    assert written("1 2 S0 S0 S1 3 S2 D", values=False) == 7  # at the speed of the stream
    late = "1@9 2@9 S0@9 S0@9 S1@9 3@9 S2@9 D@9"
    assert written(late, values=False) == 9 + 2 + 1 + 1 + 1
    assert written(late, values=True) == 9 + 3 + 1
    assert written("1@9 S0@20 D@20", values=True) == 21


FAN_OUT = """
tensor A[3, 4]  dcsr
tensor x[4]  dense
tensor y[3]  coo
output y
root = root()
i = scan(root) A.0
k = scan(i.ref) A.1
at = locate(k.crd) x.0
at.through = join(k.crd, k.ref) intersect
a = load(at.through.out0) A
b = load(at) x
r1 = repeat(i.ref, k.crd)
r2 = repeat(i.ref, k.crd)
sq = alu(a, a) mul N->0,N->0
mul = alu(sq, b) mul N->0,N->0
sum = reduce(mul) sum
y_i = write(i.crd) y.0
y_v = write(sum) y.vals
"""


def test_broadcasts() -> None:
    graph = parse_graph(FAN_OUT)
    passed = {f"{edge.node}.{edge.input}": delay for edge, delay in broadcast_delays(graph).items()}
    # i.ref: two repeats and a scan. k.ref: the locate with its join, and both repeats by way of it. a: twice in one node
    assert {edge for edge, delay in passed.items() if delay == 0} == {
        "i.0",
        "y_i.0",
        "a.0",
        "b.0",
        "mul.0",
        "mul.1",
        "sum.0",
        "y_v.0",
    }
    assert set(passed.values()) == {0, 1}


@pytest.mark.parametrize(
    ("function", "a", "b", "interval", "latency"),
    [
        ("matmul", (4, 4), (4, 4), 4, 7),  # the rules of that simulator: b, 2b - 1
        ("matmul", (2, 3), (3, 5), 3, 6),
        ("matmul_t", (2, 3), (5, 3), 3, 6),
        ("matmul", (1, 3), (3, 1), 3, 1),
        ("add", (4, 4), (4, 4), 1, 16),  # b * b
        ("add", (2, 1), (1, 3), 1, 6),
        ("mul", (1, 1), (1, 1), 1, 1),
    ],
)
def test_the_time_of_a_tile(function: str, a: tuple[int, int], b: tuple[int, int], interval: int, latency: int) -> None:
    y = result_shape(function, [a, b]) or ()
    text = ONE.format(a="x".join(map(str, a)), b="x".join(map(str, b)), y="x".join(map(str, y)), function=function)
    graph = parse_graph(text if y else text.replace(" tile \n", "\n"))
    one = pack(np.ones(4), Format.dense(1)).levels
    tensors = {name: Tensor((4,), Format.dense(1), one, np.ones((4, *tile))) for name, tile in (("A", a), ("B", b))}
    found = simulate(graph, tensors, COMAL, record=True)
    visible = {port.node: recording.visible for port, recording in found.streams.items()}
    first = {node.name: node.first for node in found.nodes}

    def given(node: str, interval: int, latency: int) -> tuple[int, ...]:
        """Of four values, a stop and `D`: the last two come a cycle after their firings, but not before the last value."""
        values = [first[node] + interval * k + latency for k in range(4)]
        return (*values, *(max(first[node] + interval * k + 1, values[-1]) for k in (4, 5)))

    assert visible["A_v"] == given("A_v", 1, a[0] * a[1])
    assert first["y"] == max(visible["A_v"][0], visible["B_v"][0])
    assert visible["y"] == given("y", interval, latency)
    taken = max(visible["y"][4], visible["y"][3] + 1)  # the reduction takes a token a cycle
    assert visible["total"][0] == taken + (y[0] * y[1] if y else 1)
    each = 2 if function == "add" else a[1] if "matmul" in function else 1
    assert set(found.outputs["s"].values.ravel().tolist()) == {4.0 * each}


def test_one_operand_takes_a_cycle_a_row() -> None:
    text = """
    tensor A[2]  dense f64 tile 3x5
    tensor s[2]  dense f64 tile 3x5
    output s
    root = root()
    i = scan(root) A.0
    v = load(i.ref) A
    y = alu(v) mul N->0,2
    i_w = write(i.crd) s.0
    w = write(y) s.vals
    """
    tensors = {"A": Tensor((2,), Format.dense(1), pack(np.ones(2), Format.dense(1)).levels, np.ones((2, 3, 5)))}
    found = simulate(parse_graph(text), tensors, COMAL, record=True)
    v, y = (found.streams[n.Port(name)].visible for name in ("v", "y"))
    assert (v, y) == ((17, 18, 18, 18), (20, 21, 21, 21))  # the stop is taken in 19, `D` in 20


def test_a_select_is_refused() -> None:
    graph = parse_graph(
        "graph few\ntensor A[3]  (compressed)\nroot = root()\nA_i = scan(root) A.0\nA_v = load(A_i.ref) A\n"
        "few = select(A_i.crd, A_v) keep=2 every=0 levels=1"
    )
    with pytest.raises(
        MachineError, match=r"`few` keeps the largest entries .*; machine `comal` has no times for that\n.*rules: dataflow"
    ):
        simulate(graph, {}, COMAL)


def test_a_permute_is_refused() -> None:
    graph = parse_graph(
        "graph copy\ntensor A[2, 3]  dcsr\nroot = root()\nA_i = scan(root) A.0\nA_k = scan(A_i.ref) A.1\nA_v = load(A_k.ref) A\n"
        "turned = permute(A_i.crd, A_k.crd, A_v) order=1,0"
    )
    with pytest.raises(
        MachineError, match=r"`turned` permutes the levels .*; machine `comal` has no times for that\n.*rules: dataflow"
    ):
        simulate(graph, {}, COMAL)


def test_broadcasts_take_a_cycle_each() -> None:
    graph = parse_graph(FAN_OUT)
    tensors = {"A": pack(np.ones((3, 4)), graph.declared["A"].format), "x": pack(np.ones(4), graph.declared["x"].format)}
    first = {s.name: s.first for s in simulate(graph, tensors, COMAL).nodes}
    # i fires in 1; its references are there in 2, for three readers in 3; so k fires in 3, and its references are there in 4, for the
    # locate and the generators of both repeats in 5
    assert [first[name] for name in ("i", "y_i", "k", "at", "at.through", "r1", "r2")] == [1, 2, 3, 5, 5, 5, 5]


def test_a_root_alone_takes_two_cycles() -> None:
    assert simulate(n.Graph("nothing", (), (n.Root("r", ()),), ()), {}, COMAL).cycles == 2


def test_a_graph_with_depths_is_refused() -> None:
    graph = replace(parse_graph(FAN_OUT), depths=((n.Edge("a", 0), 4),))
    with pytest.raises(MachineError, match="has 4 slots at input 0 of `a`; FIFOs of machine `comal` are unbounded"):
        simulate(graph, {}, COMAL)
