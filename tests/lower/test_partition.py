"""Blocks and vectors through the whole compiler: the values are those of single elements."""

from itertools import product

import numpy as np
import pytest

from fuseflow.compiler import compile
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError, ScheduleError
from fuseflow.run.artifacts import STAGES
from fuseflow.samml import protobuf
from fuseflow.samml import text as samml_text
from fuseflow.schedule import Schedule
from fuseflow.tensors import Format
from fuseflow.tensors.array_files import read_fibertree

GCN = """
tensor A[20, 20] csr i32
tensor X[20, 12] dense i32
tensor W[12, 6] dense i32
tensor b[6] dense i32
T[k, j] = sum(f) X[k, f] * W[f, j]
Y[i, j] = relu(sum(k) A[i, k] * T[k, j] + b[j])
output Y
"""
ATTENTION = """
tensor M[14, 14] csr
tensor Q[14, 6]
tensor K[14, 6]
tensor V[14, 4]
S[i, j] = where(M[i, j] == 0, -inf, sum(d) Q[i, d] * K[j, d] / 2)
m[i] = max(j) S[i, j]
E[i, j] = exp(S[i, j] - m[i])
s[i] = sum(j) E[i, j]
Y[i, d] = sum(j) E[i, j] / s[i] * V[j, d]
output Y
"""


def data(text, seed=0):
    rng = np.random.default_rng(seed)
    arrays = {}
    for t in parse(text).inputs:
        array = rng.integers(-3, 4, t.shape).astype(np.int32 if t.dtype == "i32" else np.float32)
        arrays[t.name] = array * (rng.random(t.shape) < 0.3) if t.format is not None and not t.format.all_dense else array
    return arrays


def result(text, schedule, engine="auto"):
    return compile(parse(text), tensors=data(text), schedule=schedule, machine="ideal").run(engine=engine)


def blocked(fuse, **blocks):
    schedule = Schedule.fuse(fuse)
    for name, sizes in blocks.items():
        schedule = schedule.block(name, *sizes)
    return schedule


@pytest.mark.parametrize("fuse", ["none", "full"])
@pytest.mark.parametrize(
    "blocks",
    [
        {"A": (4, 4)},
        {"A": (3, 3)},
        {"A": (64, 64)},
        {"A": (4, 4), "W": (4, 2)},
        {"A": (8, 8), "W": (5, 4)},
        {"W": (5, 1)},
        {"W": (1, 4)},
        {"b": (4,)},
    ],
)
def test_integers_are_exact_in_any_blocks(fuse, blocks):
    assert result(GCN, blocked(fuse, **blocks)).check.max_rel_error == 0


@pytest.mark.parametrize("fuse", ["none", "full"])
@pytest.mark.parametrize("blocks", [{"M": (4, 4)}, {"M": (3, 5), "Q": (3, 4), "V": (5, 3)}, {"Q": (7, 6)}, {"M": (1, 4)}])
def test_a_masked_softmax_in_blocks(fuse, blocks):
    assert result(ATTENTION, blocked(fuse, **blocks)).check.max_rel_error < 1e-4


def test_reductions_of_the_padding_give_the_identity():
    text = "tensor A[10, 9]\nm[i] = max(j) A[i, j] - 10\np[j] = prod(i) A[i, j]\nn = min(i, j) exp(A[i, j])\noutput m, p, n"
    assert result(text, blocked("full", A=(4, 4))).check.max_rel_error < 1e-6


def test_a_product_whose_tiles_stand_the_other_way_is_transposed():
    text = "tensor A[8, 6]\ntensor B[8, 4]\nY[j, i] = sum(k) A[k, i] * B[k, j]\noutput Y"
    compiled = compile(parse(text), tensors=data(text), schedule=blocked("full", A=(4, 3), B=(4, 2)), machine="ideal")
    functions = [node.function for node in compiled.regions[0].graph.nodes if hasattr(node, "function")]
    assert sorted(functions) == ["matmul", "sum", "transpose"]
    assert compiled.run().check.max_rel_error == 0


