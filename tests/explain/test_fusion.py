"""The explanation of fusion: what is fused and why, and whether what is not fused could be."""

from __future__ import annotations

import pytest

from fuseflow.einsum.parse import parse
from fuseflow.explain.fusion import FusionDecision, FusionReport, explain_fusion
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine

SOFTMAX = """
    tensor A[4, 4] csr
    tensor X[4, 5] dense
    T[i, j] = sum(k) A[i, k] * X[k, j]
    m[i]    = max(j) T[i, j]
    E[i, j] = exp(T[i, j] - m[i])
    Y[i, j] = E[i, j] / (sum(k) E[i, k])
    output Y
"""
BOTH_WAYS = """
    tensor A[4, 4] csr
    tensor P[4, 4] dense
    P[i, j] = exp(A[i, j])
    Y[i, j] = P[i, j] * A[j, i]
    output Y
"""


def report(text: str, schedule: Schedule) -> FusionReport:
    """Return the report of a program without data, whose statistics are assumed."""
    return explain_fusion(load(ModelSpec(parse(text))), schedule, load_machine("ideal"))


def pair(fusion_report: FusionReport, producer: str, consumer: str) -> FusionDecision:
    return next(p for p in fusion_report.decisions if (p.producer, p.consumer) == (producer, consumer))


def test_every_pair_is_listed_in_program_order():
    fusion_report = report(SOFTMAX, Schedule.fuse("full"))
    assert [(p.producer, p.consumer) for p in fusion_report.decisions] == [("T", "m"), ("T", "E"), ("m", "E"), ("E", "Y")]
    assert all(p.fused and p.regions == ("full", "full") and not p.refusal for p in fusion_report.decisions)


def test_pairs_in_blocks():
    fusion_report = report(SOFTMAX, Schedule.fuse("none").block("A", 2, 2))
    assert [p.fused for p in fusion_report.decisions] == [False, False, True, True]
    assert not any(p.refusal for p in fusion_report.decisions)
    plain, tiles = (
        next(p for p in r.producers if p.name == "T") for r in (report(SOFTMAX, Schedule.fuse("none")), fusion_report)
    )
    assert (plain.entries, tiles.entries) == (20, 10) and plain.written == tiles.written  # ten tiles of two


def test_pairs_that_are_cut_can_be_fused():
    fusion_report = report(SOFTMAX, Schedule.fuse("none"))
    assert [p.fused for p in fusion_report.decisions] == [False, False, True, True]
    assert pair(fusion_report, "T", "m").why == "`none` runs every Einsum alone"
    assert not pair(fusion_report, "T", "m").refusal


def test_pairs_that_cannot_be_fused_have_a_reason():
    (decision,) = report(BOTH_WAYS, Schedule(copies=False, fuse_regions=("none",))).decisions
    assert not decision.fused and "has no legal order: it needs" in decision.refusal


def test_copies_let_them_be_fused():
    (decision,) = report(BOTH_WAYS, Schedule.fuse("none")).decisions
    assert not decision.fused and not decision.refusal


def test_a_detour_is_a_reason():
    text = """
        tensor A[4] dense
        P[i] = exp(A[i])
        Q[i] = relu(P[i])
        R[i] = Q[i] + P[i]
        output R
    """
    fusion_report = report(text, Schedule.region("ends", "P").region("middle", "Q").fuse("ends", "middle"))
    detour = pair(fusion_report, "P", "R")
    assert detour.refusal == "one region of `ends` and `R` would be left and entered again: `middle` lies between them"
    assert not pair(fusion_report, "P", "Q").refusal


def test_what_storing_would_mean():
    """T has 4 x 5 values of 4 bytes: written once, read back by m and by E."""
    fusion_report = report(SOFTMAX, Schedule.fuse("full"))
    rows = {row.name: row for row in fusion_report.producers}
    assert list(rows) == ["T", "m", "E"]
    assert (rows["T"].entries, rows["T"].written, rows["T"].read) == pytest.approx((20, 80, 160))
    assert (rows["m"].entries, rows["m"].written) == pytest.approx((4, 16))
    assert not any(row.stored for row in fusion_report.producers)


def test_what_is_stored_says_so():
    stored = {row.name: row.stored for row in report(SOFTMAX, Schedule.fuse("none")).producers}
    assert stored == {"T": True, "m": False, "E": False}


def test_storing_saves_the_work_of_all_but_the_first_time():
    text = """
        tensor A[4, 4] dense
        tensor X[4, 5] dense
        tensor W[5, 2] dense
        T[k, h] = sum(f) X[k, f] * W[f, h]
        Y[i, h] = sum(k) A[i, k] * T[k, h]
        output Y
    """
    fusion_report = report(text, Schedule.fuse("full").order("full", "i,k,f,h"))
    (row,) = fusion_report.producers
    assert row.times == pytest.approx(4) and row.instances[0].inside == ("i",)
    assert row.flops == pytest.approx(2 * 4 * 5 * 2) and row.extra_flops == pytest.approx(3 * row.flops)


