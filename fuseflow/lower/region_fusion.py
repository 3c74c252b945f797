"""The search for the best order of a region, as its schedule wants it fused. Regions that differ in names alone are searched for once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from fuseflow.einsum.indices import substitute_tensors
from fuseflow.estimate import Estimate
from fuseflow.fusion import FusedRegion, choose_order
from fuseflow.fusion.copies import name_copies, remove_copy, requires_copy
from fuseflow.fusion.fuse import MAX_REFUSED_ORDERS, candidate_limit
from fuseflow.fusion.fusion_choices import CopyRule, FusionCandidate, FusionProblem, apply_choice, search
from fuseflow.fusion.refusal import Refusal, attempt
from fuseflow.lower.copies import cost_with_copies, public_cost
from fuseflow.lower.state import LoweringState, RegionRequest

StateCost: TypeAlias = Callable[[LoweringState, FusedRegion], Estimate]
"""The cost of a region in its order. It may refuse the order with a `FusionError`."""
COPIES: dict[bool, tuple[CopyRule, ...]] = {True: ("never", "cycles", "free"), False: ("never",)}
"""The rules of copying, in the order in which they are tried, by whether copies are allowed."""


def fuse_region(state: LoweringState, request: RegionRequest) -> FusedRegion:
    """Return the region fused in its best order, or in that of the user. Raises `FusionError` if there is none."""
    problem = fusion_problem(state, request)
    key, candidates = (fusion_key(state, request), request.order), state.memo.fusions
    if key in candidates:
        precedent = candidates[key].region
        fused = apply_settings(state, apply_choice(problem, candidates[key].choice, request.order))
        if fused.indices == precedent.indices and not (fused.copies or precedent.copies):
            return replace(fused, order=precedent.order, compared=precedent.compared, locate=precedent.locate)
    candidates[key] = require_candidate(search(problem, request.order))
    return candidates[key].region


def require_candidate(candidate: FusionCandidate | Refusal) -> FusionCandidate:
    """Return the result of a search. Raises the `FusionError` of a refusal."""
    if isinstance(candidate, Refusal):
        raise candidate.error
    return candidate


def fusion_problem(state: LoweringState, request: RegionRequest) -> FusionProblem:
    """Return what the search for a way to fuse the region needs to know."""
    schedule = state.partitioned.schedule
    return FusionProblem(
        program=state.partitioned.program,
        region=request.name,
        einsums=request.einsums,
        results=request.results,
        stored=state.stored,
        price=state.stored_values,
        pins=_pins(state, request),
        copies=COPIES[schedule.copies],
        iteration=schedule.iteration,
        choose_order=partial(order_region, state),
        cost=partial(cost_with_copies, state),
    )


def _pins(state: LoweringState, request: RegionRequest) -> tuple[frozenset[str], ...]:
    """Return the sets of results that keep their declared mode order, the best first: results whose format the user chose, and, if any
    order allows it, also those that later regions scan, or see in other dimensions.
    """
    program, viewed = state.partitioned.program, state.viewed_tensors
    formats = {name: state.declared[name].format for name in request.results}
    user_pins = frozenset(name for name in request.results if name in state.partitioned.user_formats)
    scanned = {
        name
        for name, format in formats.items()
        if name in viewed or (format is not None and not format.all_dense and name not in program.outputs)
    }
    return user_pins | scanned, user_pins


def fusion_key(state: LoweringState, request: RegionRequest) -> Hashable:
    """Return the facts that the choice for a region follows from. They are equal for regions that differ in names alone: a model repeats
    its layers.
    """
    program, stored, declared = state.partitioned.program, state.stored, state.declared
    einsums = [program.defined[e] for e in request.einsums]
    names = {name: n for n, name in enumerate(dict.fromkeys(n for e in einsums for n in (*e.operands, e.name)))}
    placeholders = {n: f"t{k}" for n, k in names.items()}
    bodies = tuple((names[e.name], e.indices, substitute_tensors(e.body, placeholders)) for e in einsums)
    operands = tuple(
        (t.shape, t.format, t.dtype, repr(t.fill), t.block, state.statistics.get(n))
        for n in names
        for t in (stored.get(n),)
        if t is not None
    )
    are_stored = tuple(n in stored for n in names)
    written = tuple((declared[e.name].format, declared[e.name].block) for e in einsums)
    user_formats, viewed, dropped = state.partitioned.user_formats, state.viewed_tensors, state.partitioned.schedule.drop_zeros
    requirements = tuple((n in user_formats, n in viewed, n in program.outputs, n in dropped) for n in request.results)
    return bodies, operands, are_stored, written, tuple(names[n] for n in request.results), requirements


def order_region(state: LoweringState, fused: FusedRegion) -> FusedRegion:
    """Return the region in the order that the schedule's policy chooses, without copies that are not needed. Its dense levels are located
    or joined as the schedule says, or as it costs less. If public primitives are asked for, and the region has no public form in this
    order, an order is taken in which it has one, if there is any. Raises `FusionError` if no order can be lowered.
    """
    ordered = _order_region(state, fused, cost_with_copies)
    if state.partitioned.schedule.primitives == "public" and isinstance(attempt(public_cost, state, ordered), Refusal):
        public = attempt(_order_region, state, fused, public_cost, candidate_limit(fused))
        return ordered if isinstance(public, Refusal) else public
    return ordered


def _order_region(state: LoweringState, fused: FusedRegion, cost: StateCost, refused: int = MAX_REFUSED_ORDERS) -> FusedRegion:
    schedule = state.partitioned.schedule
    fused = apply_settings(state, fused)
    ordered = choose_order(fused, partial(cost, state), schedule.order_policy, refused)
    for copy in ordered.copies:
        source = state.stored[copy.source]
        if not requires_copy(copy, source, ordered.order):
            without = remove_copy(ordered, copy, source)
            ordered = ordered if cost_rank(state, without, cost) is None else without
    if schedule.locate == "auto":
        ordered = _located_or_joined(state, ordered, cost)
    return name_copies(ordered, state.declared)


def apply_settings(state: LoweringState, fused: FusedRegion) -> FusedRegion:
    """Return the region with the schedule's settings for all regions."""
    schedule = state.partitioned.schedule
    results = tuple(replace(r, drop_zeros=r.name in schedule.drop_zeros) for r in fused.results)
    return replace(fused, results=results, repeat=schedule.repeat, locate=schedule.locate != "never")


def _located_or_joined(state: LoweringState, located: FusedRegion, cost: StateCost) -> FusedRegion:
    """Return the region with its dense levels located, or scanned and joined if that costs less."""
    joined = replace(located, locate=False)
    located_rank = next(c.rank for c in located.compared if c.order == located.order)
    joined_rank = cost_rank(state, joined, cost)
    return joined if joined_rank is not None and joined_rank < located_rank else located


def cost_rank(state: LoweringState, region: FusedRegion, cost: StateCost) -> float | None:
    """Return the rank of a region's cost in its order, or None if the region is refused in it."""
    price = attempt(cost, state, region)
    return None if isinstance(price, Refusal) else price.rank
