"""`simulate`: what it returns, what it counts, what it refuses."""

from __future__ import annotations

import re
from dataclasses import replace

import dataflow
import numpy as np
import pytest

from fuseflow.errors import MachineError, SimulationError, TensorError
from fuseflow.samml import nodes as n
from fuseflow.samml.text import parse
from fuseflow.samml.tokens import show
from fuseflow.sim import Machine, Simulation, Traffic, load_machine, simulate
from fuseflow.sim.signature import signature
from fuseflow.tensors import Format, pack

IDEAL = load_machine("ideal")
DOT = """
graph dot
tensor A[2, 3]  csr
tensor x[3]  dense f64
tensor y[2]  dense i32
output y
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
A_v = load(A_k.ref) A
x_k = locate(A_k.crd) x.0
x_v = load(x_k) x
mul = alu(A_v, x_v) mul N->0,N->0
sum = reduce(mul) sum
y_i = write(A_i.crd) y.0
y_v = write(sum) y.vals
"""
MATRIX = np.array([[1, 0, 2], [0, 0, 3]], dtype=np.float32)


def dot() -> tuple[n.Graph, dict[str, object]]:
    graph = parse(DOT)
    return graph, {"A": pack(MATRIX, Format.parse("csr", 2)), "x": pack(np.array([1.0, 2.0, 4.0]), Format.dense(1))}


def test_a_small_run_by_hand() -> None:
    graph, tensors = dot()
    result = simulate(graph, tensors, IDEAL, record=True, check=True)
    assert result.outputs["y"].to_dense().tolist() == [9, 12]
    assert result.outputs["y"].dtype == np.int32
    # A_i fires in 1, 2, 3; A_k in 2, 3, 4 (S0: the next row is there), 5, 6 (S1), 7; three nodes behind it, then the sum's second stop
    assert show(result.streams[n.Port("A_k")].tokens) == "0 2 S0 2 S1 D"
    assert result.streams[n.Port("A_k")].visible == (3, 4, 5, 6, 7, 8)
    assert [(s.name, s.firings, s.first, s.last) for s in result.nodes] == [
        ("root", 2, 0, 1), ("A_i", 4, 1, 4), ("A_k", 6, 2, 7), ("A_v", 6, 3, 8), ("x_k", 6, 3, 8), ("x_v", 6, 4, 9),
        ("mul", 6, 5, 10), ("sum", 7, 6, 12), ("y_i", 4, 2, 5), ("y_v", 4, 9, 13),
    ]  # fmt: skip
    assert result.cycles == 14
    assert result.firings == sum(s.firings for s in result.nodes)
    assert result.flops == 3 + 3
    # root 2, A_i 4 + 4, A_k 6 + 6, A_v, x_k, x_v, mul 6 each, sum 4
    assert result.tokens == 2 + 8 + 12 + 24 + 4


def test_traffic_counts_the_elements_requested() -> None:
    graph, tensors = dot()
    assert simulate(graph, tensors, IDEAL).traffic == (
        Traffic("A", "pos", "read", 2 * 2, 2 * 2 * 4),
        Traffic("A", "crd", "read", 3, 3 * 4),
        Traffic("A", "val", "read", 3, 3 * 4),
        Traffic("x", "val", "read", 3, 3 * 8),
        Traffic("y", "val", "write", 2, 2 * 4),
    )


def test_traffic_of_compressed_results_and_absent_references() -> None:
    graph = dataflow.graph("aligned")
    tensors = dataflow.inputs(graph, np.random.default_rng(1))
    result = simulate(graph, tensors, IDEAL)
    y = result.outputs["Y"]
    found = {(t.tensor, t.kind, t.direction): t.bytes for t in result.traffic}
    assert found["Y", "pos", "write"] == y.pos_bytes
    assert found["Y", "crd", "write"] == y.crd_bytes
    assert found["Y", "val", "write"] == y.values.nbytes
    assert found["B", "val", "read"] == tensors["B"].values.nbytes  # once each; an absent one reads nothing


def test_traffic_is_the_same_on_every_machine() -> None:
    graph = dataflow.graph("pruned")
    tensors = dataflow.inputs(graph, np.random.default_rng(2))
    slow = Machine.model_validate({"name": "slow", "latency": {"default": 7}, "interval": {"default": 3}, "fifo_depth": 64})
    a, b = simulate(graph, tensors, IDEAL), simulate(graph, tensors, slow)
    assert (a.traffic, a.flops, a.firings, a.tokens) == (b.traffic, b.flops, b.firings, b.tokens)
    assert a.cycles < b.cycles


