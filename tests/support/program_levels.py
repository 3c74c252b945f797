"""A program at every level: PyTorch, the Einsum interpreter, the fused interpreter, the graph on the reference simulator and on the
engine. `check` raises `Difference` where two of them disagree, and `FuseFlowError` if the program is refused."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import random_graphs
import torch_oracle
from engines import LIMITS, differences, on_engine
from random_programs import Case

from fuseflow.einsum.blocks import guard_data, tensors_to_blocks, tensors_to_elements
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.einsum.selections import replace_affine
from fuseflow.errors import FuseFlowError, FusionError, GraphError, ScheduleError
from fuseflow.fusion import FusedRegion, fusion_search
from fuseflow.fusion.order_candidates import candidate_orders
from fuseflow.fusion.region_program import as_program
from fuseflow.lower.program import lower
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.reshape_views import TensorView
from fuseflow.samml import tokens
from fuseflow.samml.auxiliary_tensors import auxiliary_tensors
from fuseflow.samml.nodes import Graph
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine
from fuseflow.sim.outcome.output_tensors import assemble
from fuseflow.sim.outcome.statistics import Outcome
from fuseflow.sim.reference.execute import FiringLimitError, execute
from fuseflow.table import build_table
from fuseflow.tensors import Tensor

Arrays = Mapping[str, npt.NDArray[np.float64]]

REASONS = (
    "has no legal order",  # the constraints contradict each other, and no copy helps or is allowed
    "between two of its levels",  # an enclosed loop
    "nothing is left to compute",  # a constant
    "a tile has two dimensions at most",
    "since only dense levels come apart or together",  # a reshape of what is stored sparse
    "it is written in the parts of its dimensions, and seen whole",  # so its zeros are not dropped
    "with itself and would compute it twice",  # two sums of the same numbers, which rounding would make unequal
    "it ends a region",  # a reshape inside of a region of the user
)
"""Why a program may be refused. Anything else is a fault: a graph that does not verify, a diagonal that the program does not have."""
FIRINGS = 5_000_000
SECONDS = 20
ORDERS = 24
RELATIVE, BOUNDS = 1e-9, 10.0
"""How far an entry may be off: relative to itself, and in bounds of the oracle. Other orders of summation, and sums of what was multiplied
before, have bounds of their own."""


class Difference(Exception):
    """Two levels disagree, or one of them fails: where, and how."""


class Hang(Difference):
    """A program that does not end in time."""


class TooLarge(Exception):
    """A program that would fire so often that the reference takes minutes. It is neither right nor wrong."""


@dataclass(frozen=True)
class Run:
    """What a region read and what its streams were."""

    region: CompiledRegion
    inputs: Mapping[str, Tensor]
    outcome: Outcome


@dataclass(frozen=True)
class Checked:
    """A case at all levels: the schedule with every order that was picked, and all runs."""

    schedule: Schedule
    runs: tuple[Run, ...]


def check(case: Case) -> Checked:
    """Compile and run a case and compare all levels. Raises `TooLarge` for what is compiled and not run."""
    with limited(SECONDS):
        want, bounds = bounded_meaning(case)
        case = selected(case)
        try:
            schedule, program, made = compiled(case)
        except FuseFlowError as error:
            if not any(reason in error.message for reason in REASONS):
                raise Difference(f"refused without a reason that is known: {error}") from error
            raise
    if (firings := sum(region.estimate.firings for region in made)) > FIRINGS:
        raise TooLarge(f"{firings:,.0f} firings by the estimate")
    try:
        return Checked(schedule, tuple(execution(case, want, bounds, program, made)))
    except FuseFlowError as error:
        raise Difference(f"fails after it compiled: {error}") from error


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise `Hang` where the body takes more processor time (on the main thread, between two steps of Python)."""

    def stop(*_: object) -> None:
        raise Hang(f"more than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1)  # again and again: where a callback of Python's runs, it is ignored
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# Meaning ---------------------------------------------------------------------------------------------------------------------


def meaning(case: Case) -> Arrays:
    """What PyTorch says, and the Einsum interpreter too: of the program, and of the products with selections that are compiled."""
    return bounded_meaning(case)[0]


def bounded_meaning(case: Case) -> tuple[Arrays, Arrays]:
    """The meaning, and how far rounding may lead from every entry."""
    compiles = selected(case)
    types = infer(compiles.program)  # selections decide which values are implicit, so that types are inferred with them
    own = tuple(t for t in types.tensors if t.name in {*case.tensors, *case.program.defined})
    program = replace(case.program, tensors=own)
    evaluated = torch_oracle.evaluate(program, case.arrays)
    want = {name: found.array for name, found in evaluated.items()}
    bounds = {name: found.value.error.numpy() for name, found in evaluated.items()}
    for name, array in evaluate(program, case.arrays).items():
        agree("Einsum interpreter", name, array, want[name], bounds[name])
    if compiles is not case:
        for name, array in evaluate(types, compiles.arrays).items():
            agree("selections", name, array, want[name], bounds[name])
    return want, bounds


def selected(case: Case) -> Case:
    """The case as it is compiled: affine indices are products with selections, which are inputs that the compiler makes."""
    program, selections = replace_affine(case.program)
    return replace(case, program=program, tensors={**case.tensors, **selections}) if selections else case


def agree(
    level: str,
    name: str,
    got: npt.NDArray[np.generic],
    want: npt.NDArray[np.float64],
    bound: npt.NDArray[np.float64] | None = None,
) -> None:
    """Equal up to 1e-9 of the largest finite magnitude, or of the own magnitude and what rounding makes of it if that is known; infinities
    and NaN in the same places, but where rounding decides."""
    if bound is not None and got.shape == want.shape:
        allowed = RELATIVE * np.abs(np.where(np.isfinite(want), want, 0.0)) + BOUNDS * bound
        with np.errstate(invalid="ignore"):
            equal = (got == want) | (np.isnan(got) & np.isnan(want)) | (np.abs(got - want) <= allowed) | ~(bound < np.inf)
        if not equal.all():
            raise Difference(f"{level}: `{name}` is {got.tolist()}, not {want.tolist()}")
        return
    finite = want[np.isfinite(want)]
    scale = max(1.0, float(np.abs(finite).max(initial=0.0)))
    if got.shape != want.shape:
        raise Difference(f"{level}: `{name}` has the shape {got.shape}, not {want.shape}")
    if not np.allclose(got, want, rtol=1e-9, atol=1e-9 * scale, equal_nan=True):
        raise Difference(f"{level}: `{name}` is {got.tolist()}, not {want.tolist()}")


# Compilation -----------------------------------------------------------------------------------------------------------------


def compiled(case: Case) -> tuple[Schedule, Program, list[CompiledRegion]]:
    """A case as it is lowered, with its regions, and its schedule with the order and the lanes that it picked."""
    schedule, program, made = ordered(case)
    lanes = dealt(case, made)
    if not lanes:
        return schedule, program, made
    if case.deal % 4 and schedule.primitives != "public" and case.machine != "comal":
        schedule = schedule.lower(writers="lanes")
    orders = [region.fused.order for region in made]
    while True:
        try:
            program, made = lowered(case, schedule.par(**lanes))
            break
        except ScheduleError as error:
            if not lanes or not any(
                reason in error.message for reason in ("are one loop", "has nothing to be dealt", "cross other lanes")
            ):
                raise
            lanes.popitem()
    if [region.fused.order for region in made] != orders:
        raise Difference(f"lanes {lanes} change the order of the loops")
    return schedule.par(**lanes), program, made


def dealt(case: Case, made: list[CompiledRegion]) -> dict[str, int]:
    """Lanes of one or two indices of a region, and often of stages of it, as the case picks them."""
    draw = Random(case.deal)
    regions = [region for region in made if region.einsums and region.fused.order]
    if not case.deal or case.schedule.parallel or not regions:
        return {}
    region = draw.choice(regions)
    indices = draw.sample(region.fused.order, min(len(region.fused.order), draw.choice((1, 1, 2))))
    lanes = {f"{region.name}.{index}": draw.choice((2, 2, 3, 4, 8)) for index in indices}
    return staged(region, lanes, draw)


def staged(region: CompiledRegion, lanes: dict[str, int], draw: Random) -> dict[str, int]:
    """Lanes of up to three loops of stages of a region, beside those of the whole region or instead of them."""
    loops = [(stage, index) for stage, inside in region.stages.items() for index in inside]
    chosen = draw.sample(loops, min(len(loops), draw.choice((0, 1, 1, 2, 3))))
    own = {f"{region.name}/{stage}.{index}": draw.choice((1, 2, 2, 3, 5)) for stage, index in chosen}
    return {**({} if own and draw.random() < 0.5 else lanes), **own}


def ordered(case: Case) -> tuple[Schedule, Program, list[CompiledRegion]]:
    """A case as it is lowered, with its regions, and its schedule with the order that it picked among the legal ones."""
    program, made = lowered(case, case.schedule)
    own = [r.fused for r in made if r.einsums]  # the others are copies
    if not case.pick or case.schedule.orders or not own:
        return case.schedule, program, made
    region = own[case.pick % len(own)]
    order = picked(region, case.pick)
    if order is None:
        return case.schedule, program, made
    schedule = case.schedule.order(region.name, order)
    program, made = lowered(case, schedule)
    runs = next(r.fused.order for r in made if r.name == region.name)
    if runs != order:
        raise Difference(f"order {','.join(order)} of `{region.name}` was asked for, it runs {','.join(runs)}")
    return schedule, program, made


def picked(region: FusedRegion, pick: int) -> tuple[str, ...] | None:
    """A legal order: one that can be streamed."""
    orders = candidate_orders(region.constraints, region.indices, ORDERS)
    start = pick % len(orders)
    for order in islice((*orders[start:], *orders[:start]), 8):
        try:
            build_table(replace(region, order=order))
        except FusionError:
            continue  # an enclosed loop
        return order
    return None


def lowered(case: Case, schedule: Schedule) -> tuple[Program, list[CompiledRegion]]:
    """All regions, their views merged as the compiler likes or in the one way that the case asks for."""
    with merged(case):
        program, made = lower(case.program, schedule, case.tensors)
    return program, list(made)


@contextmanager
def merged(case: Case) -> Iterator[None]:
    """Merge views as the case asks for it: its lanes name the loops that are there then."""
    ways = fusion_search.MERGE_POLICIES if case.merge == "any" else (case.merge,)
    with patch.object(fusion_search, "MERGE_POLICIES", ways):
        yield


# Execution -------------------------------------------------------------------------------------------------------------------


def execution(case: Case, want: Arrays, bounds: Arrays, lowered: Program, made: list[CompiledRegion]) -> Iterator[Run]:
    """Run every region on what the ones before it really wrote. (What is not in the program is a copy: it is as its region means it.)"""
    types = lowered.declared
    memory: dict[str, Tensor] = tensors_to_blocks(types, case.tensors)
    memory |= {t.name: guard_data(t) for t in lowered.inputs if t.name not in memory}
    for region in made:
        memory |= auxiliary_tensors(region.graph)
        types = types | see(region.views_before, memory)
        program = as_program(region.fused)
        types = types | {r.name: r.tensor for r in region.fused.results}
        read = tensors_to_elements(types, {t.name: memory[t.name] for t in program.inputs})
        meant = evaluate(program, {name: tensor.to_dense() for name, tensor in read.items()})
        outcome = simulated(region.graph, memory, case.limits)
        inputs = {name: memory[name] for name in region.graph.inputs}
        for name in region.graph.outputs:
            due = (
                want[name].reshape(meant[name].shape) if name in want else meant[name]
            )  # it may be stored in the parts of its dimensions
            bound = bounds[name].reshape(due.shape) if name in want else None
            agree(f"fused interpreter, region `{region.name}`", name, meant[name], due, bound)
            memory[name] = assemble(region.graph.declared[name], outcome.written[name])
            order = ",".join(region.fused.order)
            got = tensors_to_elements(types, {name: memory[name]})[name]
            agree(f"graph of region `{region.name}` in order {order}", name, got.to_dense(), due, bound)
            if name in case.schedule.drop_zeros:
                dropped(memory[name], name)
        types = types | see(region.views_after, memory)
        for name in (view.name for view in region.views_after if view.name in want):
            got = tensors_to_elements(types, {name: memory[name]})[name]
            agree(f"view after region `{region.name}`", name, got.to_dense(), want[name], bounds[name])
        yield Run(region, inputs, outcome)


def see(views: Iterable[TensorView], memory: dict[str, Tensor]) -> dict[str, TensorType]:
    """Add the tensors that are seen in other dimensions to the memory. Returns their declarations."""
    for view in views:
        memory[view.name] = view.of(memory[view.source])
    return {view.name: view.type for view in views}


def simulated(graph: Graph, memory: Mapping[str, Tensor], limits: int) -> Outcome:
    """The run on the reference, every stream checked, and the same on the engine: values, cycles, statistics and streams."""
    run = random_graphs.Case(graph, {n: memory[n] for n in graph.inputs}, load_machine("ideal"))
    try:
        with limited(SECONDS):  # not the engine, which may have to compile its kernels first
            expected = execute(graph, run.tensors, run.machine, record=True, limit=FIRINGS)
        if not isinstance(expected, Outcome):
            raise Difference(f"region `{graph.name}` deadlocks: {expected.waiting}")
        for port, kind in graph.types().items():
            tokens.check(expected.streams[port].tokens, kind.depth, kind.kind)
        lines = list(differences(run, expected, on_engine(run, LIMITS[limits])))
    except FiringLimitError as error:
        raise Hang(f"region `{graph.name}` fires more than {FIRINGS} times") from error
    except GraphError as error:
        raise Difference(f"a stream of region `{graph.name}`: {error}") from error
    except FuseFlowError as error:
        raise Difference(f"region `{graph.name}` does not run: {error}") from error
    if lines:
        raise Difference(f"engine, region `{graph.name}`: {'; '.join(lines[:3])}")
    return expected


def dropped(tensor: Tensor, name: str) -> None:
    """A result whose zeros are dropped stores none (a dense level has them all the same, and an n:m level pads)."""
    if not any(level.full or level.pads for level in tensor.format.levels) and (tensor.values == tensor.fill).any():
        raise Difference(f"`{name}` stores {tensor.fill:g}, which is its implicit value")
