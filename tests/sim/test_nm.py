"""A product with an n:m matrix: the values of PyTorch, the firings of CSR, fewer bytes, at every memory and on both simulators."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from estimate_exact import check_estimate

import fuseflow as ff
from fuseflow.costs.statistics import assume_statistics
from fuseflow.einsum.nodes import TensorType
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError
from fuseflow.memory.settings import ComalFixedMemory
from fuseflow.run.compiled import Compiled
from fuseflow.sim import Machine, load_machine
from fuseflow.sim.outcome.statistics import Traffic

FORMATS = ("csr", "nm(2:4)")
FIXED = load_machine("rda").model_copy(update={"memory": ComalFixedMemory()})
MACHINES = {"ideal": load_machine("ideal"), "comal": load_machine("comal"), "rda": load_machine("rda"), "comal_fixed": FIXED}


def two_of_four(rows: int, columns: int) -> npt.NDArray[np.float32]:
    """A matrix of which every four columns hold two elements of each row."""
    rng = np.random.default_rng(rows)
    places = np.argsort(rng.random((rows, columns // 4, 4)), axis=2) < 2
    return np.where(places.reshape(rows, columns), rng.standard_normal((rows, columns)), 0).astype(np.float32)


def product(weight: npt.NDArray[Any], x: npt.NDArray[Any], format: str, machine: Machine) -> Compiled:
    text = f"""
