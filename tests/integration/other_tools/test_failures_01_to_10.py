"""Traps 1 to 10: where compilers of sparse programs go wrong. `pytest -k trap_07` runs one."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import tile_graphs
from trapping import Dense, emptied, output, positive, program, ran, ran_graph, same

import fuseflow as ff
from fuseflow.errors import DeadlockError
from fuseflow.samml import text as samml
from fuseflow.samml.nodes import Accumulate, Edge, Graph, Join
from fuseflow.samml.tokens import N
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine, simulate
from fuseflow.tensors import Tensor

KERNELS = {
    "spmv": "tensor A[5, 4] csr f64\ntensor x[4] dense f64\ny[i] = sum(k) A[i, k] * x[k]\noutput y",
    "spmv, rows compressed": "tensor A[5, 4] dcsr f64\ntensor x[4] csf f64\ny[i] = sum(k) A[i, k] * x[k]\noutput y",
    "spmv by columns": "tensor A[5, 4] csc f64\ntensor x[4] dense f64\ny[i] = sum(k) A[i, k] * x[k]\noutput y",
    "spmm by rows": "tensor A[5, 4] csr f64\ntensor X[4, 3] csr f64\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y",
    "spmm, everything compressed": "tensor A[5, 4] csf f64\ntensor X[4, 3] csf f64\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y",
    "spmm by outer products": "tensor A[5, 4] csc f64\ntensor X[4, 3] csr f64\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y",
    "transposed": "tensor A[5, 4] csr f64\ntensor X[5, 3] csr f64\nY[k, j] = sum(i) A[i, k] * X[i, j]\noutput Y",
    "two matmuls": """
        tensor A[5, 5] csr f64
        tensor X[5, 4] csr f64
        tensor W[4, 3] f64
        T[i, j] = sum(k) A[i, k] * X[k, j]
        Y[i, j] = relu(sum(k) T[i, k] * W[k, j])
        output Y
    """,
    "sddmm": """
        tensor A[5, 4] csr f64
        tensor Q[5, 3] f64
        tensor K[4, 3] f64
        D[i, j] = sum(k) Q[i, k] * K[j, k]
        Y[i, j] = A[i, j] * D[i, j]
        output Y
    """,
    "product": "tensor A[5, 4] dcsr f64\ntensor B[5, 4] dcsr f64\nY[i, j] = A[i, j] * B[i, j]\noutput Y",
    "sum": "tensor A[5, 4] dcsr f64\ntensor B[5, 4] dcsr f64\nY[i, j] = A[i, j] + B[i, j]\noutput Y",
    "sum, rows dense": "tensor A[5, 4] csr f64\ntensor B[5, 4] csr f64\nY[i, j] = A[i, j] + B[i, j]\noutput Y",
    "sums of rows": "tensor A[5, 4] csr f64\ny[i] = sum(j) A[i, j]\noutput y",
    "sums of columns": "tensor A[5, 4] csr f64\ny[j] = sum(i) A[i, j]\noutput y",
    "maxima of rows": "tensor A[5, 4] csr f64\ny[i] = max(j) A[i, j]\noutput y",
    "minima of columns": "tensor A[5, 4] csr f64\ny[j] = min(i) A[i, j]\noutput y",
    "products of rows": "tensor A[5, 4] csf f64\ny[i] = prod(j) A[i, j]\noutput y",
    "masked softmax": """
        tensor A[5, 4] csf f64
        tensor D[5, 4] f64
        S[i, j] = where(A[i, j] == 0, -inf, D[i, j])
        m[i] = max(j) S[i, j]
        E[i, j] = exp(S[i, j] - m[i])
        Y[i, j] = E[i, j] / (sum(k) E[i, k])
        output Y
    """,
    "norm": """
        tensor A[5, 4] csf f64
        u[i] = (sum(j) A[i, j]) / 4
        z[i, j] = A[i, j] - u[i]
        v[i] = sum(j) z[i, j] * z[i, j]
        Y[i, j] = z[i, j] * rsqrt(v[i] / 4 + 0.1)
        output Y
    """,
    "mttkrp": """
        tensor A[5, 4, 2] csf f64
        tensor C[4, 3] csf f64
        tensor D[2, 3] csf f64
        Y[i, j] = sum(k, l) A[i, k, l] * C[k, j] * D[l, j]
        output Y
    """,
}
EMPTY = {"first": (0,), "last": (4,), "middle": (2,), "several": (0, 2, 3), "all": (0, 1, 2, 3, 4), "none": ()}


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("kernel", KERNELS)
def test_trap_01_empty_rows_in_every_kernel(kernel: str, empty: str) -> None:
    """Fused and unfused; the result is that of the dense interpreter."""
    source = program(KERNELS[kernel])
    arrays = {t.name: positive(n, *t.shape, density=0.7) for n, t in enumerate(source.inputs)}
    arrays["A"] = emptied(positive(7, *source.declared["A"].shape, density=0.8), *EMPTY[empty])
    for choice in ("full", "none"):
        ran(source, Schedule.fuse(choice), **arrays)


COPY = """
graph copy
tensor A[{n}, 4]  csr f64
tensor Y[{n}, 4]  csr f64
output Y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_v = load(A_j.ref) A
Y_i = write(A_i.crd) Y.0
Y_j = write(A_j.crd) Y.1
Y_v = write(A_v) Y.vals
"""


@pytest.mark.parametrize(
    "counts", [(1, 0, 2), (0, 0, 2), (2, 0, 0), (0, 0, 0), (0, 1, 0, 0, 0, 2, 0), (0,), (3,)], ids=lambda c: "".join(map(str, c))
)
def test_trap_02_runs_of_empty_fibers_into_a_writer(counts: tuple[int, ...]) -> None:
    """`0 S0 S0 1 2 S1` stores the segments 0, 1, 1, 3."""
    array = (np.arange(4) < np.array(counts)[:, None]) * 1.0
    result = ran_graph(COPY.format(n=len(counts)), A=array)
    segments = result.outputs["Y"].levels[1].arrays["seg"].tolist()
    assert segments == [0, *np.cumsum(counts)]
    np.testing.assert_array_equal(result.outputs["Y"].to_dense(), array)


def without(density: float, *rows: int) -> Dense:
    return emptied(positive(3, 6, 5, density=density), *rows)


@pytest.mark.parametrize("formats", [("dcsr", "dcsr"), ("csr", "dcsr"), ("(compressed, dense)", "csf")], ids=str)
@pytest.mark.parametrize(
    ("left", "right"), [((0, 2), (1,)), ((0, 1, 2, 3, 4, 5), ()), ((), (0, 1, 2, 3, 4, 5)), ((0, 2, 4), (1, 3, 5))], ids=str
)
def test_trap_03_a_row_on_one_side_of_a_union(left: tuple[int, ...], right: tuple[int, ...], formats: tuple[str, str]) -> None:
    """A row that is `N` scans as an empty fiber: nothing is stored that neither side stores, and no coordinate is ever `N`."""
    a, b = without(0.6, *left), without(0.6, *right)
    text = f"tensor A[6, 5] {formats[0]} f64\ntensor B[6, 5] {formats[1]} f64\nY[i, j] = A[i, j] + B[i, j]\noutput Y\n"
    compiled, result = ran(text, A=a, B=b)
    (region,) = compiled.regions
    if formats == ("dcsr", "dcsr"):
        assert result.tensors["Y"].stored == np.count_nonzero(a + b)
    assert any(isinstance(n, Join) and n.kind == "union" for n in region.graph.nodes) or formats[0] != "dcsr"
    run = simulate(region.graph, compiled.inputs(), load_machine("ideal"), check=True, record=True)
    for port, kind in region.graph.types().items():
        assert kind.kind != "crd" or N not in run.streams[port].tokens, port


@pytest.mark.parametrize("order", ["i,j", "j,i"])
@pytest.mark.parametrize("format", ["dense", "csr fill -inf", "csc fill -inf", "csf fill -inf"])
def test_trap_04_the_maximum_of_negative_rows(format: str, order: str) -> None:
    """The identity is -inf on every fiber, not only on the first, for a reduce and for an accumulate."""
    form, _, fill = format.partition(" ")
    text = f"tensor A[4, 3] {form} f64 {fill}\nm[i] = max(j) A[i, j]\noutput m\n"
    a = -positive(1, 4, 3)
    got = output(text, Schedule.order("m", order.split(",")), A=a)
    np.testing.assert_array_equal(got, a.max(axis=1))
    assert (got < 0).all()


def test_trap_04_the_maximum_of_a_product_that_is_negative() -> None:
    a, x = positive(1, 4, 3), -positive(2, 3, 5)
    text = "tensor A[4, 3] f64\ntensor X[3, 5] f64\nT[i, j] = sum(k) A[i, k] * X[k, j]\nm[j] = max(i) T[i, j]\noutput m\n"
    np.testing.assert_allclose(output(text, Schedule.fuse("full"), A=a, X=x), (a @ x).max(axis=0))


@pytest.mark.parametrize(("op", "value"), [("sum", 0.0), ("prod", 1.0), ("max", -np.inf), ("min", np.inf)])
@pytest.mark.parametrize("order", ["i,j", "j,i"])
def test_trap_05_a_reduction_of_nothing_is_its_identity(op: str, value: float, order: str) -> None:
    """Where absent entries do not count: the tensor's implicit value is the identity."""
    fill = {0.0: "", 1.0: "fill 1", -np.inf: "fill -inf", np.inf: "fill inf"}[value]
    a = emptied(positive(1, 4, 3), 1, 3, fill=value)
    format = "csr" if order == "i,j" else "csc"
    got = output(f"tensor A[4, 3] {format} f64 {fill}\ny[i] = {op}(j) A[i, j]\noutput y\n", A=a)
    assert got[1] == got[3] == value
    np.testing.assert_allclose(got, getattr(a, op)(axis=1))


