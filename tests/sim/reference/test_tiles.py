"""Tiles through the simulator: block kernels against dense NumPy, absent tiles, times, counts."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tile_graphs import ONE, SOFTMAX, SPMM, UNION, blocked, sparse

from fuseflow.errors import SimulationError, TensorError
from fuseflow.machine.machine import UnitCycles
from fuseflow.samml import nodes as n
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import Machine, Simulation, load_machine, simulate
from fuseflow.tensors import Tensor, pack
from fuseflow.tensors.format import Format

IDEAL = load_machine("ideal")


def whole(tensor: Tensor) -> npt.NDArray[np.generic]:
    """The matrix that a tensor of tiles holds."""
    rows, columns, *tile = tensor.to_dense().shape
    return tensor.to_dense().transpose(0, 2, 1, 3).reshape(rows * tile[0], columns * tile[1])


def run(text: str, tensors: dict[str, Tensor], machine: Machine = IDEAL) -> Simulation:
    graph = parse(text)
    verify(graph)
    return simulate(graph, tensors, machine, check=True, record=True)


@pytest.mark.parametrize("format", ["csr", "dcsr", "dense"])
@pytest.mark.parametrize("other", ["dense", "csr"])
@given(seed=st.integers(0, 2**32 - 1), density=st.sampled_from([0.0, 0.3, 1.0]))
def test_block_spmm(format: str, other: str, seed: int, density: float) -> None:
    rng = np.random.default_rng(seed)
    a, x = sparse(rng, (8, 15), (2, 3), density), sparse(rng, (15, 12), (3, 4), 0.7)
    tensors = {"A": blocked(a, (2, 3), format), "X": blocked(x, (3, 4), other)}
    found = run(SPMM.format(format=format, other=other), tensors)
    np.testing.assert_array_equal(whole(found.outputs["Y"]), a @ x)


def test_flops_and_words_of_tiles_count_their_elements() -> None:
    a, x = np.ones((8, 15)), np.ones((15, 12))
    found = run(SPMM.format(format="csr", other="dense"), {"A": blocked(a, (2, 3), "csr"), "X": blocked(x, (3, 4), "dense")})
    assert found.operators == {"matmul": 2 * 8 * 15 * 12, "sum": 5 * 8 * 12}
    words = {(t.tensor, t.kind, t.direction): (t.words, t.bytes) for t in found.traffic if t.kind == "val"}
    assert words == {
        ("A", "val", "read"): (8 * 15, 8 * 8 * 15),
        ("X", "val", "read"): (4 * 15 * 12, 8 * 4 * 15 * 12),
        ("Y", "val", "write"): (8 * 12, 8 * 8 * 12),
    }


def test_block_attention() -> None:
    """softmax(mask(Q K^T)) by rows: transposed products, row reductions, their broadcast over tiles, folds over tiles."""
    rng = np.random.default_rng(4)
    q, k, mask = rng.random((6, 5)), rng.random((12, 5)), sparse(rng, (6, 12), (2, 3), 0.6) != 0
    mask[0, 3] = True
    scores = np.where(mask, q @ k.T, -np.inf)
    with np.errstate(all="ignore"):
        wanted = np.exp(scores - scores.max(axis=1, keepdims=True))
        wanted = wanted / wanted.sum(axis=1, keepdims=True)
    wanted = np.where(mask.any(axis=1, keepdims=True), wanted, 0.0)
    tensors = {"Q": blocked(q, (2, 5), "dense"), "K": blocked(k, (3, 5), "dense"), "M": blocked(mask * 1.0, (2, 3), "dcsr")}
    found = whole(run(SOFTMAX, tensors).outputs["Y"])
    rows = mask.any(axis=1)
    np.testing.assert_allclose(found[rows], wanted[rows], rtol=1e-12)
    assert rows.sum() >= 3


def test_an_absent_tile_is_a_tile_of_the_implicit_value() -> None:
    a, b = np.full((4, 6), -1.5), np.zeros((4, 6))
    a[:2, :2], b[2:, 4:] = 1.0, 2.0
    found = run(UNION, {"A": blocked(a, (2, 2), "dcsr", -1.5), "B": blocked(b, (2, 2), "dcsr")}).outputs["Y"]
    assert found.values.tolist() == [[[8.0, 8.0]] * 2, [[0.5, 0.5]] * 2]  # 1 + absent 7; absent -1.5 + 2


def test_empty_fibers_fold_to_a_tile_of_the_identity() -> None:
    text = """
    tensor A[3, 2]  csr f64 tile 1x2
    tensor y[3]  dense f64 tile 1x2
    output y
    root = root()
    A_i = scan(root) A.0
    A_j = scan(A_i.ref) A.1
    A_v = load(A_j.ref) A
    most = reduce(A_v) max
    y_i = write(A_i.crd) y.0
    y_v = write(most) y.vals
    """
    found = run(text, {"A": blocked(np.array([[0, 0, 0, 0], [-1, 5, 2, -7], [-1, -1, 0, 0.0]]), (1, 2), "csr")})
    assert found.outputs["y"].values.tolist() == [[[-math.inf] * 2], [[2.0, 5.0]], [[-1.0, -1.0]]]


@pytest.mark.parametrize(
    ("function", "a", "b", "y", "interval", "folds"),
    [
        ("matmul", (8, 8), (8, 8), (8, 8), 2, 1),  # 512 multiply-accumulates
        ("matmul", (16, 2), (2, 17), (16, 17), 3, 2),  # 544, 272 elements
        ("matmul_t", (16, 16), (16, 16), (16, 16), 16, 1),
        ("add", (16, 16), (16, 16), (16, 16), 1, 1),
        ("add", (32, 32), (32, 1), (32, 32), 4, 4),
        ("mul", (1, 1), (1, 1), (1, 1), 1, 1),
    ],
)
def test_the_time_of_a_tile(
    function: str, a: tuple[int, int], b: tuple[int, int], y: tuple[int, int], interval: int, folds: int
) -> None:
    """256 elements a cycle; a tile is there when its last part is, and parts of two tiles do not mix."""
    text = ONE.format(a="x".join(map(str, a)), b="x".join(map(str, b)), y="x".join(map(str, y)), function=function)
    tensors = {"A": Tensor((4,), Format.dense(1), pack(np.ones(4), Format.dense(1)).levels, np.ones((4, *a)))}
    tensors["B"] = Tensor((4,), Format.dense(1), tensors["A"].levels, np.ones((4, *b)))
    machine = Machine(name="m", latency=UnitCycles(default=1, add=4, mul=4))
    found = run(text, tensors, machine)
    stream = found.streams[n.Port("y")]
    assert [t - stream.visible[0] for t in stream.visible[:4]] == [k * interval for k in range(4)]
    given = found.streams[n.Port("B_v")].visible[0]
    assert stream.visible[0] == given + 4 + interval - 1
    # The last of the tiles is folded once the ones before it are; the stop in the cycle after.
    last = max(stream.visible[3], stream.visible[0] + 3 * folds)
    assert found.streams[n.Port("total")].visible[0] == max(last + 1, stream.visible[4]) + 4 + folds - 1


def test_a_unit_slower_than_its_tiles_keeps_its_interval() -> None:
    tensors = {"A": Tensor((4,), Format.dense(1), pack(np.ones(4), Format.dense(1)).levels, np.ones((4, 2, 2)))}
    machine = Machine(name="m", interval=UnitCycles(add=5), latency=UnitCycles(add=7))
    found = run(ONE.format(a="2x2", b="2x2", y="2x2", function="add"), tensors | {"B": tensors["A"]}, machine)
    stream = found.streams[n.Port("y")]
    assert stream.visible[1] - stream.visible[0] == 5
    assert stream.visible[0] == found.streams[n.Port("B_v")].visible[0] + 7 + 5 - 1


def test_values_round_to_the_dtype() -> None:
    text = ONE.format(a="1x2", b="1x2", y="1x2", function="mul").replace("s[]  dense f64", "s[]  dense {dtype}")
    one = pack(np.ones(4), Format.dense(1)).levels
    tensors = {
        "A": Tensor((4,), Format.dense(1), one, np.full((4, 1, 2), 0.1)),
        "B": Tensor((4,), Format.dense(1), one, np.ones((4, 1, 2))),
    }
    assert run(text.format(dtype="f32"), tensors).outputs["s"].values.dtype == np.float32
    assert run(text.format(dtype="i32"), tensors).outputs["s"].values.tolist() == [[[0, 0]]]
    tensors["B"] = Tensor((4,), Format.dense(1), one, np.full((4, 1, 2), 1e12))
    with pytest.raises(SimulationError, match=r"the value 4e\+11 does not fit its dtype i32"):
        run(text.format(dtype="i32"), tensors)


def test_a_tensor_of_other_tiles_is_refused() -> None:
    graph = parse(ONE.format(a="2x2", b="2x2", y="2x2", function="add"))
    scalars = pack(np.ones(4), Format.dense(1))
    with pytest.raises(TensorError, match=r"tensor `A` has tiles \(\); graph `graph` declares \(2, 2\)"):
        simulate(graph, {"A": scalars, "B": scalars}, IDEAL)
