"""Statistics that a user states."""

from __future__ import annotations

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.costs import TensorStatistics
from fuseflow.costs.stream_shapes import LookupRate
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError
from fuseflow.estimate import Assumptions, CountMemo
from fuseflow.estimate.counted.patterns import tensor_pattern
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.stated_statistics import measure_lookup_rate, power_law
from fuseflow.tensors import Format, pack

PROGRAM = parse(
    "tensor A[100, 50] csr\ntensor B[100, 50] csf\ntensor x[50] dense\ny[i] = sum(j) A[i, j] * B[i, j] * x[j]\noutput y"
)


def statistics(spec: str, tensor: str = "A") -> TensorStatistics | None:
    given = Assumptions.parse([spec])
    given.check(PROGRAM)
    return given.statistics(PROGRAM.declared[tensor])


def test_density_and_stored_say_the_same():
    assert statistics("A.density=0.01") == statistics("A.stored=50") == TensorStatistics((100, 50), (100.0, 0.5))
    assert statistics("A.density=0.01", "B") is None


def test_rows_that_are_stored_at_all():
    stated = statistics("B.density=0.02", "B")
    assert stated is not None
    assert stated.fanouts[0] == pytest.approx(100 * (1 - 0.98**50)) and stated.stored == pytest.approx(100)
    assert statistics("B.stored=100,degree=regular", "B") == TensorStatistics((100, 50), (100.0, 1.0))


def test_listed_degrees(tmp_path):
    path = tmp_path / "degrees"
    path.write_text("0 4 " + "1 " * 98)
    assumptions = Assumptions.parse([f"B.degree=@{path}"])
    assert assumptions.statistics(PROGRAM.declared["B"]) == TensorStatistics((100, 50), (99.0, 102 / 99))
    rate = assumptions.overlap({}, CountMemo()).lookup_rate(("B", 1), ("B", 1))
    assert rate == LookupRate(1.0, (16 + 98) / 102)


@pytest.mark.parametrize(("exponent", "mean"), [(2.1, 10), (2.5, 10), (3.5, 4), (2.3, 0.5), (2.5, 300)])
def test_a_power_law_has_the_mean_that_it_was_given(exponent: float, mean: float):
    degrees, rows = power_law(exponent, 10_000, 1_000, mean * 10_000)
    assert rows.sum() == pytest.approx(10_000) and degrees @ rows == pytest.approx(mean * 10_000, rel=1e-3)
    assert (rows >= 0).all() and degrees.max() <= 1_000


def test_steeper_laws_have_fewer_neighbours_of_neighbours():
    def neighbours(exponent: float) -> float:
        degrees, rows = power_law(exponent, 100_000, 100_000, 1_000_000)
        return float(degrees**2 @ rows) / 1_000_000

    assert neighbours(2.2) > neighbours(2.6) > neighbours(3.2) > 10


def test_pairs_are_measured_over_what_is_stored():
    """Column 0 is stored twice, column 2 once; row 0 stores two entries, row 2 none."""
    a = tensor_pattern(pack([[1, 0, 1], [1, 0, 0], [0, 0, 0]], Format.parse("dcsr", 2)))
    assert measure_lookup_rate(a, 1, a) == LookupRate(2 / 3, 2.0)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("A.density=2", "from 0 to 1"),
        ("A.density=x", "from 0 to 1"),
        ("A.density=nan", "from 0 to 1"),
        ("A.stored=-1", "of 0 or more"),
        ("A.stored=1e9", "room for 5,000 entries"),
        ("A.dense=1", "no statistic `dense`"),
        ("density=1", "names no tensor"),
        ("A", "not KEY=VALUE"),
        ("A.density=0.1,density=0.2", "given twice"),
        ("A.density=0.1,stored=3", "says twice"),
        ("A.degree=uniform", "does not say how much"),
        ("A.density=0.1,degree=poisson", "no such distribution"),
        ("A.density=0.1,degree=powerlaw:0.5", "above 1"),
        ("A.density=0.9,degree=powerlaw:2.5", "no power law has 45 of 50"),
        ("A.degree=@/no/such/file", "cannot read"),
        ("C.density=0.1", "no tensor `C`"),
        ("A&C=0.1", "no tensor `C`"),
        ("x.density=0.1", "stored dense"),
    ],
)
def test_refusals(spec: str, message: str):
    with pytest.raises(FuseFlowError) as refused:
        statistics(spec)
    assert message in refused.value.message


def test_too_few_degrees(tmp_path):
    (tmp_path / "degrees").write_text("1 2 3")
    with pytest.raises(FuseFlowError, match="100 rows"):
        statistics(f"A.degree=@{tmp_path / 'degrees'}")