def test_factors_without_the_reduced_index_stay_outside_the_product():
    text = "tensor A[8, 8] csr\ntensor B[8, 4]\ntensor s[8]\nY[i, j] = sum(k) A[i, k] * s[i] * B[k, j] * s[k] / 2\noutput Y"
    compiled = compile(parse(text), tensors=data(text), schedule=blocked("full", A=(4, 4), B=(4, 2)), machine="ideal")
    assert compiled.run().check.max_rel_error < 1e-6
    assert any(getattr(node, "function", "") in ("matmul", "matmul_t") for node in compiled.regions[0].graph.nodes)


def test_three_dimensions_in_one_value_are_refused():
    text = "tensor A[8, 8]\ntensor B[8, 8]\nY[i, j] = max(k) A[i, k] * B[k, j]\noutput Y"
    with pytest.raises(FuseFlowError, match="computes a value for every i, k, j, all in blocks: a tile has two dimensions"):
        compile(parse(text), tensors=data(text), schedule=blocked("full", A=(4, 4), B=(4, 4)))


def test_blocks_and_lanes_together():
    schedule = blocked("full", A=(4, 4), W=(4, 2)).par(i=3, j=2)
    assert result(GCN, schedule).check.max_rel_error == 0


def test_vectors_have_the_values_of_single_elements():
    assert result(GCN, Schedule.fuse("full").lower(vector=4)).check.max_rel_error == 0


def test_blocks_take_fewer_cycles_and_more_operations():
    scalar, tiles = result(GCN, blocked("full")), result(GCN, blocked("full", A=(4, 4), W=(4, 2)))
    assert tiles.cycles < scalar.cycles / 4
    assert tiles.flops > scalar.flops


def test_both_engines_agree():
    schedule = blocked("full", M=(4, 4), Q=(4, 3))
    one, other = result(ATTENTION, schedule, "reference"), result(ATTENTION, schedule, "fast")
    assert one.cycles == other.cycles
    np.testing.assert_array_equal(one.outputs["Y"], other.outputs["Y"])


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (Schedule.block("B", 4, 4), "block of `B`: there is no such tensor"),
        (Schedule.block("A", 4), "block of `A`: a block of 4 has 1 sizes, the tensor 2 dimensions"),
        (Schedule.block("Q*", 4, 4), r"block of `Q\*`: no input of 2 dimensions has such a name"),
        (Schedule.block("A", 4, 8), "dimension 0 of `T` .*|dimension 1 of `A` cannot be in blocks of 8"),
    ],
)
def test_a_block_that_does_not_fit(schedule, message):
    text = "tensor A[8, 8] csr\nT[i, j] = A[i, j] + A[j, i]\noutput T"
    with pytest.raises(FuseFlowError, match=message):
        compile(parse(text), tensors=data(text), schedule=schedule)


def test_a_pattern_blocks_all_inputs_of_its_rank():
    compiled = compile(parse(GCN), tensors=data(GCN), schedule=Schedule.block("*", 4, 4).block("W", 4, 2), machine="ideal")
    assert {t.name: t.block for t in compiled.program.inputs} == {"A": (4, 4), "X": (4, 4), "W": (4, 2), "b": (2,)}


def test_zeros_of_a_blocked_result_are_not_dropped():
    text = "tensor A[8, 8] csr\nY[i, j] = relu(A[i, j])\noutput Y"
    with pytest.raises(FuseFlowError, match="zeros of `Y` cannot be dropped: it is stored in blocks of 4x4"):
        compile(parse(text), tensors=data(text), schedule=Schedule.block("A", 4, 4).lower(drop_zeros=["Y"]))


def test_vectors_that_nothing_can_be():
    text = "tensor A[8, 8] csr\nY[i, j] = relu(A[i, j])\noutput Y"
    with pytest.raises(FuseFlowError, match="vectors of 8: every dimension is in blocks, or stored sparse"):
        compile(parse(text), tensors=data(text), schedule=Schedule.lower(vector=8))


