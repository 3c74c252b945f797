"""Reuse buffers that a search within a budget chooses: what has them, how large they are, and that they have room."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from fuseflow.autoscheduler.budget.buffers import (
    BufferChoice,
    BufferSizes,
    BufferVariants,
    ScratchpadCandidates,
    most_preload_ports,
)
from fuseflow.autoscheduler.budget.costs import LoweredCosts
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.autoscheduler.budget.path_search import BudgetSearch, Variant
from fuseflow.autoscheduler.budget.program_variants import VariantFactory
from fuseflow.autoscheduler.budget.range_costs import RangeCosts
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.scheduler import budget_schedule
from fuseflow.compiler import compile_source
from fuseflow.einsum.parse import parse
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.imported_program import Source
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine
from fuseflow.tensors import Format, pack

RDA, IDEAL = load_machine("rda"), load_machine("ideal")
WHOLE = 128 * 32 * 4
"""The bytes of W."""
PROGRAM = """
program p
tensor X[160, 128] csr
tensor W[128, 32] dense
T[i, f] = sum(k) X[i, k] * W[k, f]
Y[i, f] = relu(T[i, f])
output Y
"""


def source_of(program: str = PROGRAM, share: float = 0.2) -> Source:
    rng = np.random.default_rng(0)
    arrays = {"X": rng.normal(size=(160, 128)) * (rng.random((160, 128)) < share), "W": rng.normal(size=(128, 32))}
    formats = {"X": "csr", "W": "dense"}
    return Source("p", parse(program), {name: pack(arrays[name], Format.parse(formats[name], 2)) for name in arrays})


def chosen(schedule: Schedule, budget: str = "mul=64", machine: Machine = RDA, source: Source | None = None) -> BufferSizes:
    source = source or source_of()
    compiled, estimator = compile_source(source, schedule, machine), Estimator(assume_unknown=True)
    return BufferChoice(compiled, estimator, Budget.parse(budget)).of_least_traffic()


@pytest.mark.parametrize(
    ("format", "order", "least", "most"),
    [
        pytest.param("csr", "ikf", WHOLE, WHOLE, id="each row of X chooses rows of W anew"),
        pytest.param("csc", "kif", 128, 256, id="a row of W is read again one after the other"),
    ],
)
def test_a_buffer_holds_what_is_read_again_and_no_more(format: str, order: str, least: int, most: int) -> None:
    schedule = Schedule.fuse("none").format("X", format).order("T", tuple(order))
    assert least <= chosen(schedule)["W"] <= most


def test_what_is_read_once_has_none_and_a_memory_that_answers_at_once_needs_none() -> None:
    assert set(chosen(Schedule.fuse("none"))) == {"W"}
    assert not chosen(Schedule.fuse("none"), machine=IDEAL)


def test_buffers_have_room_in_the_budget_in_all_lanes_together() -> None:
    lanes = Schedule.fuse("none").par(**{"T.i": 4})
    assert chosen(lanes, f"buffer={4 * WHOLE}") == {"W": WHOLE}
    less = chosen(lanes, f"buffer={4 * WHOLE - 1}")
    assert less.get("W", 0) < WHOLE


def test_buffers_of_the_schedule_stay() -> None:
    assert "W" not in chosen(Schedule.fuse("none").buffer("W", 128))


@pytest.mark.parametrize(("lever", "other"), [("buffers", "preloads"), ("preloads", "buffers")])
def test_a_search_takes_them_where_they_are_allowed_and_computes_the_same(lever: str, other: str) -> None:
    source, budget, vectors = source_of(), Budget.parse("mul=128,buffer=64KB"), Schedule().block("W", 1, 32)
    if lever == "preloads":
        vectors = vectors.lower(writers="lanes")
    plain = budget_schedule(source, vectors, RDA, BudgetRequest(budget, top=1))
    choice = budget_schedule(source, vectors, RDA, BudgetRequest(budget, allow=frozenset({lever}), top=1))
    assert not getattr(plain.schedule, lever)
    assert set(dict(getattr(choice.schedule, lever))) == {"W"} and not getattr(choice.schedule, other)
    assert choice.chosen.cycles is not None and plain.chosen.cycles is not None
    assert choice.chosen.cycles < plain.chosen.cycles
    assert choice.chosen.resources.buffer <= 64 * 1024
    assert next(one.without for one in choice.levers if one.name == lever) > choice.chosen.estimate
    assert choice.unfused is not None and not getattr(choice.unfused.schedule, lever)
    run = compile_source(source, choice.schedule, RDA).run()
    assert run.check is not None and run.check.passed


def preloads(schedule: Schedule, ports: int, budget: str = "mul=64", machine: Machine = RDA) -> BufferSizes:
    source = source_of()
    compiled, estimator = compile_source(source, schedule, machine), Estimator(assume_unknown=True)
    choice = BufferChoice(compiled, estimator, Budget.parse(budget))
    return choice.preloads(ports)


def test_dense_operands_that_are_looked_up_are_preloaded_if_they_have_room() -> None:
    unfused = Schedule.fuse("none")
    assert preloads(unfused, 8) == {"W": 8}
    assert not preloads(unfused, 8, machine=IDEAL)
    assert not preloads(unfused, 8, budget=f"buffer={WHOLE - 1}")
    assert not preloads(unfused.format("W", "csr"), 8)
    assert not preloads(unfused.preload("W", 2), 8) and not preloads(unfused.buffer("W", 128), 8)


def test_a_small_input_is_preloaded_by_no_more_ports_than_it_has_lines() -> None:
    """W of 4 KB has 64 lines."""
    source = source_of(PROGRAM.replace("[128, 32]", "[128, 8]"))
    source.tensors["W"] = pack(np.ones((128, 8)), Format.parse("dense", 2))
    schedule = Schedule.fuse("none").format("X", "dense")
    choice = BufferChoice(compile_source(source, schedule, RDA), Estimator(assume_unknown=True), Budget({}))
    assert choice.preloads(16)["W"] == 16 and choice.preloads(128)["W"] == 64


@pytest.mark.parametrize(
    ("memory", "most"),
    [("hbm2", (8, 16)), ("ddr4-3200", (2, 4)), ("hbm4-8000", (64, 128)), ("comal_fixed", (8, 16)), ("fixed", (8, 16))],
)
def test_preloads_have_ports_for_the_lines_that_the_memory_moves(memory: str, most: tuple[int, ...]) -> None:
    """HBM2 moves 4 lines in a cycle of the machine, one module of DDR4 with two channels 0.8, and HBM4 32."""
    assert most_preload_ports(load_machine("rda", {"memory": memory})) == most
    assert max(most_preload_ports(load_machine("rda", {"memory": "hbm4-8000", "clock_ghz": 0.01}))) == 1024


def test_preloads_of_what_a_program_reads_once_are_left_out() -> None:
    """T is written, and read once. W is looked up. What the user preloads stays."""
    source, base = source_of(), Schedule.fuse("none").format("T", "dense")
    preloaded = base.preload("T", 8).preload("W", 8)
    for stated, kept in ((base, (("W", 8),)), (base.preload("T", 8), (("T", 8), ("W", 8)))):
        published, variant = variant_of(source, stated, stated), variant_of(source, preloaded, stated)
        search = BudgetSearch((variant,), RangeCosts(LoweredCosts(RDA, variant.graph.figures.estimator), tried=1))
        programs = search.cheapest(Budget.parse("mul=2"), 2).programs
        program = next(p for p in programs if len(p.decisions) == 2)
        assert dict(program.schedule.preloads) == {"T": 8, "W": 8}
        factory = VariantFactory(source, RDA, Estimator(assume_unknown=True), stated)
        assert BufferVariants(factory, published, Budget({})).preloads_of_use(program.schedule).preloads == kept


def test_what_runs_of_rows_look_up_stays_preloaded() -> None:
    """T is written in runs of 40 rows, as a view that the user does not name, and looked up."""
    text = PROGRAM.replace("Y[i, f] = relu(T[i, f])", "Y[j, f] = sum(i) A[j, i] * T[i, f]").replace(
        "T[i, f]", "tensor A[160, 160] csr\nT[i, f]", 1
    )
    source = source_of(text)
    rng = np.random.default_rng(1)
    source.tensors["A"] = pack(np.where(rng.random((160, 160)) < 0.1, 1.0, 0.0), Format.parse("csr", 2))
    plain = Schedule.fuse("none").format("T", "dense").preload("T", 8).preload("W", 8).order("T", "i,k,f").order("Y", "j,i,f")
    runs = plain.order("T", "i0,i1,k,f").split("T.i", 40).par(**{"T.i0": 4})
    published = variant_of(source, Schedule.fuse("none"))
    variants = BufferVariants(
        VariantFactory(source, RDA, Estimator(assume_unknown=True), Schedule.fuse("none")), published, Budget({})
    )
    for schedule in (plain, runs):
        assert variants.preloads_of_use(schedule) == schedule


def test_a_buffer_of_what_is_passed_on_inside_of_a_region_is_left_out() -> None:
    """Buffers are those of a variant, in which T may be stored or not."""
    source = source_of()
    variant = variant_of(source, Schedule.fuse("none").buffer("T", 64).buffer("W", 64))
    search = BudgetSearch((variant,), RangeCosts(LoweredCosts(RDA, variant.graph.figures.estimator), tried=1))
    programs = search.cheapest(Budget.parse("mul=2"), 2).programs
    stored = {len(program.decisions): set(dict(program.schedule.buffers)) for program in programs}
    assert stored == {1: {"W"}, 2: {"T", "W"}}
    for program in programs:
        compile_source(source, program.schedule, RDA)  # which refuses a buffer without an effect


@pytest.mark.parametrize("primitives", ["own", "public"])
def test_a_candidate_in_lanes_has_the_buffers_of_the_schedule(primitives: Literal["own", "public"]) -> None:
    source, base = source_of(), Schedule.fuse("none").buffer("W", WHOLE).lower(primitives=primitives)
    variant = variant_of(source, base)
    edge = next(edge for edge in variant.graph.edges(variant.graph.start) if edge.is_single)
    decision = RegionDecision(edge.order, (("i", 4),))
    cost = LoweredCosts(RDA, variant.graph.figures.estimator)(edge, decision)
    compiled = compile_source(source, decision.scheduled(base, edge.name), RDA)
    (expected, _) = compiled.estimate(Estimator(assume_unknown=True)).regions
    assert cost is not None
    assert cost.resources == expected.resources
    assert cost.resources.buffer == 4 * WHOLE
    assert cost.cycles == pytest.approx(expected.bound.cycles)


def variant_of(source: Source, base: Schedule, published: Schedule | None = None) -> Variant:
    """Return the program with buffers that its user did not give it."""
    published = published or Schedule.fuse("none")
    variant = VariantFactory(source, RDA, Estimator(assume_unknown=True), published, orders=1)(base)
    assert variant is not None
    return variant


ORDER = Schedule.fuse("none").order("T", "i,k,f")


def machine(size: int) -> Machine:
    return load_machine("rda", {"scratchpad": size})


def options(size: int, buffer: float = float("inf")) -> list[tuple[str, dict[str, str], dict[str, int]]]:
    compiled = compile_source(source_of(), ORDER, machine(size))
    found = ScratchpadCandidates.of(compiled, compiled.estimate(), buffer).options()
    return [(how, dict(schedule.memories), dict(schedule.tiles)) for how, schedule in found]


def test_what_is_read_again_and_again_is_placed_where_it_fits() -> None:
    assert options(WHOLE) == [("in the scratchpad", {"W": "scratchpad"}, {})]


def test_what_does_not_fit_is_tiled_with_two_tiles_in_the_scratchpad() -> None:
    assert options(WHOLE // 2) == [("W in tiles of f", {"W": "scratchpad"}, {"T.f": 8})]


@pytest.mark.parametrize(("size", "buffer"), [(64, float("inf")), (WHOLE, 64)])
def test_nothing_is_placed_without_room(size: int, buffer: float) -> None:
    assert not options(size, buffer)


@pytest.mark.parametrize("size", [WHOLE, WHOLE // 2])
def test_a_search_is_never_slower_with_places(size: int) -> None:
    source, at, vectors = source_of(), machine(size), Schedule().block("W", 1, 32)
    budget = Budget.parse("mul=64,buffer=64KB")
    plain = budget_schedule(source, vectors, at, BudgetRequest(budget, top=1))
    choice = budget_schedule(source, vectors, at, BudgetRequest(budget, allow=frozenset({"places"}), top=1))
    assert not plain.schedule.memories
    assert choice.chosen.cycles is not None and plain.chosen.cycles is not None
    assert choice.chosen.cycles <= plain.chosen.cycles
    if size == WHOLE:
        assert dict(choice.schedule.memories) == {"W": "scratchpad"}
    run = compile_source(source, choice.schedule, at).run()
    assert run.check is not None and run.check.passed and run.cycles == choice.chosen.cycles
