"""Estimates of programs against their runs: models at every granularity, lanes, reshapes, repeated regions, directories."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.errors import FuseFlowError
from fuseflow.estimate import Assumptions
from fuseflow.estimate.program import Estimator, ProgramEstimate
from fuseflow.run.saved import load_saved

ROOT = Path(__file__).parents[2]
PAPER = {"gcn": "karate", "graphsage": "karate", "sae": None, "gpt": None}


def compiled(model: str, granularity: str, machine: str = "comal") -> ff.Compiled:
    schedule = ff.Schedule.load(ROOT / "schedules" / f"{model}_{granularity}.yaml")
    path = ROOT / "models" / "paper" / f"{model}.py"
    return ff.compile(path, data=PAPER[model], options={"small": "true"}, schedule=schedule, machine=machine)


def agree(found: ProgramEstimate, result: ff.Result) -> None:
    assert found.exact
    assert found.stats == result.stats
    for ours, theirs in zip(found.regions, result.regions, strict=True):
        assert dict(ours.work.operators) == dict(theirs.simulation.operators)
        assert (ours.name, ours.times, ours.firings) == (theirs.name, theirs.times, theirs.simulation.firings)
        assert ours.bound.compute == theirs.simulation.busiest <= theirs.cycles


@pytest.mark.parametrize("model", PAPER)
def test_models_at_every_granularity(model: str):
    """One estimator for all: what it keeps from one schedule does no harm to the next."""
    estimator = Estimator()
    ours, theirs = [], []
    for granularity in ("unfused", "partial", "full"):
        program = compiled(model, granularity)
        found, result = program.estimate(estimator), program.run(check=False)
        agree(found, result)
        assert found.cycles == pytest.approx(result.cycles, rel=0.2)
        ours.append(found.cycles)
        theirs.append(result.cycles)
    assert np.argsort(ours).tolist() == np.argsort(theirs).tolist()


def test_lanes_and_memory():
    path, data = ROOT / "models" / "paper" / "gcn.py", "random:nodes=10,features=6,classes=3"
    program = ff.compile(path, data=data, schedule=ff.Schedule.fuse("full").par(n=3))
    found, result = program.estimate(), program.run(check=False)
    assert found.stats == result.stats and found.exact
    (ours,), (theirs,) = found.regions, result.regions
    assert ours.bound.compute <= theirs.simulation.busiest
    assert theirs.simulation.memory is not None
    assert ours.bound.memory == pytest.approx(theirs.simulation.memory.bound, rel=0.5)


def test_statistics_alone():
    program = ff.compile(ROOT / "models" / "paper" / "gcn.py", data="karate", schedule=ff.Schedule.fuse("full"), machine="comal")
    exact, expected = program.estimate(), program.estimate(Estimator(statistics_only=True))
    assert not expected.exact and not expected.regions[0].work.patterns
    assert expected.flops == pytest.approx(exact.flops, rel=0.028)
    bytes_ = [sum(found.stats["bytes"][d] for d in ("read", "write")) for found in (exact, expected)]
    assert bytes_[1] == pytest.approx(bytes_[0], rel=0.115)


def program(**tensors: object) -> ff.Compiled:
    text = "tensor A[30, 20] csr\ntensor X[20, 8] dense\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y"
    from fuseflow.einsum.parse import parse

    return ff.compile(parse(text), tensors=tensors)


def test_nothing_known():
    with pytest.raises(FuseFlowError, match="nothing is known of what `A` stores"):
        program().estimate()
    found = program().estimate(Estimator(assumptions=Assumptions.parse(["A.density=0.1"])))
    assert found.operators["mul"] == pytest.approx(30 * 20 * 0.1 * 8) and not found.exact


def test_stated_statistics_stand_for_data_too():
    array = np.zeros((30, 20))
    array[3, 4] = 1.0
    found = program(A=array).estimate(Estimator(assumptions=Assumptions.parse(["A.stored=60"])))
    assert found.operators["mul"] == pytest.approx(60 * 8)


def test_a_directory_is_enough(tmp_path: Path):
    """Reshapes between regions and regions that repeat are in it, the tensors are not."""
    made = compiled("gpt", "full")
    made.save(tmp_path / "out")
    saved = load_saved(tmp_path / "out")
    given = Assumptions.parse(["M.density=0.5"])
    found = Estimator(assumptions=given).estimate(saved.regions, saved.source.program, {}, made.machine)
    assert found.to_json()["regions"] == made.estimate(Estimator(assumptions=given)).to_json()["regions"]
    with pytest.raises(FuseFlowError, match="no directory of a compiled program"):
        load_saved(tmp_path)
    (tmp_path / "out" / "about.json").write_text("{}")
    with pytest.raises(FuseFlowError, match="not what `fuseflow compile` writes"):
        load_saved(tmp_path / "out")