def test_every_stage_is_shown_and_read_back(tmp_path):
    from fuseflow.samml import mlir

    compiled = compile(parse(ATTENTION), tensors=data(ATTENTION), schedule=blocked("full", M=(4, 4), V=(4, 3)), machine="ideal")
    (region,) = compiled.regions
    assert all(compiled.emit(stage) for stage in STAGES if stage != "linalg")
    assert parse(compiled.emit("einsum")) == compiled.program
    assert parse(compiled.emit("fused")).declared["M"].block == (4, 4)
    assert "0..13 in blocks of 4" in compiled.emit("order")
    assert samml_text.parse(compiled.emit("samml"), "graph.samml") == region.graph
    assert mlir.from_mlir(compiled.emit("mlir")) == region.graph
    assert protobuf.from_proto(compiled.emit("proto"), {}) == protobuf.from_text(compiled.emit("proto-text"), {}) == region.graph
    compiled.save(tmp_path / "saved", compiled.run())
    assert np.load(tmp_path / "saved" / "outputs" / "Y.npy").shape == (14, 4)


def test_fibertrees_are_what_the_regions_read(tmp_path):
    compiled = compile(parse(GCN), tensors=data(GCN), schedule=blocked("full", A=(8, 8)), machine="ideal")
    compiled.save_fibertrees(tmp_path)
    for name, tensor in compiled.memory().items():
        reread = read_fibertree(tmp_path, name, tensor.format, tensor.tile)
        np.testing.assert_array_equal(reread.values.reshape(tensor.values.shape), tensor.values)
    assert read_fibertree(tmp_path, "A", Format.parse("csr", 2), (8, 8)).shape == (3, 3)


MERGED = ["T", "U[a, c] = sum(b) X[b, a] * X[b, c]", "U[a, b] = T[a*{b} + b] * 2", "M = max(i) T[i]"]


@pytest.mark.parametrize("second", MERGED)
@pytest.mark.parametrize("format", ["dense", "(dense, dense) order (1, 0)"])
@pytest.mark.parametrize("fuse", ["none", "full"])
def test_vectors_beside_a_merged_dimension(second: str, format: str, fuse: str):
    """The outer part of a merged dimension stays in single elements. Vectors along it would not be vectors of the whole."""
    ran, refused = 0, set[tuple[int, bool]]()
    for (a, b), vector, locate in product([(3, 2), (4, 4), (2, 6), (5, 3)], [2, 4], ["auto", "never"]):
        statement = "" if second == "T" else second.format(b=b)
        outputs = ", ".join(dict.fromkeys(["T", second[0]]))
        text = f"tensor X[{b}, {a}] {format}\nT[a*{b} + b] = X[b, a]\n{statement}\noutput {outputs}\n"
        schedule = Schedule.from_flags([fuse], vector=vector, locate=locate)
        try:
            compiled = compile(parse(text), tensors=data(text), schedule=schedule, machine="ideal")
        except ScheduleError as error:
            refused.add((b, "or a part of another dimension" in error.message))
            continue
        ran += 1
        outcome = compiled.run().check
        assert outcome is not None and outcome.passed, (text, vector, locate)
    assert ran >= 12 and refused <= {(3, True)}  # no vector divides a part of 3


def test_blocks_of_the_outer_part_are_refused():
    text = "tensor X[2, 4] dense\nT[a*2 + b] = X[b, a]\noutput T\n"
    with pytest.raises(FuseFlowError, match="it is the outer part of a dimension that `T` has whole"):
        compile(parse(text), tensors=data(text), schedule=Schedule.block("X", 1, 2))
    inner = compile(parse(text), tensors=data(text), schedule=Schedule.block("X", 2, 1))
    assert inner.program.declared["T"].block == (2,) and inner.run().check.passed


@pytest.mark.parametrize("stage", ["mlir", "table-mlir"])
def test_the_modules_of_several_regions_are_read_one_by_one(stage):
    from fuseflow.samml import mlir

    text = "tensor A[4, 5] csr\nB[i, j] = A[i, j] * 2\nC[i] = sum(j) B[i, j]\noutput C\n"
    compiled = compile(parse(text), tensors=data(text), schedule=Schedule.fuse("none"))
    modules = compiled.emit(stage).split("\n// -----\n")
    assert len(modules) == len(compiled.regions) == 2
    if stage == "mlir":
        assert [mlir.from_mlir(module) for module in modules] == [region.graph for region in compiled.regions]
