"""Sampled runs: all of the work is the exact run, values are checked, counts are exact, and nothing takes the place of an exact number."""

from __future__ import annotations

import json
from unittest.mock import patch

import numpy as np
import pytest
from structured_programs import structured_program

import fuseflow as ff
from fuseflow.run import sampled
from fuseflow.run.sampled_result import SampledResult
from fuseflow.tensors import Tensor


def gcn(granularity: str) -> ff.Compiled:
    return ff.compile("models/paper/gcn.py", data="karate", schedule=ff.Schedule.fuse(granularity), machine="rda")


@pytest.mark.parametrize("granularity", ["none", "full"])
def test_all_of_the_work_is_the_exact_run(granularity: str) -> None:
    program = gcn(granularity)
    exact, whole = program.run(), program.run(sample=ff.Sample(fraction=1))
    assert all(region.sample is not None for region in whole.regions), "no region fell back to the exact run"
    assert [r.cycles.estimate for r in whole.regions] == [r.cycles for r in exact.regions]
    assert (whole.cycles.low, whole.cycles.high) == (exact.cycles, exact.cycles)
    assert (whole.flops, whole.bytes("read"), whole.bytes("write")) == (
        exact.flops,
        exact.stats["bytes"]["read"],
        exact.stats["bytes"]["write"],
    )
    assert whole.firings == sum(r.times * r.simulation.firings for r in exact.regions) and whole.counted
    assert whole.check is not None and whole.check.passed and whole.rows_check.passed
    for name, tensor in exact.tensors.items():
        assert whole.tensors[name].format == tensor.format and np.array_equal(
            whole.tensors[name].coordinates(), tensor.coordinates()
        )


def sampled_run(seed: int) -> SampledResult:
    return structured_program(2).compiled.run(sample=ff.Sample(error=0.05, shortest=2000, seed=seed), engine="fast")


@pytest.fixture(scope="module")
def sampled_once() -> SampledResult:
    return sampled_run(1)


def test_seeds_reproduce(sampled_once: SampledResult) -> None:
    one, again, other = (result.to_dict() for result in (sampled_once, sampled_run(1), sampled_run(2)))
    for values in (one, again, other):
        del values["seconds"]
    assert one == again and one["regions"][0]["sample"]["taken"] > 0
    assert one["sample"] != other["sample"]


def test_a_wrong_value_of_a_sampled_row_is_found() -> None:
    interpret = sampled.interpret_results

    def wrong(*args: object) -> dict[str, Tensor]:
        results = interpret(*args)  # type: ignore[arg-type]
        for tensor in results.values():
            tensor.values[...] = tensor.values * 1.01
        return results

    with patch.object(sampled, "interpret_results", wrong):
        result = gcn("full").run(sample=ff.Sample(fraction=1), check=False)
    assert not result.rows_check.passed and result.rows_check.max_rel_error > 0.005


def without_outputs(program: ff.Compiled, seed: int = 1) -> SampledResult:
    sample = ff.Sample(error=0.05, shortest=2000, seed=seed)
    return program.run(sample=sample, engine="fast", check=False, outputs=False)


def test_without_outputs_the_sampled_rows_are_compared_and_the_rest_is_the_same(sampled_once: SampledResult) -> None:
    program = structured_program(2).compiled
    with patch.object(sampled, "interpret_results", side_effect=AssertionError("all values were computed")):
        result = without_outputs(program)
    assert result.rows_check.passed and result.rows_check.worst and not result.tensors
    whole = sampled_once
    assert whole.rows_check.passed and set(whole.tensors) == set(program.program.outputs)
    assert (result.cycles, result.flops, result.firings) == (whole.cycles, whole.flops, whole.firings)


def test_a_wrong_value_is_found_without_outputs() -> None:
    interpret = sampled.interpret_rows

    def wrong(*args: object) -> dict[str, np.ndarray]:
        return {name: np.concatenate((rows[1:], rows[:1])) for name, rows in interpret(*args).items()}  # type: ignore[arg-type]

    with patch.object(sampled, "interpret_rows", wrong):
        assert not without_outputs(structured_program(2).compiled).rows_check.passed


@pytest.mark.parametrize("granularity", ["none", "full"])
def test_programs_are_compared_without_outputs(granularity: str) -> None:
    """Intermediates are computed; and in full fusion the graph is read in two ways, restricted and whole."""
    program = gcn(granularity)
    result = program.run(sample=ff.Sample(fraction=1), check=False, outputs=False)
    assert result.rows_check.passed and not result.tensors and result.cycles.estimate == program.run(check=False).cycles


def test_no_outputs_is_a_question_of_a_sample() -> None:
    program = gcn("full")
    with pytest.raises(ff.FuseFlowError, match="without outputs cannot check"):
        program.run(sample=ff.Sample(fraction=1), outputs=False)
    with pytest.raises(ff.FuseFlowError, match="always has its outputs"):
        program.run(outputs=False)  # type: ignore[call-overload]


def test_json_has_no_key_of_an_exact_number() -> None:
    values = json.loads(json.dumps(gcn("full").run(sample=ff.Sample(fraction=1)).to_dict()))
    assert values["kind"] == "sampled" and "cycles" not in values and "cycles" not in values["regions"][0]