def test_the_unit_of_a_node_sets_its_latency() -> None:
    graph, tensors = dot()
    for unit, slower in (("mul", 1), ("add", 1), ("memory", 3), ("logic", 0), ("default", 5)):
        machine = Machine.model_validate({"name": "m", "latency": {unit: 11} if unit != "default" else {"default": 11}})
        assert (simulate(graph, tensors, machine).cycles - 14 > 0) == (slower > 0), unit


def test_progress_reports_firings() -> None:
    graph = dataflow.graph("outer_product")
    rng = np.random.default_rng(0)
    graph = replace(
        graph,
        tensors=(
            replace(graph.declared["A"], shape=(60, 60)),
            replace(graph.declared["X"], shape=(60, 60)),
            replace(graph.declared["Y"], shape=(60, 60)),
        ),
    )
    tensors = dataflow.inputs(graph, rng, 0.9)
    seen: list[int] = []
    result = simulate(graph, tensors, IDEAL.model_copy(update={"fifo_depth": 8}), seen.append)
    assert seen
    assert seen == sorted(seen)
    assert seen[-1] <= result.firings
    np.testing.assert_allclose(result.outputs["Y"].to_dense(), tensors["A"].to_dense().T @ tensors["X"].to_dense())


def test_missing_and_mismatched_tensors() -> None:
    graph, tensors = dot()
    with pytest.raises(TensorError, match="reads tensor `x`, which is not there"):
        simulate(graph, {"A": tensors["A"]}, IDEAL)
    for wrong, what in (
        (pack(np.zeros(4), Format.dense(1)), r"`x` has shape \(4,\); graph `dot` declares \(3,\)"),
        (pack(np.zeros(3), Format.of("compressed")), r"`x` has format \(compressed\)"),
        (pack(np.ones(3), Format.dense(1), 1.0), "`x` has implicit value 1"),
    ):
        with pytest.raises(TensorError, match=what):
            simulate(graph, tensors | {"x": wrong}, IDEAL)


def test_an_implicit_nan_equals_itself() -> None:
    graph, tensors = dot()
    nan = float("nan")
    graph = replace(graph, tensors=tuple(replace(t, fill=nan) if t.name == "x" else t for t in graph.tensors))
    wrong = pack(np.ones(3), Format.dense(1), nan)
    assert simulate(graph, tensors | {"x": wrong}, IDEAL).outputs["y"].to_dense().tolist() == [3, 3]


def test_n_is_refused_where_it_has_no_meaning() -> None:
    graph = dataflow.graph("aligned")
    nodes = []
    for node in graph.nodes:
        raw = n.Port("j", 1)  # payload of a union, may be `N`
        nodes.append(n.WriteValues(node.name, (raw,), "Y") if node.name == "Y_v" else node)
    with pytest.raises(SimulationError, match=r"`Y_v`.* refuses: put an `alu copy`"):
        simulate(replace(graph, nodes=tuple(nodes)), dataflow.inputs(graph, np.random.default_rng(1)), IDEAL)


def test_check_names_the_stream_that_is_malformed() -> None:
    graph, tensors = dot()
    flat = n.Flatten("flat", (n.Port("A_i"), n.Port("A_k")), 0)  # with a size of 0, coordinates of all rows are one list
    graph = replace(graph, nodes=(*graph.nodes, flat))
    simulate(graph, tensors, IDEAL)
    with pytest.raises(SimulationError, match=r"output 0 of node `flat`: .*coordinates must ascend: 0 2 2 S0 D"):
        simulate(graph, tensors, IDEAL, check=True)


@pytest.mark.parametrize("shape", [(0, 0), (1, 1)])
@pytest.mark.parametrize("stored", [True, False])
def test_the_smallest_matrices(shape: tuple[int, int], stored: bool) -> None:
    graph = parse(
        DOT.replace("[2, 3]", f"[{shape[0]}, {shape[1]}]").replace("[3]", f"[{shape[1]}]").replace("[2]", f"[{shape[0]}]")
    )
    matrix = np.full(shape, 2.0 if stored else 0.0, dtype=np.float32)
    tensors = {"A": pack(matrix, Format.parse("csr", 2)), "x": pack(np.full(shape[1], 3.0), Format.dense(1))}
    result = simulate(graph, tensors, IDEAL, check=True)
    assert result.outputs["y"].to_dense().tolist() == (matrix @ np.full(shape[1], 3.0)).tolist()