def test_an_einsum_that_is_another_name_has_no_recomputation():
    text = "tensor A[3, 3] dense\nT[i, j] = A[j, i]\nY[i, j] = T[i, j] + 1\noutput Y\n"
    (row,) = report(text, Schedule.fuse("full")).producers
    assert row.times is None and row.instances == () and row.extra_flops == 0


def test_a_global_iteration_has_no_producers():
    text = """
        tensor A[4, 4] csr
        tensor B[4, 4] dense
        tensor C[4, 4] dense
        T[i, j] = sum(k) A[i, k] * B[k, j]
        Y[i, l] = sum(j) T[i, j] * C[j, l]
        output Y
    """
    (row,) = report(text, Schedule(fuse_regions=("full",), iteration="global")).producers
    assert row.times is None


def test_a_result_that_an_output_only_names_again_is_no_producer() -> None:
    text = """
    tensor A[2, 4, 4] coo
    tensor T[8] dense
    T[k*4 + r] = sum(p) A[k, r, p]
    Y[p, i] = T[i*4 + p]
    output Y
    """
    report = explain_fusion(Source("example", parse(text)), Schedule.fuse("full"), load_machine("ideal"))
    assert [(d.producer, d.consumer, d.fused) for d in report.decisions] == [("T", "Y", False)]
    assert report.producers == ()


def test_a_consumer_may_read_a_copy_of_its_producer() -> None:
    text = """
    tensor A[4, 4] csr
    T[i, j] = A[i, j] * 2
    Y[i, j] = T[i, j] + T[j, i]
    output Y
    """
    (producer,) = explain_fusion(Source("example", parse(text)), Schedule.fuse("full"), load_machine("ideal")).producers
    assert producer.name == "T" and producer.read > producer.written > 0


def test_decisions_on_einsums_that_nothing_needs() -> None:
    text = """
    tensor A[3, 4]
    tensor B[2]
    Y[p] = B[p] + 1
    U[p, q, i] = A[i, p*2 + q] * Y[p]
    output Y
    """
    report = explain_fusion(Source("example", parse(text)), Schedule.fuse("none"), load_machine("ideal"))
    assert [(d.producer, d.consumer, d.fused) for d in report.decisions] == [("Y", "U", False)]


def test_regions_that_nobody_named_are_those_of_the_chosen_cut() -> None:
    whole = Schedule.region("whole", "T", "m", "E", "Y").fuse("whole")
    assert "region `whole` of the schedule" in report(SOFTMAX, whole).decisions[0].why
    source, machine = load(ModelSpec(parse(SOFTMAX))), load_machine("ideal")
    assert "region `whole` of the chosen cut" in explain_fusion(source, whole, machine, Schedule()).decisions[0].why


TRAINING = """
    tensor X[8, 4] dense
    tensor W[4, 6] dense
    tensor V[6, 3] dense
    H[i, j] = relu(sum(k) X[i, k] * W[k, j])  @forward
    Y[i, m] = sum(j) H[i, j] * V[j, m]  @forward
    dV[j, m] = sum(i) H[i, j] * Y[i, m]  @backward
    output Y, dV
"""


def test_both_prices_of_what_a_later_region_reads():
    stored = report(TRAINING, Schedule.fuse("layerwise"))
    again = report(TRAINING, Schedule.fuse("layerwise").recompute("H"))
    (kept,), (computed,) = stored.recomputes, again.recomputes
    assert (kept.name, kept.regions, kept.chosen, computed.chosen) == ("H", ("backward",), False, True)
    assert (kept.stored, kept.again) == (computed.stored, computed.again)
    assert kept.stored is not None and kept.stored.live_bytes == 8 * 6 * 4
    assert kept.again is not None and kept.again.live_bytes == 0 and kept.again.bytes != kept.stored.bytes


def test_a_copy_is_fused_where_it_is_read():
    fusion_report = report(TRAINING, Schedule.fuse("layerwise").recompute("H"))
    decision = pair(fusion_report, "H", "dV")
    assert decision.fused and decision.why == "the schedule computes `H` again in `backward`, as `H.again`"
    assert {p.name: p.stored for p in fusion_report.producers} == {"H": False, "H.again": False, "Y": True}


def test_what_would_compare_sums_has_no_price():
    text = """
        tensor X[6, 4] dense
        tensor W[4, 5] dense
        S[i, j] = sum(k) X[i, k] * W[k, j]  @scores
        m[i] = max(j) S[i, j]  @scores
        Y[i, j] = where(S[i, j] == m[i], 1, 0)  @chosen
        output Y
    """
    prices = {row.name: row for row in report(text, Schedule.fuse("layerwise")).recomputes}
    assert prices["S"].again is None and "differ in rounding" in prices["S"].refusal
