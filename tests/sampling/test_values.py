"""Values of a sampled region: they are interpreted piece by piece, and stored as the region stores them."""

from __future__ import annotations

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import SamplingError
from fuseflow.run.sampled_result import SampledResult
from fuseflow.tensors.restriction import concatenate

LAYERS = """
tensor A[90, 90] {format}
tensor X[90, 12] {format}
tensor W[12, 7] {format}
T[i, j] = sum(k) A[i, k] * X[k, j]
Y[i, j] = relu(sum(k) T[i, k] * W[k, j])
output T
output Y
"""


def layers(format: str, drop: bool = False) -> ff.Compiled:
    rng = np.random.default_rng(3)
    shapes = {"A": (90, 90), "X": (90, 12), "W": (12, 7)}
    tensors = {name: rng.standard_normal(shape) * (rng.random(shape) < 0.2) for name, shape in shapes.items()}
    schedule = ff.Schedule.from_yaml("fuse: none\n" + ("drop_zeros: [Y]\n" if drop else ""))
    return ff.compile(parse(LAYERS.format(format=format)), tensors=tensors, schedule=schedule, machine="rda")


def sampled(program: ff.Compiled) -> SampledResult:
    return program.run(sample=ff.Sample(fraction=1), check=True)


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("format", ["csr", "dense", "(compressed, compressed)", "(compressed, dense)"])
def test_pieces_make_the_results(format: str, drop: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if drop and format == "dense":
        format = "(dense, compressed)"
    whole, calls = sampled(layers(format, drop)), []
    monkeypatch.setattr("fuseflow.sampling.values.PIECE_ELEMENTS", 100)
    monkeypatch.setattr("fuseflow.sampling.values.concatenate", lambda parts: calls.append(len(parts)) or concatenate(parts))
    pieces = sampled(layers(format, drop))
    assert calls and min(calls) > 1, "every region was interpreted in several pieces"
    assert pieces.check is not None and pieces.check.passed and pieces.rows_check.passed
    for name, tensor in whole.tensors.items():
        other = pieces.tensors[name]
        assert (other.shape, other.format) == (tensor.shape, tensor.format)
        assert np.array_equal(other.coordinates(), tensor.coordinates())
        np.testing.assert_allclose(other.values, tensor.values, rtol=1e-6)


def test_what_a_keep_stores_is_not_known_before() -> None:
    rng = np.random.default_rng(0)
    program = parse("tensor A[400, 60] csr\nH[i, j] = keep(2 of 4 over j) A[i, j]\noutput H")
    A = rng.standard_normal((400, 60)) * (rng.random((400, 60)) < 0.3)
    compiled = ff.compile(program, tensors={"A": A}, machine="rda")
    with pytest.raises(SamplingError, match=r"where the result `H` of region `H` is stored.*`H` keeps entries by their values"):
        compiled.run(sample=ff.Sample(fraction=1))
    exact = compiled.run()
    rows = compiled.run(sample=ff.Sample(fraction=1), check=False, outputs=False)  # no value but those of the rows is wanted
    assert rows.cycles.estimate == exact.cycles and rows.rows_check.passed


def test_a_repeated_region_without_a_loop_is_interpreted() -> None:
    """It has no index to sample, so it is one piece."""
    program = parse("tensor a[]\ntensor b[]\ns = a * b\nt = a * b\nu = s + t\noutput u")
    tensors = {"a": np.array(2.0), "b": np.array(3.0)}
    compiled = ff.compile(program, tensors=tensors, schedule=ff.Schedule.fuse("none"), machine="rda")
    result = compiled.run(sample=ff.Sample(fraction=0.5))
    assert result.tensors["u"].to_dense() == 12 and any(region.repeats for region in result.regions)
