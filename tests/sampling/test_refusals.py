"""What cannot be sampled is refused in the user's words, and a malformed sample too."""

from __future__ import annotations

import numpy as np
import pytest
from memories import without_refresh

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import SamplingError, UsageError
from fuseflow.sampling.restriction import refusal
from fuseflow.sampling.sample_request import parse_sample

RDA = without_refresh()
PRODUCT = "tensor A[40, 40] csc\ntensor X[40, 30] csr\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y"


def product(schedule: ff.Schedule | None = None, machine: str | ff.Machine = RDA, format: str = "csc") -> ff.Compiled:
    rng = np.random.default_rng(0)
    tensors = {"A": rng.random((40, 40)) * (rng.random((40, 40)) < 0.3), "X": rng.random((40, 30)) * (rng.random((40, 30)) < 0.3)}
    return ff.compile(parse(PRODUCT.replace("csc", format)), tensors=tensors, schedule=schedule, machine=machine)


def test_a_reduced_outermost_index_is_named() -> None:
    compiled = product(ff.Schedule().order("Y", ("k", "i", "j")))
    why = refusal(compiled.regions[-1])
    assert why is not None and "reduces `k`, the outermost index of its order k,i,j" in why


def test_a_long_region_that_cannot_be_sampled_is_refused() -> None:
    compiled = product(ff.Schedule().order("Y", ("k", "i", "j")))
    with pytest.raises(SamplingError, match="region `Y` cannot be sampled: it reduces `k`"):
        compiled.run(sample=ff.Sample(error=0.01, shortest=10))
    assert isinstance(compiled.run(sample=ff.Sample(error=0.01)).regions[0].cycles, int)  # it is short: it is run as it is


def test_a_long_region_that_compares_all_entries_is_refused() -> None:
    program = parse("tensor A[900, 60] csr\nH[i, j] = keep(100 over i, j) A[i, j]\noutput H")
    compiled = ff.compile(program, tensors={"A": np.random.default_rng(0).random((900, 60))}, machine=RDA)
    with pytest.raises(SamplingError, match="region `H` cannot be sampled: it keeps entries along `i`, the outermost index"):
        compiled.run(sample=ff.Sample(error=0.01, shortest=10))


def test_lanes_of_the_outermost_index_are_refused() -> None:
    compiled = product(ff.Schedule().order("Y", ("i", "k", "j")).par(i=2), format="csr")
    with pytest.raises(SamplingError, match="deals `i`, the outermost index of its order, over 2 lanes"):
        compiled.run(sample=ff.Sample(error=0.01, shortest=10))
    assert compiled.run(sample=ff.Sample(fraction=1)).cycles.estimate == compiled.run().cycles


def test_unbounded_fifos_are_refused() -> None:
    with pytest.raises(SamplingError, match="FIFOs of machine `comal` are unbounded"):
        product(machine="comal").run(sample=ff.Sample(error=0.01))


def test_stand_ins_are_refused() -> None:
    schedule = ff.Schedule.from_yaml("fuse: [none]\nintermediates: dense\n")
    with pytest.raises(SamplingError, match="dense stand-ins"):
        product(schedule).run(sample=ff.Sample(error=0.01))


@pytest.mark.parametrize(
    "text", ["", "x", "error", "0%", "150%", "error=100%", "error=1%,error=2%", "1%,error=1%", "2%,seed=1.5", "nan", "inf", "-1%"]
)
def test_malformed_samples_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_sample(text)


def test_samples_are_read() -> None:
    assert parse_sample("2%") == ff.Sample(fraction=0.02) == parse_sample("0.02")
    assert parse_sample("error=1%, confidence=99%, seed=3") == ff.Sample(error=0.01, confidence=0.99, seed=3)