def test_trap_05_absent_entries_count_where_they_are_not_the_identity() -> None:
    a = emptied(-positive(1, 4, 3, density=0.9), 1)
    np.testing.assert_array_equal(output("tensor A[4, 3] csr f64\ny[i] = max(j) A[i, j]\noutput y\n", A=a), a.max(axis=1))


def test_trap_05_an_empty_row_is_not_stored_where_rows_are_compressed() -> None:
    """And its softmax stores nothing either."""
    a = emptied(positive(1, 4, 3), 1, 3)
    _, result = ran("tensor A[4, 3] dcsr f64\ntensor y[4] (compressed) f64\ny[i] = sum(j) A[i, j]\noutput y\n", A=a)
    assert result.tensors["y"].coordinates().tolist() == [[0, 2]]
    _, result = ran(KERNELS["masked softmax"], Schedule.fuse("full"), A=emptied(positive(1, 5, 4), 0, 3), D=positive(2, 5, 4))
    soft = result.tensors["Y"]
    assert set(soft.coordinates()[0].tolist()) == {1, 2, 4}
    np.testing.assert_allclose(soft.to_dense().sum(axis=1), [0, 1, 1, 0, 1])


def dealt(lanes: int, by: str) -> str:
    """The values of a matrix read in lanes: its entries dealt in turn, or its rows."""
    each = range(lanes)
    join = lambda stream: ", ".join(stream.format(k=k) for k in each)  # noqa: E731
    if by == "entries":
        body = f"A_j = scan(A_i.ref) A.1\ndealt = fork(A_j.ref) {lanes}\n" + "".join(
            f"v{k} = load(dealt.lane{k}) A\n" for k in each
        )
        body += f"val = merge({join('v{k}')}) levels=0\nY_j = write(A_j.crd) Y.1\n"
    else:
        body = f"dealt = fork(A_i.ref) {lanes}\n"
        body += "".join(f"j{k} = scan(dealt.lane{k}) A.1\nv{k} = load(j{k}.ref) A\n" for k in each)
        body += f"val = merge({join('v{k}')}) levels=1\nj = merge({join('j{k}.crd')}) levels=1\nY_j = write(j) Y.1\n"
    return (
        "graph dealt\ntensor A[{n}, 5]  csr f64\ntensor Y[{n}, 5]  csr f64\noutput Y\nroot = root()\nA_i = scan(root) A.0\n"
        f"{body}Y_i = write(A_i.crd) Y.0\nY_v = write(val) Y.vals\n"
    )


