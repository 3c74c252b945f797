"""The pass keeps the values and the contract of a graph, and the compiler runs it on every region."""

import numpy as np

import fuseflow as ff
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine, simulate
from fuseflow.tensors import pack
from fuseflow.transform.share import share

graph = parse("""
graph double
tensor x[3]  dense
tensor y[3]  dense
output y
root = root()
x_i = scan(root) x.0
a = load(x_i.ref) x
b = load(x_i.ref) x
add = alu(a, b) add N->0,N->0
y_i = write(x_i.crd) y.0
y_v = write(add) y.vals
""")
shared = share(graph)
verify(shared)
assert len(shared.nodes) == len(graph.nodes) - 1
tensors = {"x": pack(np.array([1, 2, 3], dtype=np.float32), graph.declared["x"].format)}
before, after = (simulate(g, tensors, load_machine("ideal"), engine="reference") for g in (graph, shared))
assert before.outputs["y"].to_dense().tolist() == after.outputs["y"].to_dense().tolist() == [2, 4, 6]

program = ff.compile("models/gcn.py", data="karate", schedule=ff.Schedule.fuse("layer1"))
assert all(share(region.graph) == region.graph for region in program.regions), "the compiler has not run the pass"
assert program.run().check.passed
