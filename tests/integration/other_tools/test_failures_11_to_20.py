"""Traps 11 to 20: where compilers of sparse programs go wrong. `pytest -k trap_17` runs one."""

from __future__ import annotations

from itertools import chain, combinations, permutations

import numpy as np
import pytest
from trapping import Dense, output, positive, ran

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError
from fuseflow.fusion.region_program import show_order
from fuseflow.ops import OPERATORS
from fuseflow.samml.nodes import Accumulate, Alu, Graph, Join, Load, Locate, Permute, Reduce, Repeat, Scan
from fuseflow.schedule import Schedule


def signed(seed: int, *shape: int, density: float = 0.6) -> Dense:
    """Numbers of both signs, some of them 0, the middle row empty."""
    rng = np.random.default_rng(seed)
    array = positive(seed, *shape, density=density) * rng.choice([-1.0, 1.0], shape)
    if array.ndim:
        array[shape[0] // 2] = 0
    return array


def spelled(op: str, *operands: str) -> str:
    row = OPERATORS[op]
    return f" {row.symbol} ".join(operands) if row.symbol else f"{op}({', '.join(operands)})"


BINARY = [name for name, row in OPERATORS.items() if row.arity == 2]
PATTERNS = {
    "both": (signed(1, 5, 4), signed(2, 5, 4)),
    "apart": (np.tril(signed(1, 5, 4, density=1.0)), np.triu(signed(2, 5, 4, density=1.0), 1)),
    "left only": (signed(1, 5, 4), np.zeros((5, 4))),
    "right only": (np.zeros((5, 4)), signed(2, 5, 4)),
    "full and sparse": (signed(1, 5, 4, density=1.0), signed(2, 5, 4, density=0.3)),
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("op", BINARY)
def test_trap_11_operators_on_different_patterns(op: str, pattern: str) -> None:
    """The operator table decides the join; positive numbers, so that a power is a number."""
    a, b = (np.abs(x) for x in PATTERNS[pattern])
    for formats in (("csr", "csr"), ("dcsr", "dcsr"), ("csr", "dense"), ("dense", "dcsr")):
        ran(
            f"tensor A[5, 4] {formats[0]} f64\ntensor B[5, 4] {formats[1]} f64\nY[i, j] = {spelled(op, 'A[i, j]', 'B[i, j]')}\noutput Y\n",
            A=a,
            B=b,
        )


@pytest.mark.parametrize(
    ("op", "kind"), [("mul", "intersect"), ("add", "union"), ("sub", "union"), ("max", "union"), ("min", "union"), ("div", None)]
)
def test_trap_11_the_join_follows_from_the_operator(op: str, kind: str | None) -> None:
    """0 divided by anything is 0, so a quotient follows its left operand alone."""
    a, b = PATTERNS["both"]
    text = f"tensor A[5, 4] dcsr f64\ntensor B[5, 4] dcsr f64\nY[i, j] = {spelled(op, 'A[i, j]', 'B[i, j]')}\noutput Y\n"
    compiled, result = ran(text, A=a, B=b)
    kinds = {n.kind for n in compiled.regions[0].graph.nodes if isinstance(n, Join)}
    assert kinds == {kind or "left"}
    stored = {"intersect": (a != 0) & (b != 0), "union": (a != 0) | (b != 0), None: a != 0}[kind]
    assert result.tensors["Y"].stored == np.count_nonzero(stored)


@pytest.mark.parametrize("body", ["exp(A[i, j])", "A[i, j] + 3", "sigmoid(A[i, j])", "cos(A[i, j])", "1 - A[i, j]"])
@pytest.mark.parametrize("format", ["csr", "dcsr", "csc", "dense"])
@pytest.mark.parametrize("fuse", ["full", "none"])
def test_trap_12_functions_that_are_not_zero_at_zero(body: str, format: str, fuse: str) -> None:
    """The result has the implicit value f(0), and a sum over it counts every absent entry."""
    a = signed(1, 5, 4)
    text = f"tensor A[5, 4] {format} f64\nE[i, j] = {body}\ns[i] = sum(j) E[i, j]\nY[i, j] = E[i, j] * s[i]\noutput E\noutput Y\n"
    _, result = ran(text, Schedule.fuse(fuse), A=a)
    value = {"e": 1.0, "A": 3.0, "s": 0.5, "c": 1.0, "1": 1.0}[body[0]]
    assert format == "dense" or result.tensors["E"].fill == value
    if format == "dcsr":
        assert result.tensors["E"].stored == np.count_nonzero(a)
    else:
        assert (result.tensors["E"].to_dense()[a == 0] == value).all()


@pytest.mark.parametrize("fuse", ["full", "none"])
@pytest.mark.parametrize(
    "body",
    [
        "A[i, j] * B[i, j] + C[i, j]",
        "relu((A[i, j] * B[i, j] + C[i, j]) * 2 - exp(A[i, j])) / (1 + B[i, j] * B[i, j])",
        "max(A[i, j] - C[i, j], B[i, j] * (A[i, j] + C[i, j] * (B[i, j] - 1)))",
        "(sum(k) A[i, k] * B[k, j]) * C[i, j] + (max(k) A[k, j]) - 1",
    ],
)
def test_trap_13_bodies_of_many_operators(body: str, fuse: str) -> None:
    text = f"tensor A[4, 4] dense f64\ntensor B[4, 4] csr f64\ntensor C[4, 4] csr f64\nY[i, j] = {body}\noutput Y\n"
    ran(text, Schedule.fuse(fuse), A=signed(1, 4, 4), B=signed(2, 4, 4), C=signed(3, 4, 4))


def operators(graph: Graph) -> list[str]:
    return sorted(n.function for n in graph.nodes if isinstance(n, Alu | Reduce | Accumulate))


@pytest.mark.parametrize(
    ("bodies", "found"),
    [
        (("exp(A[i, j])", "relu(A[i, j])"), ["add", "exp", "relu"]),
        (("(A[i, j] - B[i, j])", "(A[i, j] / B[i, j])"), ["add", "div", "sub"]),
        (("(A[i, j] - B[i, j])", "(B[i, j] - A[i, j])"), ["add", "sub", "sub"]),
        (("(A[i, j] * 2)", "(A[i, j] * 3)"), ["add", "mul", "mul"]),
        (("(A[i, j] * 2)", "(A[i, j] * 2)"), ["add", "mul"]),
        (("(sum(k) A[i, k] * A[j, k])", "(max(k) A[i, k] * A[j, k])"), ["add", "max", "mul", "sum"]),
    ],
    ids=lambda v: v[0] if isinstance(v, tuple) else "",
)
def test_trap_14_equal_operands_under_different_operators(bodies: tuple[str, str], found: list[str]) -> None:
    """Nodes are one only if operator and all attributes are."""
    tensors = [name for name in "AB" if f"{name}[" in bodies[0]]
    declared = "".join(f"tensor {name}[4, 4] dense f64\n" for name in tensors)
    arrays = {name: positive(n, 4, 4) for n, name in enumerate(tensors)}
    text, schedule = f"{declared}Y[i, j] = {bodies[0]} + {bodies[1]}\noutput Y\n", Schedule()
    if "sum(k)" in bodies[0]:  # in other orders each reduction has a product of its own
        schedule = Schedule.fuse("full").order("full", "l,k,i,j")
    compiled, _ = ran(text, schedule, **arrays)
    assert operators(compiled.regions[0].graph) == found


SUBSETS = list(chain.from_iterable(combinations("ijk", n) for n in (1, 2, 3)))


@pytest.mark.parametrize("over", SUBSETS, ids="".join)
@pytest.mark.parametrize("op", ["sum", "max", "min", "prod"])
def test_trap_15_reductions_at_any_loop_position(op: str, over: tuple[str, ...]) -> None:
    """In every order of the loops: innermost a reduce, elsewhere an accumulate."""
    a = signed(1, 3, 4, 2, density=0.8)
    kept = [v for v in "ijk" if v not in over]
    source = parse(f"tensor A[3, 4, 2] dense f64\nY[{', '.join(kept)}] = {op}({', '.join(over)}) A[i, j, k]\noutput Y\n")
    expected = getattr(a, op)(axis=tuple("ijk".index(v) for v in over))
    for order in permutations("ijk"):
        compiled, result = ran(source, Schedule.order("Y", order), A=a)
        assert compiled.regions[0].fused.order == order
        np.testing.assert_allclose(result.tensors["Y"].to_dense(), expected)
        outside = any(v in over and any(w in kept for w in order[p:]) for p, v in enumerate(order))
        assert any(isinstance(n, Accumulate) for n in compiled.regions[0].graph.nodes) is outside


@pytest.mark.parametrize(
    "layout", ["(dense, dense, dense)", "(dense, dense, dense) order (1, 0, 2)", "(compressed, dense, dense)"]
)
def test_trap_16_locate_below_a_parent(layout: str) -> None:
    """Heads beyond the first are read at `parent * size + coordinate`: every head has its own values."""
    m, v = signed(1, 5, 4), positive(2, 3, 4, 2) * np.array([1.0, 10.0, 100.0])[:, None, None]
    text = f"tensor M[5, 4] csf f64\ntensor V[3, 4, 2] {layout} f64\nY[h, i, j] = sum(k) M[i, k] * V[h, k, j]\noutput Y\n"
    compiled, result = ran(text, Schedule().lower(locate="always" if "compressed" not in layout else "auto"), M=m, V=v)
    np.testing.assert_allclose(result.tensors["Y"].to_dense(), np.einsum("ik,hkj->hij", m, v))
    located = [n for n in compiled.regions[0].graph.nodes if isinstance(n, Locate)]
    assert any(len(n.inputs) == 2 for n in located)


SPARSE_SIDES = {
    Join: ("tensor A[6] csf f64\ntensor B[6] csf f64\ntensor D[6] dense f64\nY[i] = A[i] * B[i] * D[i]\noutput Y\n", None),
    Accumulate: (
        "tensor A[6, 5] csf f64\ntensor B[5, 4] csf f64\ntensor D[6, 4] dense f64\n"
        "T[i, j] = sum(k) A[i, k] * B[k, j]\nY[i, j] = T[i, j] * D[i, j]\noutput Y\n",
        "i,k,j",
    ),
    Repeat: ("tensor A[6, 5] csf f64\ntensor D[5, 6] dense f64\nY[i, j] = A[i, j] * D[j, i]\noutput Y\n", "i,j"),
    Scan: ("tensor A[6, 5] csf f64\ntensor D[6, 5] dense f64\nY[i, j] = A[i, j] * D[i, j]\noutput Y\n", "i,j"),
}


@pytest.mark.parametrize("maker", SPARSE_SIDES, ids=lambda c: c.__name__)
def test_trap_17_locate_takes_coordinates_of_any_node(maker: type) -> None:
    """Those of a join, of an accumulator, repeated ones."""
    text, order = SPARSE_SIDES[maker]
    source = parse(text)
    arrays = {t.name: positive(n, *t.shape, density=0.6 if t.name != "D" else 1.0) for n, t in enumerate(source.inputs)}
    schedule = Schedule.fuse("full").lower(locate="always")
    compiled, _ = ran(source, schedule.order("full", order.split(",")) if order else schedule, **arrays)
    graph = compiled.regions[0].graph
    made = {n.name: n for n in graph.nodes}
    assert any(isinstance(n, Locate) and isinstance(made[n.inputs[0].node], maker) for n in graph.nodes)


BOTH_WAYS = "tensor A[5, 5] csr f64\nY[i, j] = A[i, j] + A[j, i]\noutput Y\n"


@pytest.mark.parametrize("density", [0.0, 0.4, 1.0])
def test_trap_18_a_matrix_and_its_transpose(density: float) -> None:
    """One permuted copy, made by a graph of its own, whose cost is shown."""
    a = signed(1, 5, 5, density=density)
    compiled, result = ran(BOTH_WAYS, A=a)
    np.testing.assert_array_equal(result.tensors["Y"].to_dense(), a + a.T)
    copy, region = compiled.regions
    assert not copy.einsums and any(isinstance(n, Permute) for n in copy.graph.nodes)
    assert [c.source for c in region.fused.copies] == ["A"]
    assert copy.estimate.bytes > 0 and copy.estimate.firings > 0
    assert copy.name in show_order(region.fused)


def test_trap_18_without_copies_both_edges_are_named() -> None:
    with pytest.raises(FusionError, match="it needs i before j, j before i") as error:
        ff.compile(parse(BOTH_WAYS), schedule=Schedule().lower(copies=False))
    assert [note.partition(" (")[0] for note in error.value.notes] == [
        "i before j: A[i, j] is stored i before j",
        "j before i: A[j, i] is stored j before i",
    ]
    assert "allow copies" in error.value.hint


@pytest.mark.parametrize("fuse", ["full", "none"])
@pytest.mark.parametrize("format", ["csr", "dense", "csc", "csf"])
def test_trap_19_one_tensor_in_two_places(format: str, fuse: str) -> None:
    """B (A B): two views of B, each read by its own indices."""
    a, b = signed(1, 4, 4), signed(2, 4, 4)
    text = f"tensor A[4, 4] {format} f64\ntensor B[4, 4] {format} f64\n" + (
        "T[i, j] = sum(k) A[i, k] * B[k, j]\nY[i, j] = sum(k) B[i, k] * T[k, j]\noutput Y\n"
    )
    compiled, result = ran(text, Schedule.fuse(fuse), A=a, B=b)
    np.testing.assert_allclose(result.tensors["Y"].to_dense(), b @ a @ b)
    if fuse == "full" and format == "csr":
        assert sum(view.tensor == "B" for view in compiled.regions[-1].fused.views) == 2


def test_trap_19_equal_views_are_one() -> None:
    a, b = signed(1, 4, 4), signed(2, 4, 4)
    text = """
        tensor A[4, 4] csr f64
        tensor B[4, 4] csr f64
        P[i, j] = A[i, j] * B[i, j]
        Q[i, j] = B[i, j] * B[i, j] - P[i, j]
        Y[i, j] = Q[i, j] + B[i, j]
        output Y
    """
    compiled, _ = ran(text, Schedule.fuse("full"), A=a, B=b)
    (region,) = compiled.regions
    assert [str(view) for view in region.fused.views].count("B[i, j]") == 1
    assert sum(isinstance(n, Load) and n.tensor == "B" for n in region.graph.nodes) == 1


LAYOUTS = ["csr", "csc", "dcsr", "coo", "(compressed, compressed) order (1, 0)", "(dense, dense) order (1, 0)"]


@pytest.mark.parametrize("x", LAYOUTS)
@pytest.mark.parametrize("a", LAYOUTS)
def test_trap_20_stored_orders_are_followed(a: str, x: str) -> None:
    arrays = {"A": signed(1, 4, 5), "X": signed(2, 5, 3)}
    got = output(f"tensor A[4, 5] {a} f64\ntensor X[5, 3] {x} f64\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y\n", **arrays)
    np.testing.assert_allclose(got, arrays["A"] @ arrays["X"])


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
@pytest.mark.parametrize("level", ["compressed", "dense"])
def test_trap_20_three_levels_in_every_order(order: tuple[int, ...], level: str) -> None:
    """Read and written; a result is stored in the order that it is declared with."""
    a = signed(1, 3, 4, 2)
    levels = f"({level}, compressed, {level}) order {order}"
    compiled, result = ran(
        f"tensor A[3, 4, 2] {levels} f64\ntensor Y[3, 4, 2] {levels} f64\nY[i, j, k] = A[i, j, k] * 2\noutput Y\n", A=a
    )
    np.testing.assert_array_equal(result.tensors["Y"].to_dense(), 2 * a)
    assert result.tensors["Y"].format.order == compiled.inputs()["A"].format.order == order