@pytest.mark.parametrize("by", ["entries", "rows"])
@pytest.mark.parametrize("lanes", [2, 3, 4, 8])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_trap_06_uneven_forks(n: int, lanes: int, by: str) -> None:
    """Any n, any P, P > n, empty fibers: what is merged is in the order in which it was dealt."""
    array = positive(n, n, 5, density=0.6)
    array[1::3] = 0
    np.testing.assert_array_equal(ran_graph(dealt(lanes, by).replace("{n}", str(n)), A=array).outputs["Y"].to_dense(), array)


@pytest.mark.parametrize("rank", [10, 11, 12])
def test_trap_07_stops_of_two_digits(rank: int) -> None:
    array = np.zeros((2,) * rank)
    array[(0,) * rank] = array[(1,) * rank] = array[(0,) * (rank // 2) + (1,) * (rank - rank // 2)] = 7
    indices = ", ".join("ijklmnopqrst"[:rank])
    shape = ", ".join("2" * rank)
    for a in (array, 0 * array):
        text = f"tensor A[{shape}] csf f64\nY[{indices}] = A[{indices}] * 2\noutput Y\n"
        compiled, result = ran(text, A=a)
        np.testing.assert_array_equal(result.tensors["Y"].to_dense(), 2 * a)
    assert max(t.depth for t in compiled.regions[0].graph.types().values()) == rank


@pytest.mark.parametrize("density", [0.0, 0.4, 1.0])
def test_trap_08_accumulated_blocks(density: float) -> None:
    """A product of tiles is the product of scalars."""
    rng = np.random.default_rng(0)
    a, x = (tile_graphs.sparse(rng, s, t, density) for s, t in (((8, 15), (2, 3)), ((15, 12), (3, 4))))
    graph = samml.parse("graph blocks" + tile_graphs.SPMM.format(format="dcsr", other="dcsr"))
    tensors = {"A": tile_graphs.blocked(a, (2, 3), "dcsr"), "X": tile_graphs.blocked(x, (3, 4), "dcsr")}
    runs = [simulate(graph, tensors, load_machine("ideal"), engine=engine, check=True) for engine in ("reference", "fast")]  # type: ignore[arg-type]
    same(*runs)
    tiles = runs[0].outputs["Y"].to_dense()
    scalar = output("tensor A[8, 15] csr f64\ntensor X[15, 12] csr f64\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y\n", A=a, X=x)
    np.testing.assert_allclose(tiles.transpose(0, 2, 1, 3).reshape(8, 12), scalar)
    np.testing.assert_allclose(scalar, a @ x)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_trap_09_accumulators_of_any_order(order: int) -> None:
    """A reduction outermost, over `order` kept loops, by the compiler."""
    kept = "ijkmn"[:order]
    shape = [3, *[2, 3, 2, 2, 3][:order]]
    a = positive(order, *shape, density=0.3)
    a[1] = 0
    text = f"tensor A{shape} csf f64\ntensor b[3] f64\nY[{', '.join(kept)}] = sum(l) A[l, {', '.join(kept)}] * b[l]\noutput Y\n"
    compiled, result = ran(text, A=a, b=np.array([1.0, 2.0, 3.0]))
    assert [n.order for n in compiled.regions[0].graph.nodes if isinstance(n, Accumulate)] == [order]
    np.testing.assert_allclose(result.tensors["Y"].to_dense(), np.tensordot([1.0, 2.0, 3.0], a, 1))


NORMALISED = """
    tensor A[3, 9] csr f64
    s[i] = sum(j) A[i, j]
    Y[i, j] = A[i, j] / s[i]
    output Y
"""


CLEARS = re.compile(r"depth (\d+) of input (\d+) of `(\S+)` clears it \(now (\d+)\), and no smaller one does")


def cleared(graph: Graph, tensors: dict[str, Tensor], machine: Machine) -> tuple[Graph | None, int]:
    """The graph with the depths that its deadlocks ask for, each the smallest that does (None: one FIFO alone clears none); and how
    many deadlocks there were."""
    for deadlocks in range(50):
        error = deadlock(graph, tensors, machine)
        if error is None:
            return graph, deadlocks
        assert error.message.startswith("no node can move after cycle")
        assert re.match(r"wait-for cycle: `\S+` waits for .*full at depth \d+", error.notes[0])
        hint = CLEARS.match(error.hint)
        if hint is None:
            assert error.hint.startswith("no single FIFO clears it, even with 1,048,576 slots")
            return None, deadlocks + 1
        edge, clears, now = Edge(hint[3], int(hint[2])), int(hint[1]), int(hint[4])
        assert clears > now
        assert clears - 1 == now or deadlock(with_depth(graph, edge, clears - 1), tensors, machine)
        graph = with_depth(graph, edge, clears)
    raise AssertionError("the deadlocks do not end")


def deadlock(graph: Graph, tensors: dict[str, Tensor], machine: Machine) -> DeadlockError | None:
    try:
        simulate(graph, tensors, machine)
    except DeadlockError as error:
        return error
    return None


def with_depth(graph: Graph, edge: Edge, depth: int) -> Graph:
    return replace(graph, depths=tuple({**dict(graph.depths), edge: depth}.items()))


@pytest.mark.parametrize("kernel", ["normalised", "masked softmax", "spmm by rows", "two matmuls"])
@pytest.mark.parametrize("depth", [1, 2, 4, 16])
def test_trap_10_small_fifos_give_the_same_or_a_named_cycle(kernel: str, depth: int) -> None:
    """The same values, or the cycle of those that wait and the depth that clears it: with it the graph runs, with less it does not."""
    source = program(NORMALISED if kernel == "normalised" else KERNELS[kernel])
    arrays = {t.name: positive(n, *t.shape, density=0.9) for n, t in enumerate(source.inputs)}
    compiled = ff.compile(source, tensors=arrays, schedule=Schedule.fuse("full"))
    (region,) = compiled.regions
    tensors = compiled.inputs()
    (expected,) = simulate(region.graph, tensors, load_machine("rda", {"fifo_depth": None})).outputs.values()
    small, auto = (
        load_machine("rda", {"fifo_depth": depth}),
        load_machine("rda", {"fifo_depth": "auto", "fifo_depth_start": depth}),
    )
    deep, deadlocks = cleared(region.graph, tensors, small)
    if depth == 1 and kernel in ("normalised", "masked softmax"):
        assert deadlocks, "a value that waits for the sum of its row needs more than one slot"
    for graph, machine in [(region.graph, auto), *([] if deep is None else [(deep, small)])]:
        for engine in ("reference", "fast"):
            (found,) = simulate(graph, tensors, machine, engine=engine).outputs.values()
            np.testing.assert_array_equal(found.values, expected.values)
