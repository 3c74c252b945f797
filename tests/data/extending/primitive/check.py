"""What a primitive must do to be one of fuseflow's, asked of `scale`. It runs in the copy of the package that has it. Its argument
is the simulator that a long run takes: `fast` where `scale` has a kernel, `reference` where it has none."""

import sys
from dataclasses import replace

import numpy as np

from fuseflow.costs import measure_statistics
from fuseflow.costs.cost import estimate_graph
from fuseflow.errors import GraphError
from fuseflow.estimate import CountMemo, count_work
from fuseflow.estimate.counted.patterns import tensor_pattern
from fuseflow.samml import nodes as n
from fuseflow.samml import protobuf
from fuseflow.samml.dot import dot
from fuseflow.samml.graph import stream_bounds
from fuseflow.samml.mlir import from_mlir, to_mlir
from fuseflow.samml.proto_foreign import tile_indices
from fuseflow.samml.text import parse, show
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine, simulate, simulators
from fuseflow.tensors import Format, pack
from fuseflow.transform import mark_fiber_fifos, parallelize

GRAPH = """
graph scaled
tensor A[4, 5]  dcsr
tensor y[4]  dense
output y

root = root()
A_i = scan(root) A.0 sequential
A_k = scan(A_i.ref) A.1 sequential
A_val = load(A_k.ref) A sequential
scale = scale(A_val) -2.5
sum_k = reduce(scale) sum
twice = scale(sum_k) 2
range_i = range(root) 4
fill_i = join(range_i; A_i.crd, twice) left
fill_val = alu(fill_i.out0) copy N->0
write_i = write(fill_i.crd) y.0
write_val = write(fill_val) y.vals
"""
ALUS = GRAPH.replace("scale(A_val) -2.5", "alu(A_val) mul N->0,-2.5").replace("scale(sum_k) 2", "alu(sum_k) mul N->0,2")


def refused(text: str) -> str:
    try:
        verify(parse(text))
    except GraphError as error:
        return str(error)
    raise AssertionError("nothing was refused")


graph = parse(GRAPH)
verify(graph)
assert parse(show(graph)) == graph
assert from_mlir(to_mlir(graph)) == graph
assert protobuf.from_proto(protobuf.to_proto(graph)) == graph
assert protobuf.from_text(protobuf.to_text(graph)) == graph
assert "`scale`: other readers have no scale" in protobuf.compatibility(graph)
assert "takes val there" in refused(GRAPH.replace("scale(A_val)", "scale(A_k.ref)"))
assert "cannot read the attributes" in refused(GRAPH.replace("-2.5", ""))
assert "scale -2.5" in dot(graph)
assert len(stream_bounds(graph)) == sum(len(node.port_names()) for node in graph.nodes)
assert tile_indices(graph, {}) == {"y": ("", "")}
loops = {"A_i": frozenset("i"), "A_k": frozenset("k"), "range_i": frozenset("i")}
lanes = mark_fiber_fifos(parallelize(graph, loops, {"k": 2}).graph)
assert sum(isinstance(node, n.Scale) for node in lanes.nodes) == 3
verify(lanes)

simulators.REFERENCE_FIRINGS = 0  # every run is a long one

dense = np.where(np.random.default_rng(0).random((4, 5)) < 0.5, (np.arange(20.0).reshape(4, 5) - 7) / 3, 0)
tensors = {"A": pack(dense.astype(np.float32), Format.parse("dcsr", 2))}
for name in ("ideal", "rda", "comal"):
    machine = load_machine(name)
    run, fast = (simulate(graph, tensors, machine, engine=engine, check=True) for engine in ("reference", "auto"))
    assert fast.engine == sys.argv[1]
    assert np.allclose(run.outputs["y"].to_dense(), -5 * dense.sum(axis=1))
    assert (run.outputs["y"].values == fast.outputs["y"].values).all()
    assert (run.cycles, run.nodes, run.edges, run.operators) == (fast.cycles, fast.nodes, fast.edges, fast.operators)
    other = simulate(parse(ALUS), tensors, machine, engine="reference")
    assert (run.cycles, run.operators) == (other.cycles, other.operators)
    assert (run.outputs["y"].values == other.outputs["y"].values).all()  # products are rounded to the 32-bit floats of `A`
    split = simulate(lanes, tensors, machine)
    assert np.allclose(split.outputs["y"].to_dense(), -5 * dense.sum(axis=1))

    known = {"A": measure_statistics(tensors["A"])}
    work = count_work(graph, machine, known, {"A": tensor_pattern(tensors["A"])}, CountMemo())
    assert work.exact
    took = {node.name: (node.firings, node.occupied) for node in run.nodes}
    assert all((node.firings, node.occupied) == took[node.name] for node in work.nodes if node.op == "scale" or name != "rda")
    assert dict(work.operators) == dict(run.operators)
    expected, other_work = (count_work(replace(g, name="g"), machine, known, {}, CountMemo()) for g in (graph, parse(ALUS)))
    assert not expected.exact
    assert [node.firings for node in expected.nodes] == [node.firings for node in other_work.nodes]
    assert estimate_graph(graph, known)[0] == estimate_graph(parse(ALUS), known)[0]
