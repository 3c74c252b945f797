"""Narrow types through the whole compiler: cycles, bytes and values, on all machines and both simulators."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import GraphError, MachineError, SimulationError, TensorError
from fuseflow.samml import protobuf
from fuseflow.samml import text as samml_text
from fuseflow.samml.mlir import from_mlir, to_mlir
from fuseflow.samml.verify import verify
from fuseflow.schedule import Schedule
from fuseflow.sim import simulate
from fuseflow.tensors import Format, pack

F32_CYCLES = 65_776
"""Of the product below in f32: 512 products of 128 cycles each, and what is around them."""

PRODUCT = """
tensor A[256, 256] csr block 32x32 {0}
tensor B[256, 256] csr block 32x32 {0}
tensor Y[256, 256] block 32x32 {1}
Y[i, j] = sum(k) A[i, k] * B[k, j]
output Y
"""
CHAIN = """
tensor A[9, 7] csr i4
tensor X[7, 11] u4
tensor W[11, 5] f32
tensor H[9, 11] {0}
H[i, j] = relu(sum(k) A[i, k] * X[k, j])
Y[i, m] = sum(j) H[i, j] * W[j, m]
output Y
"""
STORED = {
    "i8": lambda x: x.clamp(-128, 127),
    "u4": lambda x: x.clamp(0, 15),
    "f16": lambda x: x.half().double(),
    "bf16": lambda x: x.bfloat16().double(),
    "e4m3": lambda x: x.to(torch.float8_e4m3fn).double(),
    "e5m2": lambda x: x.to(torch.float8_e5m2).double(),
}


def product(dtype: str, result: str = "i32"):
    least, end = {"e2m1": (-4, 5), "i8": (-128, 128)}.get(dtype, (-8, 8))
    rng = np.random.default_rng(7)
    a, b = (rng.integers(least, end, (256, 256)) for _ in range(2))
    compiled = ff.compile(parse(PRODUCT.format(dtype, result)), tensors={"A": a, "B": b}, machine="ideal")
    return compiled, torch.from_numpy(a) @ torch.from_numpy(b)


def value_bytes(traffic) -> Counter[tuple[str, str]]:
    return Counter({(t.tensor, t.direction): t.bytes for t in traffic if t.kind == "val"})


@pytest.mark.parametrize(
    ("dtype", "share", "part"), [("f32", 1.0, 1), ("i8", 0.27, 4), ("i4", 0.14, 8), ("e4m3", 0.27, 4), ("e2m1", 0.14, 8)]
)
def test_a_product_of_blocks_takes_the_cycles_and_bytes_of_its_width(dtype: str, share: float, part: int):
    compiled, wanted = product(dtype, "i32" if dtype.startswith("i") else "f32")
    result = compiled.run()
    assert np.array_equal(result.outputs["Y"].toarray(), wanted.numpy())
    assert result.cycles <= share * F32_CYCLES
    if dtype == "f32":
        assert result.cycles == F32_CYCLES
    moved = value_bytes(result.regions[0].simulation.traffic)
    assert {key: number * part for key, number in moved.items() if key[1] == "read"} == {
        ("A", "read"): 256 * 256 * 4,
        ("B", "read"): 8 * 256 * 256 * 4,
    }
    assert moved == value_bytes(compiled.estimate().regions[0].work.traffic)


@pytest.mark.parametrize("name", STORED)
def test_values_do_not_depend_on_what_is_fused(name: str):
    rng = np.random.default_rng(1)
    a = rng.integers(-8, 8, (9, 7)) * (rng.random((9, 7)) < 0.5)
    x, w = rng.integers(0, 16, (7, 11)), rng.normal(size=(11, 5)).astype(np.float32)
    h = STORED[name]((torch.from_numpy(a) @ torch.from_numpy(x)).double().relu())
    wanted = (h @ torch.from_numpy(w).double()).float().numpy()
    program = parse(CHAIN.format(name))
    for fuse, written in (("none", True), ("full", False)):
        for machine in ("ideal", "rda"):
            compiled = ff.compile(program, tensors={"A": a, "X": x, "W": w}, machine=machine, schedule=Schedule.fuse(fuse))
            fast, reference = (compiled.run(engine=engine) for engine in ("fast", "reference"))
            assert fast.check.passed and fast.cycles == reference.cycles
            assert np.array_equal(fast.outputs["Y"], reference.outputs["Y"])
            assert np.allclose(fast.outputs["Y"], wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())
            rounded = any("saturate" in n.name or "nearest" in n.name for r in compiled.regions for n in r.graph.nodes)
            assert rounded != written  # the writer rounds what is written
            for mine, estimated in zip(fast.regions, compiled.estimate().regions, strict=True):
                assert value_bytes(mine.simulation.traffic) == value_bytes(estimated.work.traffic)
            moved = sum((value_bytes(r.simulation.traffic) for r in fast.regions), Counter())
            assert moved["A", "read"] == -(-np.count_nonzero(a) * 4 // 8)
            assert (moved["H", "write"] > 0) == written


def test_narrow_types_are_refused_on_comal():
    rng = np.random.default_rng(1)
    tensors = {"A": np.eye(9, 7), "X": rng.integers(0, 16, (7, 11)), "W": np.ones((11, 5))}
    compiled = ff.compile(parse(CHAIN.format("i8")), tensors=tensors, machine="comal", schedule=Schedule.fuse("none"))
    with pytest.raises(MachineError, match=r"elements of .4; machine `comal` has no times for that.*\n.*rules: dataflow"):
        compiled.run()


def test_a_result_that_is_not_a_number_is_refused_with_its_coordinate():
    text = "tensor X[2, 3]\ntensor Y[2, 3] i8\nY[i, j] = log(X[i, j])\noutput Y"
    compiled = ff.compile(parse(text), tensors={"X": [[1, 1, 1], [1, -1, 1]]}, machine="ideal")
    for engine in ("fast", "reference"):
        with pytest.raises(SimulationError, match=r"tensor `Y`: the value at \(1, 1\) is not a number, .* i8 cannot hold"):
            compiled.run(engine=engine)


def test_lanes_of_a_machine_decide():
    compiled, _ = product("i8")
    usual = compiled.run(check=False).cycles
    for lanes, factor in ((1, 4.0), (2, 2.0), (8, 0.5)):
        machine = ff.load_machine("ideal", {"lanes.8": lanes})
        cycles = replace(compiled, machine=machine).run(check=False).cycles
        assert abs(cycles - factor * usual) < 0.02 * factor * usual


@pytest.mark.parametrize("name", ["i4", "u4", "i8", "u8", "i16", "f16", "bf16"])
def test_every_form_of_a_graph_says_the_types(name: str):
    text = f"tensor X[2, 3] csr {name}\ntensor Y[2] {name}\nY[i] = sum(j) X[i, j]\noutput Y"
    (region,) = ff.compile(parse(text), tensors={"X": [[1, 0, 1], [0, 1, 0]]}, machine="ideal").regions
    graph = region.graph
    assert {decl.dtype for decl in graph.tensors} == {name}
    assert samml_text.parse(samml_text.show(graph)) == graph
    assert protobuf.from_proto(protobuf.to_proto(graph)) == graph
    assert from_mlir(to_mlir(graph)) == graph


def test_a_graph_with_an_implicit_value_that_its_type_lacks_is_refused():
    text = "tensor X[3] csf i8\ntensor Y[3] csf i8\nY[i] = X[i] * 2\noutput Y"
    (region,) = ff.compile(parse(text), tensors={"X": [1, 0, 2]}, machine="ideal").regions
    wrong = replace(region.graph, tensors=tuple(replace(t, fill=200.0) for t in region.graph.tensors))
    with pytest.raises(GraphError, match=r"the implicit value 200, which is no number of i8\n  hint: the nearest is 127"):
        verify(wrong)


def test_a_tensor_of_another_type_is_refused():
    text = "tensor X[3] i4\nY[i] = X[i] * 2\noutput Y"
    (region,) = ff.compile(parse(text), tensors={"X": [1, 0, 2]}, machine="ideal").regions
    with pytest.raises(TensorError, match="tensor `X` has elements of i8, declared i4"):
        simulate(region.graph, {"X": pack(np.array([1, 0, 100], dtype=np.int8), Format.dense(1))}, ff.load_machine("ideal"))
