"""The search for a way to fuse a region: which tensors are read from copies, how views are merged, and which results keep their mode order.

The paper fuses a region in one way. Here several ways are tried, from the one with the most wishes to the one with the fewest. The first in
which some loop order can be lowered is taken. Merging views (`fusion.view_merging`) saves work, but each merge is a constraint of the
order. So a region is also fused with fewer merges, and the cheaper one stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.einsum.verify import Extents
from fuseflow.fusion.copies import CopyCost
from fuseflow.fusion.fuse import MergePolicy, RegionCost, fuse, to_region_names
from fuseflow.fusion.refusal import Refusal, attempt
from fuseflow.fusion.region import FusedRegion

CopyRule: TypeAlias = Literal["never", "cycles", "free"]
"""The rule that says which tensors are copied: none; those that break a cycle of the constraints; or whatever makes every order
possible.
"""

MERGE_POLICIES: tuple[MergePolicy, ...] = ("early", "late", "never")
"""The policies of merging views, in the order in which they are tried: what compiles fast, then what sees all constraints, then what has
the most freedom.
"""


@dataclass(frozen=True, slots=True)
class FusionChoice:
    """A way to fuse a region: which tensors are copied, how views are merged, and the results that keep their declared mode order."""

    copies: CopyRule
    merge: MergePolicy
    pinned: frozenset[str]


@dataclass(frozen=True, slots=True)
class FusionCandidate:
    """A region that was fused in one way, in its best order."""

    choice: FusionChoice
    region: FusedRegion


@dataclass(frozen=True, slots=True)
class FusionProblem:
    """A region to be fused, and what is known of it.

    `stored` declares what is in memory, and `price` gives the number of values that a tensor stores. `pins` are the sets of results that
    should keep their declared mode order, the best first. `copies` are the rules of copying that are allowed, in the order in which they
    are tried. `choose_order` puts a fused region into its best order, and `cost` ranks it; both may refuse with a
    `FusionError`. `extents` are those of the program, if they are known already. Of the Einsums in `dropped` that are no results, consumers
    get the entries that are not 0.
    """

    program: Program
    region: str
    einsums: tuple[str, ...]
    results: tuple[str, ...]
    stored: Mapping[str, TensorType]
    price: CopyCost
    pins: tuple[frozenset[str], ...]
    copies: tuple[CopyRule, ...]
    iteration: str
    choose_order: Callable[[FusedRegion], FusedRegion]
    cost: RegionCost
    extents: Extents | None = None
    dropped: frozenset[str] = frozenset()


def search(problem: FusionProblem, order: tuple[str, ...] = ()) -> FusionCandidate | Refusal:
    """Return the region fused in the best way, in its best order; with an `order` of the user, in the best way that honours it. If there is
    none, return the refusal of the way with the fewest wishes.

    The best way is the first that can be lowered, or the same with fewer views merged if that is expected to cost less.
    """
    if order:
        return first_candidate(problem, merge_policies_for(problem, order), order)
    usual = first_candidate(problem, MERGE_POLICIES)
    if isinstance(usual, Refusal) or not usual.region.merges or usual.choice.merge == "never":
        return usual
    choice = replace(usual.choice, merge="lean")
    fused = attempt(apply_choice, problem, choice)
    if isinstance(fused, Refusal) or len(fused.indices) == len(usual.region.indices):
        return usual
    lean = attempt(problem.choose_order, fused)
    if isinstance(lean, Refusal):
        return usual
    return FusionCandidate(choice, lean) if problem.cost(lean).rank < problem.cost(usual.region).rank else usual


def apply_choice(problem: FusionProblem, choice: FusionChoice, order: tuple[str, ...] = ()) -> FusedRegion:
    """Return the region fused in one way; its loops are not ordered yet. Raises `FusionError` if it cannot be."""
    return fuse(
        problem.program,
        problem.region,
        problem.einsums,
        problem.results,
        problem.stored,
        chain=order,
        pinned=choice.pinned,
        merge=choice.merge,
        iteration=problem.iteration,
        price=None if choice.copies == "never" else problem.price,
        free=choice.copies == "free",
        extents_by_einsum=problem.extents,
        dropped=problem.dropped,
    )


def fusion_choices(problem: FusionProblem, merges: Iterable[MergePolicy]) -> tuple[FusionChoice, ...]:
    """Return the ways to fuse the region, best first."""
    combinations = (
        FusionChoice(copies, merge, pinned) for copies in problem.copies for merge in merges for pinned in problem.pins
    )
    return tuple(dict.fromkeys(combinations))


def first_candidate(
    problem: FusionProblem, merges: tuple[MergePolicy, ...], order: tuple[str, ...] = ()
) -> FusionCandidate | Refusal:
    """Return the first way to fuse the region of which some order can be lowered; else the refusal of the way with the fewest wishes."""
    refusals: dict[FusionChoice, Refusal] = {}
    for choice in fusion_choices(problem, merges):
        fused = attempt(apply_choice, problem, choice, order)
        region = fused if isinstance(fused, Refusal) else attempt(problem.choose_order, fused)
        if not isinstance(region, Refusal):
            return FusionCandidate(choice, region)
        refusals[choice] = region
    fewest = (c for c in reversed(refusals) if c.copies == problem.copies[-1] and c.merge == merges[0])
    return refusals[next(fewest)]


def merge_policies_for(problem: FusionProblem, order: tuple[str, ...]) -> tuple[MergePolicy, ...]:
    """Return the policies of merging views for a region whose loops the user names.

    Merging decides which loops there are, and an order is never honoured where its names mean other loops. The names are those of the
    region as it is without an order; else those of the first way in which all of them exist. If they exist in none, every policy is
    returned, so that any may report it.
    """
    usual = search(problem)
    unordered = () if isinstance(usual, Refusal) else (usual.choice,)
    matching: tuple[MergePolicy, ...] = ()
    for choice in (*unordered, *fusion_choices(problem, MERGE_POLICIES)):
        fused = attempt(apply_choice, problem, choice)
        if isinstance(fused, Refusal) or not has_loops(fused, order):
            continue
        matching = matching or (choice.merge,)
        if choice in unordered or not isinstance(attempt(problem.choose_order, fused), Refusal):
            return (choice.merge,)
    return matching or MERGE_POLICIES


def has_loops(fused: FusedRegion, order: tuple[str, ...]) -> bool:
    """Return whether the names of an order are distinct loops of the region."""
    local = fused.local_names.get(fused.einsums[0], {}) if len(fused.einsums) == 1 else {}
    names = to_region_names(order, local, fused.indices)
    return len(set(names)) == len(names) and set(names) <= set(fused.indices)
