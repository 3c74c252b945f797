"""Fuses a region as its schedule states, and searches for its best loop order. Regions that differ in names alone are searched
for once."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Protocol

from fuseflow.costs import Estimate
from fuseflow.costs.cost import expected_rank
from fuseflow.einsum.index_names import substitute_tensors
from fuseflow.einsum.nodes import Einsum, Keep, Program, Reduce, TensorType, map_accesses, walk
from fuseflow.einsum.text import places_of
from fuseflow.einsum.verify import Extents
from fuseflow.errors import FusionError, OrdersError, PlacesError
from fuseflow.fusion import FusedRegion, choose_order, fuse, inline
from fuseflow.fusion.copies import name_copies, remove_copy, requires_copy
from fuseflow.fusion.fuse import MAX_REFUSED_ORDERS, candidate_limit, priced_order
from fuseflow.fusion.fusion_search import FusionProblem, search
from fuseflow.fusion.linear_extensions import LoopOrder
from fuseflow.fusion.nest_work import RegionWork
from fuseflow.fusion.order_candidates import OrderCandidate
from fuseflow.fusion.order_search import ComparedOrders, CostBound
from fuseflow.fusion.refusal import Refusal, attempt
from fuseflow.fusion.repeated_regions import can_rename, renamed_region
from fuseflow.lower.buffers import resident_tensors
from fuseflow.lower.copies import cost_with_copies, public_cost
from fuseflow.lower.order_costs import OrderCosts
from fuseflow.lower.state import LoweringMemo, LoweringState, Precedent, RegionRequest
from fuseflow.schedule import region_size
from fuseflow.schedule.section import KEYWORDS
from fuseflow.table import build_table, emit
from fuseflow.tensors import Format


class CostRule(Protocol):
    """A function that returns the cost of a region in its order, or a bound of it, if its rank is above `limit`. It may refuse
    the order with a `FusionError`."""

    def __call__(self, costs: OrderCosts, fused: FusedRegion, limit: float = math.inf, /) -> Estimate | CostBound: ...


def fuse_region(state: LoweringState, request: RegionRequest) -> tuple[FusedRegion, Precedent]:
    """Return the region fused in its best order, or in the order of the user, and the outcome of the search that found it: for
    this region, or for an earlier one with other names. Raises `FusionError` if there is no order."""
    program = state.partitioned.program
    stated = bool(request.order) and dict(program.region_orders).get(request.name) == request.order
    try:
        region, precedent = _fused(state, request)
    except FusionError as error:
        error.span = error.span or (program.defined[request.einsums[0]].location.span if stated else None)
        raise
    if stated:
        _refuse_contradiction(program, request, region)
    return region, precedent


def _refuse_contradiction(program: Program, request: RegionRequest, region: FusedRegion) -> None:
    """Raise `FusionError` if the text of a program states an order of a region, and another order of one of its Einsums."""
    for einsum in (program.defined[e] for e in request.einsums if e in region.local_names):
        names = region.local_names[einsum.name]
        asked = list(dict.fromkeys(names[v] for v in einsum.order if names.get(v) in region.order))
        if asked != sorted(asked, key=region.order.index):
            raise FusionError(
                f"the loops of `{einsum.name}` run {','.join(asked)}, and region `{request.name}` states {','.join(request.order)}",
                hint="change both, or leave the order of the region out",
                span=einsum.location.span,
            )


def _fused(state: LoweringState, request: RegionRequest) -> tuple[FusedRegion, Precedent]:
    names, key, precedents = region_names(state, request), (fusion_key(state, request), request.order), state.memo.fusions
    if key in precedents and can_rename(precedents[key].candidate.region):  # as the earlier region was fused
        precedent = precedents[key]
        region, new_names = precedent.candidate.region, dict(zip(precedent.names[1:], names[1:], strict=True))
        pinned = [new_names[result] for result in precedent.candidate.choice.pinned]
        spans = {e: state.partitioned.program.defined[e].location.span for e in request.einsums}
        renamed = renamed_region(region, request.name, new_names, state.declared, state.stored, pinned, request.order, spans)
        return replace(renamed, compared=renamed_refusals(region.compared, precedent.names, names)), precedent
    costs = OrderCosts(state)
    found = search(fusion_problem(state, request, costs), request.order)
    if isinstance(found, Refusal):
        raise _at_orders(state, request, found.error)
    priced = costs.table(found.region)
    table = build_table(found.region) if priced is None else priced.nodes
    precedents[key] = Precedent(names, found, table, emit(table), priced)
    return found.region, precedents[key]


def _at_orders(state: LoweringState, request: RegionRequest, error: FusionError) -> FusionError:
    """Return the error of a region with the locations of the loop orders that its user wrote, if these leave no other way."""
    written = [e for name in request.einsums if (e := state.partitioned.program.defined[name]).order]
    if request.order or not written or isinstance(error, PlacesError | OrdersError):
        return error
    note = f"the loops run in the orders asked for in {places_of(written)}"
    span = error.span or written[0].location.span
    return OrdersError(error.message, hint=error.hint, notes=(*error.notes, note), span=span)


def fusion_problem(state: LoweringState, request: RegionRequest, costs: OrderCosts) -> FusionProblem:
    """Return the problem for the search for a way to fuse a region. `costs` computes the costs of its orders."""
    schedule, program, named = state.partitioned.schedule, state.partitioned.program, state.partitioned.schedule.fuse_regions
    # a region that the user names, or whose loops are ordered, may compute an Einsum in many places of its trees
    is_stated = (named == ("layerwise",) and not state.partitioned.grows_regions) or bool(request.order)
    is_named = is_stated or (request.name in named and request.name not in KEYWORDS)
    flat = flat_region(state, request)
    stored, sizes = (state.stored, state.partitioned.extents) if flat is None else (flat.stored, flat.extents)
    program = program if flat is None else flat.program
    fuse_by = partial(
        fuse,
        program.unordered if request.order else program,  # the order of a region wins over orders of its Einsums
        request.name,
        request.einsums,
        request.results,
        stored,
        shared={} if flat is None else flat.shared,
        iteration=schedule.iteration,
        extents_by_einsum=sizes,
        dropped=frozenset(schedule.drop_zeros).intersection(request.einsums),
        most_places=inline.MOST_PLACES if is_named else region_size.MOST_PLACES,
    )
    return FusionProblem(
        fuse=fuse_by,
        price=state.stored_values,
        pins=_pins(state, request),
        copies=("never", "cycles", "free") if schedule.copies else ("never",),
        choose_order=partial(order_region, costs),
        cost=partial(cost_with_copies, costs),
        repeats=lambda fused: region_work(state, fused).repeats(fused.order),
        one_space=schedule.iteration == "global",
    )


def _pins(state: LoweringState, request: RegionRequest) -> tuple[frozenset[str], ...]:
    """Return the sets of results that keep their declared mode order, the best first: results whose format the user chose, and,
    if any order allows it, also results that later regions scan, or see in other dimensions."""
    program, viewed = state.partitioned.program, state.partitioned.sources.values()
    formats = {name: state.declared[name].format for name in request.results}
    user_pins = frozenset(name for name in request.results if name in state.partitioned.user_formats)
    scanned = {
        name
        for name, format in formats.items()
        if name in viewed or (format is not None and not format.all_dense and name not in program.outputs)
    }
    return user_pins | scanned, user_pins


def fusion_key(state: LoweringState, request: RegionRequest) -> Hashable:
    """Return the facts that decide how a region is fused, equal for regions that differ in names alone, as repeated layers do."""
    program, stored, declared = state.partitioned.program, state.stored, state.declared
    einsums = [program.defined[e] for e in request.einsums]
    names = {name: n for n, name in enumerate(region_names(state, request)[1:])}
    placeholders = {n: f"t{k}" for n, k in names.items()}
    bodies = tuple((names[e.name], e.indices, substitute_tensors(e.body, placeholders), e.order) for e in einsums)
    operands = tuple(
        (t.shape, t.format, t.dtype, repr(t.fill), t.block, t.like, state.statistics.get(n))
        for n in names
        if (t := stored.get(n))
    )
    are_stored = tuple(n in stored for n in names)
    written = tuple((t.shape, t.format, t.dtype, t.block, t.like) for t in (declared[e.name] for e in einsums))
    pinned = tuple(tuple(n in pins for n in request.results) for pins in _pins(state, request))
    dropped = tuple(n in state.partitioned.schedule.drop_zeros for n in request.einsums)
    own = resident_tensors(state.partitioned)
    resident = tuple(n in own for n in names)
    return bodies, operands, are_stored, written, tuple(names[n] for n in request.results), pinned, dropped, resident


def region_names(state: LoweringState, request: RegionRequest) -> tuple[str, ...]:
    """Return the name of a region, and the names of its operands and results in order of appearance."""
    einsums = (state.partitioned.program.defined[e] for e in request.einsums)
    return request.name, *dict.fromkeys(name for e in einsums for name in (*e.operands, e.name))


def renamed_refusals(compared: ComparedOrders, old: tuple[str, ...], new: tuple[str, ...]) -> ComparedOrders:
    """Return the compared orders of a region as orders of another region, with `new` names in place of `old` ones."""
    names = dict(zip(old[1:], new[1:], strict=True))

    def renamed(word: re.Match[str]) -> str:
        """Return a word with the longest name that it begins with renamed: `softmax.max` is a reduction inside of `softmax`."""
        parts = word[0].split(".")
        for length in range(len(parts), 0, -1):
            if (name := ".".join(parts[:length])) in names:
                return ".".join((names[name], *parts[length:]))
        return word[0]

    def reason(refusal: str) -> str:
        sentences = (re.sub(r"\w+(\.\w+)*", renamed, sentence) for sentence in refusal.split(f"region `{old[0]}`"))
        return f"region `{new[0]}`".join(sentences)

    def candidate(order: LoopOrder) -> OrderCandidate:
        """Return one of the orders with the reason for its refusal, if it was refused."""
        same = compared.candidate(order)
        return replace(same, refusal=reason(same.refusal)) if same.refusal else same

    return ComparedOrders(compared.orders, candidate, extent=compared.extent)


def order_region(costs: OrderCosts, fused: FusedRegion) -> FusedRegion:
    """Return the region in the order that the schedule's policy chooses, without copies that are not needed. Its dense levels are
    located or joined as the schedule states, or as it costs less. If public primitives are asked for, and the region has no
    public form in this order, an order is taken in which it has one, if there is any. Raises `FusionError` if no order can be
    lowered."""
    ordered = _order_region(costs, fused, cost_with_copies)
    if costs.state.partitioned.schedule.primitives == "public" and isinstance(attempt(public_cost, costs, ordered), Refusal):
        public = attempt(_order_region, costs, fused, public_cost, candidate_limit(fused))
        return ordered if isinstance(public, Refusal) else public
    return ordered


def _order_region(costs: OrderCosts, fused: FusedRegion, rule: CostRule, refused: int = MAX_REFUSED_ORDERS) -> FusedRegion:
    state, schedule = costs.state, costs.state.partitioned.schedule
    fused, cost, work = apply_settings(state, fused), partial(rule, costs), region_work(state, fused)

    @cache
    def work_rank(order: LoopOrder) -> float:
        """Return the work of an order, which is estimated from the loops of the trees alone, as a rank of costs."""
        return expected_rank(*work(order), 0.0)

    ordered = choose_order(fused, cost, schedule.order_policy, refused, work_rank)
    later = partial(priced_order, fused, partial(rule, OrderCosts(replace(state, memo=LoweringMemo()))))
    ordered = replace(ordered, compared=replace(ordered.compared, price=later))  # so that it keeps none of the tables made here
    for copy in ordered.copies:
        source = state.stored[copy.source]
        if not requires_copy(copy, source, ordered.order):
            without = remove_copy(ordered, copy, source)
            ordered = ordered if isinstance(attempt(cost, without), Refusal) else without
    if schedule.locate == "auto":  # dense levels are located, or scanned and joined if that costs less
        joined, rank = replace(ordered, locate=False), ordered.compared.candidate(ordered.order).rank
        joined_cost = attempt(cost, joined, rank)
        ordered = joined if not isinstance(joined_cost, Refusal) and joined_cost.rank < rank else ordered
    return name_copies(ordered, state.declared)


def apply_settings(state: LoweringState, fused: FusedRegion) -> FusedRegion:
    """Return the region with those settings of the schedule that hold for all regions."""
    schedule = state.partitioned.schedule
    results = tuple(replace(r, drop_zeros=r.name in schedule.drop_zeros) for r in fused.results)
    rescan, resident = schedule.rescan == "every", resident_tensors(state.partitioned) & fused.stored.keys()
    locate = schedule.locate != "never"
    return replace(fused, results=results, repeat=schedule.repeat, locate=locate, rescan=rescan, resident=resident)


def region_work(state: LoweringState, fused: FusedRegion) -> RegionWork:
    """Return the nests of a region, whose work is estimated from the shares of coordinates that its tensors store."""
    sources, blocks = {copy.name: copy.source for copy in fused.copies}, fused.blocks
    sizes = {v: -(-size // blocks.get(v, 1)) for v, size in fused.sizes.items()}
    stored = {view: _stored_shares(state, sources.get(view.tensor, view.tensor), view.indices) for view in fused.views}
    return RegionWork.of([(result.indices, result.tree) for result in fused.results], sizes, stored)


def _stored_shares(state: LoweringState, tensor: str, indices: tuple[str, ...]) -> dict[str, float]:
    """Return, for each index along which a tensor is sparse, the share of the coordinates of a fiber that it stores."""
    if len(indices) < len(state.stored[tensor].shape):
        return {}  # it is read as a vector
    format, statistics = state.stored[tensor].format, state.statistics[tensor]
    assert format is not None
    levels = zip(format.order, format.levels, statistics.fanouts, statistics.sizes, strict=True)
    return {indices[d]: min(1.0, fanout / size) for d, level, fanout, size in levels if size and not level.full}


@dataclass(frozen=True, slots=True)
class FlatRegion:
    """A region that computes each value from values at the same place of one tensor, on vectors: the program with its statements, the types
    of the tensors in memory, and the extents of its indices. `shared` has the types that the tensors have which it reads or writes as
    vectors, by name."""

    program: Program
    stored: Mapping[str, TensorType]
    extents: Extents
    shared: Mapping[str, TensorType]


def flat_region(state: LoweringState, request: RegionRequest) -> FlatRegion | None:
    """Return a region on vectors, or None if it cannot run on vectors: then coordinates decide what it computes, or are part of what
    the user asks for. The number of entries must be known."""
    partitioned, types = state.partitioned, state.declared
    einsums = [partitioned.program.defined[name] for name in request.einsums]
    root = types[einsums[0].name].like if einsums else ""
    if root not in state.entries or request.order or types[root].block or partitioned.schedule.iteration != "factored":
        return None
    lanes = {index.rpartition(".")[2] for index, _ in partitioned.schedule.parallel}
    if not all(_is_flat(e, root, types) and lanes.isdisjoint(e.indices[1:]) for e in einsums):
        return None
    size = state.entries[root]
    shared = {name: t for name, t in {**types, **state.stored}.items() if root in (name, t.like)}
    vectors = {name: replace(t, shape=(size,), format=Format.dense(1), like=root) for name, t in shared.items()}
    flat = {
        e.name: replace(
            e, indices=e.indices[:1], body=map_accesses(lambda access: replace(access, indices=access.indices[:1]), e.body)
        )
        for e in einsums
    }
    program = partitioned.program
    return FlatRegion(
        replace(
            program,
            tensors=tuple([vectors.get(t.name, t) for t in program.tensors]),
            einsums=tuple([flat.get(e.name, e) for e in program.einsums]),
        ),
        {name: vectors.get(name, t) for name, t in state.stored.items()},
        {**partitioned.extents, **{e.name: {str(e.indices[0]): size} for e in einsums}},
        shared,
    )


def _is_flat(einsum: Einsum, root: str, types: Mapping[str, TensorType]) -> bool:
    """Return whether a statement gives a result at the places of a tensor from values at the same places, and from scalars."""
    own = einsum.indices
    if einsum.order or types[einsum.name].like != root or not all(isinstance(index, str) for index in own):
        return False
    if any(isinstance(node, Reduce | Keep) for node in walk(einsum.body)):
        return False
    return all(not a.indices or (a.indices == own and root in (a.tensor, types[a.tensor].like)) for a in einsum.accesses)