tensor W[{weight.shape[0]}, {weight.shape[1]}] {format}
tensor X[{x.shape[0]}, {x.shape[1]}] dense
Y[i, j] = sum(k) W[i, k] * X[k, j]
output Y
"""
    return ff.compile(parse(text), tensors={"W": weight, "X": x}, machine=machine)


def traffic(result: ff.Result, tensor: str) -> dict[str, int]:
    rows: tuple[Traffic, ...] = result.regions[0].simulation.traffic
    return {row.kind: row.bytes for row in rows if row.tensor == tensor}


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_as_many_firings_as_csr(machine: Machine, engine: Any) -> None:
    weight, x = two_of_four(6, 16), np.random.default_rng(1).standard_normal((16, 5)).astype(np.float32)
    expected = (torch.from_numpy(weight) @ torch.from_numpy(x)).numpy()
    runs = {format: product(weight, x, format, machine).run(engine=engine) for format in FORMATS}
    for result in runs.values():
        np.testing.assert_allclose(result.outputs["Y"], expected, rtol=1e-5, atol=1e-5)
    csr, nm = (runs[format] for format in FORMATS)
    assert nm.regions[0].simulation.firings == csr.regions[0].simulation.firings
    assert nm.cycles <= csr.cycles
    assert traffic(nm, "W")["val"] == traffic(csr, "W")["val"]
    assert traffic(nm, "W")["crd"] * 16 == traffic(csr, "W")["crd"]
    assert "pos" not in traffic(nm, "W")


@pytest.mark.parametrize("machine", [MACHINES["ideal"], MACHINES["rda"]], ids=["ideal", "rda"])
def test_the_bytes_of_a_pruned_layer(machine: Machine) -> None:
    """A matrix that is read once: run and estimate agree to the byte."""
    weight, x = two_of_four(768, 3072), np.ones((3072, 1), dtype=np.float32)
    bytes_ = {}
    for format in FORMATS:
        compiled = product(weight, x, format, machine)
        result = compiled.run(check=False)
        check_estimate(compiled, result)
        bytes_[format] = traffic(result, "W")
        estimated = {row.kind: row.bytes for row in compiled.estimate().regions[0].work.traffic if row.tensor == "W"}
        assert estimated == bytes_[format]
    assert bytes_["nm(2:4)"] == {"val": 4_718_592, "crd": 294_912}
    assert (bytes_["csr"]["val"], bytes_["csr"]["crd"]) == (4_718_592, 4_718_592)


@pytest.mark.parametrize("size", [1, 5, 6, 19])
@pytest.mark.parametrize(
    "format", ["nm(3:4)", "(compressed, nm(2:3))", "(nm(1:2), nm(4:5))", "(nm(2:3), dense)", "(dense, nm(9:9)) order (1, 0)"]
)
@pytest.mark.parametrize("machine", [MACHINES["rda"], FIXED], ids=["rda", "comal_fixed"])
def test_pads_and_groups_that_end_early(format: str, size: int, machine: Machine) -> None:
    """Elements of three bits straddle the words of a memory, and the last group may be shorter than its entries."""
    weight = np.zeros((5, size), dtype=np.float32)
    weight[[0, 2, 4], 0] = weight[2, size // 2] = weight[4, -1] = 3
    x = np.random.default_rng(1).standard_normal((size, 2)).astype(np.float32)
    compiled = product(weight, x, format, machine)
    runs = [compiled.run(engine=engine) for engine in ("reference", "fast")]
    assert runs[0].check is not None and runs[0].check.passed
    assert runs[0].stats == runs[1].stats
    assert runs[0].cycles == runs[1].cycles
    check_estimate(compiled, runs[0])


def test_a_program_without_data_stores_what_the_level_says() -> None:
    """From statistics alone the offsets of a matrix are known, for the level alone decides how many there are."""
    text = "tensor W[16, 40] nm(1:4)\ntensor x[40] dense\ny[i] = sum(k) W[i, k] * x[k]\noutput y"
    declared = parse(text).declared["W"]
    assert isinstance(declared, TensorType)
    assert assume_statistics(declared).fanouts == (16.0, 10.0)


def test_an_array_that_does_not_fit_is_refused_by_name() -> None:
    weight = np.zeros((4, 8), dtype=np.float32)
    weight[2, 4:7] = 1
    with pytest.raises(FuseFlowError, match=r"tensor `W`: level 1 \(nm\(2:4\)\), from coordinate \(2, 4\) on: 3 of 4"):
        product(weight, np.ones((8, 1), dtype=np.float32), "nm(2:4)", MACHINES["ideal"]).run()


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_blocks_in_groups(machine: Machine) -> None:
    """A level of a tensor in blocks counts blocks: `nm(1:2)` stores one of every two blocks of a row of blocks."""
    weight = np.zeros((4, 10), dtype=np.float32)
    weight[0, 3], weight[1, 4], weight[2, 1], weight[3, 8] = 1, 2, 3, 4  # blocks of two columns: 1 and 2, 0 and 4
    x = np.random.default_rng(1).standard_normal((10, 4)).astype(np.float32)
    source = "tensor W[4, 10] nm(1:2) block 2x2\ntensor X[10, 4] dense block 2x2\nY[i, j] = sum(k) W[i, k] * X[k, j]\noutput Y"
    compiled = ff.compile(parse(source), tensors={"W": weight, "X": x}, machine=machine)
    runs = [compiled.run(engine=engine) for engine in ("reference", "fast")]
    np.testing.assert_allclose(runs[0].outputs["Y"], weight @ x, rtol=1e-5)
    assert (runs[0].stats, runs[0].cycles) == (runs[1].stats, runs[1].cycles)
    check_estimate(compiled, runs[0])


def test_blocks_that_do_not_fit_their_groups() -> None:
    weight = np.zeros((4, 8), dtype=np.float32)
    weight[0, 4] = weight[1, 7] = 1  # one element of each row in the second four columns, in both blocks there
    source = "tensor W[4, 8] nm(1:2) block 2x2\ntensor X[8, 4] dense block 2x2\nY[i, j] = sum(k) W[i, k] * X[k, j]\noutput Y"
    with pytest.raises(FuseFlowError, match=r"tensor `W`: level 1 \(nm\(1:2\)\), from coordinate \(0, 2\) on: 2 of 2"):
        ff.compile(parse(source), tensors={"W": weight, "X": np.ones((8, 4))}).run()