def test_numbers_are_deterministic():
    assert np.array_equal(power_law(2.3, 1000, 1000, 5000)[1], power_law(2.3, 1000, 1000, 5000)[1])


KEPT = """
tensor A[64, 96] csr
tensor W[96, 4]  dense
H[i, j] = keep({rule}) A[i, j] * 2
Y[i, m] = sum(j) H[i, j] * W[j, m]
output Y
"""


@pytest.mark.parametrize("fuse", ["none", "full"])
@pytest.mark.parametrize("lanes", [1, 2])
def test_the_share_that_a_threshold_keeps(fuse: str, lanes: int):
    """Without it, a half is expected to stay, and a notice says so. With it, the product behind has the FLOPs of the run."""
    rng = np.random.default_rng(0)
    tensors = {"A": rng.standard_normal((64, 96)) * (rng.random((64, 96)) < 0.5), "W": rng.standard_normal((96, 4))}
    schedule = ff.Schedule.fuse(fuse)
    schedule = schedule.par(**{"full.i": lanes}) if fuse == "full" and lanes > 1 else schedule
    compiled = ff.compile(parse(KEPT.format(rule="threshold 2")), tensors=tensors, schedule=schedule)
    run = compiled.run()
    kept = np.count_nonzero(np.abs(2 * tensors["A"]) >= 2) / np.count_nonzero(tensors["A"])
    told = Estimator(assumptions=Assumptions.parse([f"H.kept={kept}"]))
    half = Estimator(assumptions=Assumptions.parse(["H.kept=0.5"]))
    assert compiled.estimate().flops == compiled.estimate(half).flops != pytest.approx(run.stats["flops"], rel=0.1)
    assert compiled.estimate().notices == (
        "half of the entries are expected to pass the threshold of `H`; `--stats H.kept=0.3` says better",
    )
    assert not compiled.estimate(told).notices
    assert compiled.estimate(told).flops == pytest.approx(run.stats["flops"], rel=0.02)
    assert not compiled.estimate(told).exact


def test_the_share_of_an_input_is_that_of_its_values():
    """Nothing is assumed of values that are known: two of six pass."""
    values = np.array([[1.0, 5.0, 0.0, 2.0], [9.0, 3.0, 0.0, 1.0]])
    program = parse("tensor A[2, 4] csr\nH[i, j] = keep(threshold 4) A[i, j]\nY[i, j] = H[i, j] * 2\noutput Y")
    estimates = [
        ff.compile(program, tensors={"A": values}, schedule=ff.Schedule.fuse("full")).estimate(e)
        for e in (Estimator(), Estimator(assumptions=Assumptions.parse([f"H.kept={2 / 6}"])), Estimator(statistics_only=True))
    ]
    assert estimates[0].flops == estimates[1].flops < estimates[2].flops
    assert not estimates[0].notices and estimates[2].notices


@pytest.mark.parametrize(("body", "share"), [("relu(A[i, j])", 0.5), ("-A[i, j]", 1.0)])
def test_a_keep_of_what_is_not_zero_leaves_half_of_a_relu_and_all_else(body: str, share: float):
    program = parse(f"tensor A[2, 4] csr\nH[i, j] = keep(nonzero) {body}\nY[i, j] = H[i, j] * 2\noutput Y")
    compiled = ff.compile(program, tensors={"A": -np.ones((2, 4))}, schedule=ff.Schedule.fuse("full"))
    estimate, told = compiled.estimate(), Estimator(assumptions=Assumptions.parse([f"H.kept={share}"]))
    assert not estimate.notices and not estimate.exact
    assert estimate.flops == compiled.estimate(told).flops


@pytest.mark.parametrize(
    ("rule", "spec", "message"),
    [
        ("threshold 2", "Y.kept=0.5", "the program has no `keep` of `Y`"),
        ("threshold 2", "A.kept=0.5", "the program has no `keep` of `A`"),
        ("2 of 4 over j", "H.kept=0.5", "follows from `keep(2 of 4 over j)`, and is counted"),
        ("threshold 2", "H.kept=2", "not a number from 0 to 1"),
        ("threshold 2", "H.density=0.5", "the program reads no tensor `H`"),
        ("threshold 2", "H.kept=0.5,density=0.1", "the program reads no tensor `H`"),
    ],
)
def test_shares_that_no_values_decide(rule: str, spec: str, message: str):
    with pytest.raises(FuseFlowError) as refused:
        Assumptions.parse([spec]).check(parse(KEPT.format(rule=rule)))
    assert message in refused.value.message
