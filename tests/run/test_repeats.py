"""Regions that run like an earlier one count like it, and give the same numbers as if all were simulated."""

from __future__ import annotations

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.sim import load_machine

LAYERS = """
tensor A1[6, 6] {0}
tensor A2[6, 6] {1}
tensor H0[6, 4]
tensor W1[4, 4]
tensor W2[4, 4]
S[i, j] = sum(k) A1[i, k] * H0[k, j]
H1[i, j] = relu(sum(k) S[i, k] * W1[k, j])
P[i, j] = sum(k) A2[i, k] * H1[k, j]
Y[i, j] = relu(sum(k) P[i, k] * W2[k, j])
output Y, H1
"""
TWO = ff.Schedule.region("one", "S", "H1").region("two", "P", "Y").fuse("one", "two")


def compiled(schedule=TWO, formats=("csr", "csr"), same_mask=True, machine="ideal") -> ff.compiler.Compiled:
    program, rng = parse(LAYERS.format(*formats)), np.random.default_rng(0)
    tensors = {t.name: rng.standard_normal(t.shape).astype(np.float32) for t in program.inputs}
    mask = rng.random((6, 6)) < 0.4
    tensors["H0"] = np.abs(tensors["H0"])
    tensors |= {"A1": tensors["A1"] * mask, "A2": tensors["A2"] * (mask if same_mask else mask.T)}
    return ff.compile(program, tensors=tensors, schedule=schedule, machine=machine)


@pytest.mark.parametrize("machine", ["ideal", "comal", "rda"])
def test_repeats_count_like_the_first(machine) -> None:
    program = compiled(machine=machine)
    deduplicated, simulated = program.run(), program.run(dedup=False)
    assert [(r.name, r.times, [s.name for s in r.repeats]) for r in deduplicated.regions] == [("one", 2, ["two"])]
    assert [r.times for r in simulated.regions] == [1, 1] and simulated.regions[0].cycles == simulated.regions[1].cycles
    assert (deduplicated.cycles, deduplicated.flops, deduplicated.stats) == (simulated.cycles, simulated.flops, simulated.stats)
    assert deduplicated.check.passed and simulated.check.passed
    assert {name: t.format for name, t in deduplicated.tensors.items()} == {
        name: t.format for name, t in simulated.tensors.items()
    }
    assert deduplicated.to_dict()["regions"][0]["repeats"] == ["two"] and deduplicated.to_dict()["regions"][0]["times"] == 2


def test_values_of_a_repeat_are_its_own() -> None:
    program = compiled()
    np.testing.assert_allclose(program.run().outputs["Y"], program.run(dedup=False).outputs["Y"], rtol=1e-5)


def test_other_patterns_are_no_repeat() -> None:
    assert [r.times for r in compiled(same_mask=False).run().regions] == [1, 1]


def test_other_formats_are_no_repeat() -> None:
    assert [r.times for r in compiled(formats=("csr", "dcsr")).run().regions] == [1, 1]


def test_dropped_zeros_depend_on_values() -> None:
    dropping = TWO.format("H1", "csr").format("Y", "csr").lower(drop_zeros=["H1", "Y"])
    assert [r.times for r in compiled(dropping).run().regions] == [1, 1]


def test_a_sparse_result_of_a_repeat_stores_what_is_stored() -> None:
    text = "tensor A[5, 5] csr\ntensor B[5, 5] csr\nC[i, j] = relu(A[i, j])\nD[i, j] = relu(B[i, j])\noutput C, D"
    a = np.array([[0, -1, 2, 0, 0]] * 5, dtype=np.float32)
    program = ff.compile(parse(text), tensors={"A": a, "B": -a}, schedule=ff.Schedule.fuse("none"), machine="ideal")
    deduplicated, simulated = program.run(), program.run(dedup=False)
    assert [r.times for r in deduplicated.regions] == [2]
    for name in ("C", "D"):
        assert deduplicated.tensors[name].stored == simulated.tensors[name].stored == 10
        np.testing.assert_array_equal(deduplicated.tensors[name].to_dense(), simulated.tensors[name].to_dense())


def test_names_do_not_matter() -> None:
    """Tensors lie in the order in which nodes name them, whatever they are called."""
    text = "tensor A[4]\ntensor B[4]\nY[i] = A[i] - B[i]\nZ[i] = B[i] - A[i]\noutput Y, Z"
    tensors = {"A": np.ones(4, np.float32), "B": np.ones(4, np.float32)}
    for machine in ("ideal", "rda"):
        program = ff.compile(parse(text), tensors=tensors, schedule=ff.Schedule.fuse("none"), machine=machine)
        assert [r.times for r in program.run().regions] == [2]


def test_a_repeat_reads_permuted_copies_from_memory() -> None:
    """The second region reads the copy that was made for the first, not what was copied."""
    text = "tensor A[3, 2] csc\ntensor T[6] dense\ntensor U[6] dense\nT[i*2 + j] = A[i, j]\nU[i*2 + j] = A[i, j]\noutput T, U"
    a = np.arange(6, dtype=np.float32).reshape(3, 2)
    result = ff.compile(parse(text), tensors={"A": a}, schedule=ff.Schedule.fuse("none"), machine="ideal").run()
    assert [r.name for r in result.regions if r.times == 2] == ["T"]
    np.testing.assert_array_equal(result.outputs["U"], a.ravel())


@pytest.mark.parametrize("arithmetic", ["element", "f64"])
def test_a_repeat_is_computed_in_the_arithmetic_of_the_machine(arithmetic: str):
    """A tenth is no 32-bit float, so that both differ in where a quotient by it is above 3."""
    text = "tensor {0}[40]\nU{0}[i] = where({0}[i] / 0.1 > 3, 1, 0)\noutput U{0}"
    program = parse("\n".join(line for name in "AB" for line in text.format(name).splitlines()))
    values = np.arange(40, dtype=np.float32) * np.float32(0.1)
    machine = load_machine("ideal", {"arithmetic": arithmetic})
    compiled = ff.compile(program, tensors={"A": values, "B": values}, schedule=ff.Schedule.fuse("none"), machine=machine)
    once, twice = compiled.run(), compiled.run(dedup=False)
    assert once.regions[0].times == 2 and once.check.passed
    for name, tensor in twice.tensors.items():
        np.testing.assert_array_equal(once.tensors[name].values, tensor.values)
