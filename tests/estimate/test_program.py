"""Estimates of programs against their runs: models at every granularity, lanes, reshapes, repeated regions, directories."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError, MachineError
from fuseflow.estimate import Assumptions
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.program_estimate import ProgramEstimate
from fuseflow.run.artifact_reader import load_saved
from fuseflow.sim import load_machine

ROOT = Path(__file__).parents[2]
PAPER = {"gcn": "karate", "graphsage": "karate", "sae": None, "gpt": None}


def compiled(model: str, granularity: str, machine: str = "comal") -> ff.Compiled:
    schedule = ff.Schedule.load(ROOT / "schedules" / f"{model}_{granularity}.yaml")
    path = ROOT / "models" / "paper" / f"{model}.py"
    return ff.compile(path, data=PAPER[model], options={"small": "true"}, schedule=schedule, machine=machine)


def agree(estimate: ProgramEstimate, result: ff.Result) -> None:
    assert estimate.exact
    assert estimate.stats == result.stats
    for expected, measured in zip(estimate.regions, result.regions, strict=True):
        assert dict(expected.work.operators) == dict(measured.simulation.operators)
        assert (expected.name, expected.times, expected.firings) == (measured.name, measured.times, measured.simulation.firings)
        assert expected.bound.compute == measured.simulation.busiest <= measured.cycles


@pytest.mark.parametrize("model", PAPER)
def test_models_at_every_granularity(model: str):
    """One estimator serves all schedules: what it keeps from one does not change the estimate of the next."""
    estimator = Estimator()
    expected, measured = [], []
    for granularity in ("unfused", "partial", "full"):
        program = compiled(model, granularity)
        estimate, result = program.estimate(estimator), program.run(check=False)
        agree(estimate, result)
        assert estimate.cycles == pytest.approx(result.cycles, rel=0.2)
        expected.append(estimate.cycles)
        measured.append(result.cycles)
    assert np.argsort(expected).tolist() == np.argsort(measured).tolist()


def test_lanes_and_memory():
    path, data = ROOT / "models" / "paper" / "gcn.py", "random:nodes=10,features=6,classes=3"
    program = ff.compile(path, data=data, schedule=ff.Schedule.fuse("full").par(n=3))
    estimate, result = program.estimate(), program.run(check=False)
    agree(estimate, result)
    (expected,), (measured,) = estimate.regions, result.regions
    assert measured.simulation.memory is not None
    assert expected.bound.memory == pytest.approx(measured.simulation.memory.bound, rel=0.5)


def test_statistics_alone():
    program = ff.compile(ROOT / "models" / "paper" / "gcn.py", data="karate", schedule=ff.Schedule.fuse("full"), machine="comal")
    exact, expected = program.estimate(), program.estimate(Estimator(statistics_only=True))
    assert not expected.exact and not expected.regions[0].work.patterns
    assert expected.flops == pytest.approx(exact.flops, rel=0.028)
    bytes_ = [sum(estimate.stats["bytes"][d] for d in ("read", "write")) for estimate in (exact, expected)]
    assert bytes_[1] == pytest.approx(bytes_[0], rel=0.115)


def program(**tensors: object) -> ff.Compiled:
    text = "tensor A[30, 20] csr\ntensor X[20, 8] dense\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y"
    return ff.compile(parse(text), tensors=tensors)


def test_nothing_known():
    with pytest.raises(FuseFlowError, match="nothing is known of what `A` stores"):
        program().estimate()
    estimate = program().estimate(Estimator(assumptions=Assumptions.parse(["A.density=0.1"])))
    assert estimate.operators["mul"] == pytest.approx(30 * 20 * 0.1 * 8) and not estimate.exact


def test_stated_statistics_stand_for_data_too():
    array = np.zeros((30, 20))
    array[3, 4] = 1.0
    estimate = program(A=array).estimate(Estimator(assumptions=Assumptions.parse(["A.stored=60"])))
    assert estimate.operators["mul"] == pytest.approx(60 * 8)


def test_a_directory_is_enough(tmp_path: Path):
    """A directory has reshapes between regions and regions that repeat, but not the tensors."""
    saved_program = compiled("gpt", "full")
    saved_program.save(tmp_path / "out")
    saved = load_saved(tmp_path / "out")
    assumptions = Assumptions.parse(["M.density=0.5"])
    estimate = Estimator(assumptions=assumptions).estimate(saved.regions, saved.source.program, {}, saved_program.machine)
    assert estimate.to_json()["regions"] == saved_program.estimate(Estimator(assumptions=assumptions)).to_json()["regions"]
    with pytest.raises(FuseFlowError, match="no directory of a compiled program"):
        load_saved(tmp_path)
    (tmp_path / "out" / "about.json").write_text("{}")
    with pytest.raises(FuseFlowError, match="not what `fuseflow compile` writes"):
        load_saved(tmp_path / "out")


@pytest.mark.parametrize("dtype", ["i8", "i4", "u8", "f16"])
def test_what_a_machine_has_no_times_for_is_not_estimated(dtype: str) -> None:
    """`comal` refuses to run narrow types, and called 76 cycles of them an estimate."""
    text = f"tensor A[4, 4] csr {dtype}\ntensor B[4, 4] dense {dtype}\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y\n"
    tensors = {"A": np.eye(4), "B": np.ones((4, 4))}
    compiled = ff.compile(parse(text), tensors=tensors, machine="comal")
    with pytest.raises(MachineError) as ran:
        compiled.run()
    with pytest.raises(MachineError) as estimated:
        compiled.estimate()
    assert str(ran.value) == str(estimated.value)


def test_a_sum_over_all_holds_up_what_is_computed_a_second_time_for_it():
    """The second way begins behind the first, since FIFOs of 64 slots hold little of it. It was expected to run beside it."""
    rng = np.random.default_rng(0)
    text = "tensor A[80, 80] csr\ntensor x[80] dense\nm[i] = sum(j) A[i, j] * x[j]\ns = sum(i) x[i] * m[i]\ny[i] = m[i] / s\noutput y\n"
    tensors = {"A": rng.random((80, 80)) * (rng.random((80, 80)) < 0.4), "x": rng.random(80)}
    for depth in (64, 4096):
        machine = load_machine("ideal").model_copy(update={"fifo_depth": depth})
        compiled = ff.compile(parse(text), tensors=tensors, machine=machine, schedule=ff.Schedule.fuse("full"))
        assert compiled.estimate().cycles == pytest.approx(compiled.run(check=False).cycles, rel=0.05)


@pytest.mark.parametrize("block", [(8, 1), (1, 8), (2, 2)])
def test_blocks_of_several_lines_are_not_single_lines_far_apart(block: tuple[int, int]):
    """A block of A is a run of lines in different bank groups, and whole rows of Y are written at once, to rows of the memory that are
    open."""
    rows, columns = block
    inputs = f"tensor A[256, 256] dense block 32x{rows}\ntensor B[256, 256] csr block {rows}x{columns}"
    program = parse(f"{inputs}\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y")
    rng = np.random.default_rng(0)
    tensors = {"A": rng.random((256, 256)), "B": rng.random((256, 256)) * (rng.random((256, 256)) < 0.1)}
    compiled = ff.compile(program, tensors=tensors, schedule=ff.Schedule.fuse("full").par(i=2), machine="rda")
    assert compiled.estimate().cycles == pytest.approx(compiled.run(check=False).cycles, rel=0.1)


def test_a_port_that_is_busy_all_the_time_cannot_make_up_for_a_refresh():
    """The columns of W are read a line for nearly every element. It was expected to go on while the memory refreshes itself, as FIFOs
    are full then, but it has no time to fill them again."""
    rng = np.random.default_rng(0)
    tensors = {"X": rng.random((300, 1433)) * (rng.random((300, 1433)) < 18 / 1433), "W": rng.random((1433, 16))}
    for layout in ("dense", "(dense, dense) order (1, 0)"):
        program = parse(f"tensor X[300, 1433] csr\ntensor W[1433, 16] {layout}\nY[j, h] = sum(k) X[j, k] * W[k, h]\noutput Y")
        compiled = ff.compile(program, tensors=tensors, machine="rda")
        assert compiled.estimate().cycles == pytest.approx(compiled.run(check=False).cycles, rel=0.02)
