"""The resources of graphs against counts by hand, on a machine whose FIFOs have 64 slots."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matvec_graph import MATVEC

from fuseflow.resources import Resources, graph_resources
from fuseflow.run.simulated_resources import simulated_resources
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import Machine, Simulation, load_machine, simulate
from fuseflow.tensors import DTYPES, pack
from fuseflow.tensors.blocks import to_blocks

MACHINE = Machine(name="hand", fifo_depth=64)
WORD = 64 * 4
"""The bytes of a FIFO of coordinates, references, or values of 32 bits."""

VECTOR = """graph vector
tensor x[6]  {x}
tensor y[6]  {y}
output y
root = root()
x_i = scan(root) x.0
x_v = load(x_i.ref) x
{body}
y_i = write(x_i.crd) y.0
y_v = write(out) y.vals
"""
ROWS = """graph rows
tensor A[4, 6]  dcsr
tensor X[6, 5]  csr
tensor Y[4, 5]  dcsr
output Y
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
rep_i = repeat(root, A_i.crd)
rep_k = repeat(rep_i, A_k.crd)
X_k = locate(A_k.crd, rep_k) X.0
X_j = scan(X_k) X.1
A_v = load(A_k.ref) A
X_v = load(X_j.ref) X
rep_j = repeat(A_v, X_j.crd)
mul = alu(rep_j, X_v) mul N->0,N->0
acc = accumulate(A_k.crd, X_j.crd, mul) sum order=1
drop = drop(A_i.crd, acc.crd, acc.val)
Y_i = write(drop.crd0) Y.0
Y_j = write(drop.crd1) Y.1
Y_v = write(drop.val) Y.vals
"""
TURNED = """graph turned
tensor A[4, 6]  dcsr
tensor P[6, 4]  dcsr f64
output P
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
A_v = load(A_k.ref) A
turned = permute(A_i.crd, A_k.crd, A_v) order=1,0
P_k = write(turned.crd0) P.0
P_i = write(turned.crd1) P.1
P_v = write(turned.val) P.vals
"""
SELECTED = """graph selected
tensor A[4, 6]  csr
tensor Y[4, 6]  csr
output Y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_v = load(A_j.ref) A
best = select(A_j.crd, A_v) keep=1 every=3 levels=1
Y_i = write(A_i.crd) Y.0
Y_j = write(best.crd) Y.1
Y_v = write(best.val) Y.vals
"""
KEPT = """graph kept
tensor x[6]  (compressed)
tensor z[6]  (compressed)
tensor y[6]  (compressed)
output y
root = root()
x_i = scan(root) x.0
z_i = locate(x_i.crd) z.0
x_v = load(x_i.ref) x
z_v = load(z_i) z
out = alu(x_v, z_v) mul N->0,N->0
y_i = write(x_i.crd) y.0
y_v = write(out) y.vals
"""
TILES = """graph tiles
tensor A[1, 1]  dense {type} tile {m}x{k}
tensor B[1, 1]  dense {type} tile {k}x{n}
tensor C[1, 1]  dense f32 tile {m}x{n}
output C
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
B_i = locate(A_i.crd) B.0
rep = repeat(B_i, A_k.crd)
B_k = locate(A_k.crd, rep) B.1
A_v = load(A_k.ref) A
B_v = load(B_k) B
out = alu(A_v, B_v) matmul N->0,N->0
C_i = write(A_i.crd) C.0
C_j = write(A_k.crd) C.1
C_v = write(out) C.vals
"""
LANES = """
fork_x = fork(x_v) 2
a = alu(fork_x.lane0) mul N->0,2
b = alu(fork_x.lane1) mul N->0,2
out = merge(a, b) levels=0
"""


def vector(body: str, x: str = "dense", y: str = "dense") -> Graph:
    return parse(VECTOR.format(x=x, y=y, body=body))


def tiles(m: int, k: int, n: int, type: str = "f32") -> Graph:
    return parse(TILES.format(m=m, k=k, n=n, type=type))


TILED_WORDS = 11  # of A_i, A_k, B_i, rep (2), B_k (2), A_v, B_v, C_i, C_j
BY_HAND: dict[str, tuple[Graph, Resources]] = {
    "a product of a matrix and a vector": (parse(MATVEC), Resources(mul=1, add=1, port=5, stream=7, fifo=10 * WORD)),
    "a matrix turned": (
        parse(TURNED.replace("A[4, 6]  dcsr", "A[4, 6]  dcsr f64")),
        Resources(port=10, stream=7, fifo=11 * WORD, workspace=2 * 5 * (4 + 4 + 8)),  # two FIFOs hold values of 8 bytes
    ),
    "a product row by row": (
        parse(ROWS),
        Resources(mul=1, add=1, port=13, stream=13, fifo=24 * WORD, workspace=2 * 3 * (4 + 4)),
    ),
    "the largest of every three": (
        parse(SELECTED),
        Resources(port=6, stream=7, fifo=8 * WORD, workspace=2 * 3 * (4 + 4)),
    ),
    "a level that is kept": (parse(KEPT), Resources(mul=1, port=8, stream=6, fifo=8 * WORD, workspace=3 * 4)),
    "a product of small tiles": (
        tiles(2, 3, 4),
        Resources(mul=24, add=24, port=3, stream=10, fifo=TILED_WORDS * WORD + (6 + 12 + 8) * WORD),
    ),
    "a product of large tiles": (
        tiles(64, 64, 64),
        Resources(mul=256, add=256, port=3, stream=10, fifo=TILED_WORDS * WORD + 3 * 64 * 64 * WORD),
    ),
    "a product of tiles of bytes": (
        tiles(8, 8, 8, "i8"),  # 512 products, four in a lane; what it gives counts as wide as what it reads
        Resources(mul=128, add=128, port=3, stream=10, fifo=TILED_WORDS * WORD + 3 * 64 * WORD // 4),
    ),
    "two lanes": (vector(LANES), Resources(mul=2, port=2, stream=6, fifo=9 * WORD)),
    "an exponential and a division": (
        vector("e = alu(x_v) exp N->1\nout = alu(e, x_v) div N->1,N->0"),
        Resources(special=2, port=2, stream=4, fifo=7 * WORD),
    ),
    "a copy, which computes nothing": (vector("out = alu(x_v) copy N->0"), Resources(port=2, stream=5, fifo=5 * WORD)),
    "a comparison": (vector("out = alu(x_v) ge N->0,1"), Resources(add=1, port=2, stream=4, fifo=5 * WORD)),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_counted_by_hand(name: str) -> None:
    """In a run on two machines; the memory of `rda` has as many ports."""
    graph, expected = BY_HAND[name]
    verify(graph)
    assert without_area(simulated_resources(graph, MACHINE, run(graph, MACHINE))) == expected
    on_hbm2 = replaced(load_machine("rda"), fifo_depth=64)
    run_there = run(graph, on_hbm2)
    assert without_area(simulated_resources(graph, on_hbm2, run_there)) == expected
    assert run_there.memory is not None
    assert len(run_there.memory.ports) == expected.port


ARRAYS = {
    "A": np.array([[1, 2, 0, 0, 0, 0], [0, 0, 0, 0, 0, 3], [0] * 6, [0, 0, 4, 0, 5, 0]]),
    "X": np.array([[1, 1, 0, 0, 0], [0, 1, 0, 0, 1], *[[0] * 5] * 4]),  # rows 0 and 1 of X have three columns together
    "x": np.array([0, 1, 2, 3, 0, 0]),
    "z": np.array([4, 0, 5, 6, 0, 0]),
}
"""What the graphs read, but for tiles."""
SELECTED_ROWS = np.array([[1, 2, 3, 4, 0, 0], [0, 0, 1, 1, 1, 0], [0] * 6, [0, 1, 0, 0, 1, 0]])


def without_area(resources: Resources) -> Resources:
    return replace(resources, area=0)


def run(graph: Graph, machine: Machine) -> Simulation:
    tensors = {}
    for name in graph.inputs:
        tensor = graph.declared[name]
        array = np.ones(tensor.tile) if tensor.tile else SELECTED_ROWS if graph.name == "selected" else ARRAYS[name]
        type = DTYPES[tensor.dtype]
        packed = pack(type.hold(array.astype(float)), tensor.format, type=type)
        tensors[name] = to_blocks(packed, tensor.tile) if tensor.tile else packed
    return simulate(graph, tensors, machine)


def replaced(machine: Machine, **settings: object) -> Machine:
    return machine.model_copy(update=settings)


def test_a_resident_tensor_has_no_port() -> None:
    graph = vector("out = alu(x_v) ge N->0,1")
    resident = replace(graph, tensors=tuple(replace(t, resident=t.name == "x") for t in graph.tensors))
    assert (graph_resources(graph, MACHINE, {}).port, graph_resources(resident, MACHINE, {}).port) == (2, 1)


def test_depths_of_the_graph_go_before_that_of_the_machine() -> None:
    graph = parse(MATVEC).with_depths({Edge("mul", 1): 5})
    assert graph_resources(graph, MACHINE, {}).fifo == 9 * WORD + 5 * 4


def test_a_run_knows_what_unbounded_fifos_held() -> None:
    graph, ideal = parse(ROWS), replaced(MACHINE, fifo_depth=None)
    assert graph_resources(graph, ideal, {}).fifo is None
    simulation = run(graph, ideal)
    assert simulated_resources(graph, ideal, simulation).fifo == sum(4 * edge.peak for edge in simulation.edges)


def test_a_run_knows_the_fifos_that_it_deepened() -> None:
    softmax = parse(
        VECTOR.format(
            x="dense", y="dense", body="top = reduce(x_v) max\nrep = repeat(top, x_i.crd)\nout = alu(x_v, rep) sub N->0,N->0"
        )
    )
    machine = replaced(MACHINE, fifo_depth="auto", fifo_depth_start=2)
    before, simulation = graph_resources(softmax, machine, {}), run(softmax, machine)
    after = simulated_resources(softmax, machine, simulation)
    assert before.fifo_grows and before.fifo == 9 * 2 * 4
    assert simulation.depths and not after.fifo_grows
    assert after.fifo == before.fifo + sum(4 * (depth - 2) for depth in simulation.depths.values())


def test_what_nobody_counted_is_as_much_as_there_can_be() -> None:
    resources = graph_resources(parse(ROWS), MACHINE, {})
    assert (resources.workspace, resources.workspace_bound) == (2 * 5 * (4 + 4), True)
    assert graph_resources(parse(KEPT), MACHINE, {}).workspace == 6 * 4


def test_the_most_over_regions() -> None:
    first, second = Resources(mul=3, add=1, fifo=10), Resources(mul=1, add=2, fifo=None, workspace=8, workspace_bound=True)
    assert Resources.most_of((first, second)) == Resources(mul=3, add=2, fifo=None, workspace=8, workspace_bound=True)
    assert Resources.most_of(()) == Resources()


def test_json_has_the_marks_that_are_set() -> None:
    assert Resources(mul=1, fifo=None).to_json() == {
        "mul": 1, "add": 0, "special": 0, "port": 0, "stream": 0, "fifo": None, "workspace": 0, "buffer": 0, "area": 0,
    }  # fmt: skip
    assert Resources(fifo_grows=True).to_json()["fifo_grows"] is True