def test_moving_a_value_is_no_operation() -> None:
    """`copy` and `where` compute nothing: the operator table counts 0 for them."""
    graph, tensors = dot()
    moved = n.Alu("moved", (n.Port("mul"),), "copy", (n.Operand(0.0),))
    summed = n.Reduce("sum", (n.Port("moved"),), "sum")
    nodes = tuple(new for node in graph.nodes for new in ((moved, summed) if node.name == "sum" else (node,)))
    assert simulate(replace(graph, nodes=nodes), tensors, IDEAL).flops == simulate(graph, tensors, IDEAL).flops


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("machine", ["ideal", "rda"])
def test_a_graph_whose_streams_nobody_reads(engine: str, machine: str) -> None:
    """It has no FIFO, and no port at the memory: both simulators made one record too many of each."""
    result = simulate(parse("graph g\nroot = root()\n"), {}, load_machine(machine), engine=engine)
    assert (result.cycles, result.firings, result.edges) == (2, 2, ())


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_hops_of_a_path_add_up(engine: str) -> None:
    graph, tensors = dot()
    far = graph.with_hops({n.Edge("mul", 1): n.Hops(3), n.Edge("sum", 0): n.Hops(4, slots=0), n.Edge("y_v", 0): n.Hops(0)})
    assert [edge for edge, _ in far.hops] == [n.Edge("mul", 1), n.Edge("sum", 0)]
    result = simulate(far, tensors, IDEAL, engine=engine, check=True)
    assert (result.cycles, result.outputs["y"].to_dense().tolist()) == (14 + 3 + 4, [9, 12])


def test_graphs_with_other_hops_have_another_structure() -> None:
    graph, tensors = dot()
    given = ({}, {n.Edge("mul", 0): n.Hops(3)}, {n.Edge("mul", 0): n.Hops(3, slots=0)}, {n.Edge("mul", 1): n.Hops(3)})
    graphs = [graph.with_hops(hops) for hops in given]
    graphs.append(graph.with_hops({}, {"mul": n.NodeHops(3)}))
    assert len({graph.structure.key for graph in graphs}) == len({repr(signature(graph, tensors)) for graph in graphs}) == 5
    assert graph.with_hops({n.Edge("mul", 0): n.Hops(0)}).structure.key == graph.structure.key


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_a_deadlock_behind_hops_names_the_depth_of_the_fifo(engine: str) -> None:
    """The six hops have thirteen slots, which the message does not count."""
    tensors = {"A": pack(np.ones((3, 20)), Format.parse("csr", 2))}
    wide = parse(dataflow.TEXTS["normalized"].replace("[3, 9]", "[3, 20]")).with_hops({n.Edge("div", 0): n.Hops(6)})

    def run(depth: int) -> Simulation:
        return simulate(wide.with_depths({n.Edge("div", 0): depth}), tensors, IDEAL, engine=engine)

    with pytest.raises(SimulationError, match="full at depth 2") as error:
        run(2)
    depth = int(re.search(r"depth (\d+) of input 0 of `div` clears it \(now 2\)", str(error.value))[1])
    assert run(depth).cycles
    with pytest.raises(SimulationError):
        run(depth - 1)
    auto = simulate(wide, tensors, Machine(name="m", fifo_depth="auto", fifo_depth_start=2), engine=engine)
    again = simulate(wide.with_depths(auto.depths), tensors, Machine(name="m", fifo_depth=2), engine=engine)
    assert (again.cycles, again.edges) == (auto.cycles, auto.edges)


def test_hops_that_no_machine_has_are_refused() -> None:
    graph, tensors = dot()
    far = graph.with_hops({n.Edge("mul", 0): n.Hops(3)})
    with pytest.raises(MachineError, match="hops at input 0 of `mul`; machine `comal` knows none"):
        simulate(far, tensors, load_machine("comal"))
    with pytest.raises(MachineError, match="hops at `mul`; machine `comal` knows none"):
        simulate(graph.with_hops({}, {"mul": n.NodeHops(3)}), tensors, load_machine("comal"))
    with pytest.raises(MachineError, match="hops before a FIFO of one slot, at input 0 of `mul`"):
        simulate(far, tensors, Machine(name="m", fifo_depth=1))
    simulate(far.with_depths({n.Edge("mul", 0): 2}), tensors, Machine(name="m", fifo_depth=1))
    simulate(graph.with_hops({n.Edge("mul", 0): n.Hops(3, slots=0)}), tensors, Machine(name="m", fifo_depth=1))
