"""The search for a way to fuse a region: which tensors are read from copies, how views are merged, and which results keep their
mode order.

The paper fuses a region in one way. Here several ways are tried, from the one with the most wishes to the one with the fewest.
The first in which some loop order can be lowered is taken. Merging views (`fusion.view_merging`) saves work, but each merge
constrains the order, and a producer may run again for it. So views are first merged only where no producer runs again. If
producers run again nevertheless, since views that differ read them, the region is also fused with more views merged, and the
cheaper one is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import product, starmap
from typing import Literal, TypeAlias

from fuseflow.errors import PlacesError
from fuseflow.fusion.copies import CopyCost
from fuseflow.fusion.fuse import MergePolicy, RegionCost
from fuseflow.fusion.refusal import Refusal, attempt
from fuseflow.fusion.region import FusedRegion

CopyRule: TypeAlias = Literal["never", "cycles", "free"]
"""Which tensors are copied: none (`never`), those that break a cycle of the constraints (`cycles`), or all whose storage
constrains the loops, so that every order is possible (`free`)."""

MERGE_POLICIES: tuple[MergePolicy, ...] = ("lean", "early", "late", "never")
"""The policies of merging views, in the order in which they are tried: first the one that runs no producer again, then the fast
one, then the one that sees all constraints, then the one with the most freedom."""
FEW_REPEATS = 2.0
"""No more views are merged in a region that does at most this many times the work of its producers, each run once. (More merges
change something in 61 regions of models and 41 random ones, and gain more than 13 % in 9. Eight of these repeat their work 14 to
15,896 times. The ninth, a random one of 11 nodes, does 1.4 times the work, and would take a quarter: this rule misses it.)"""


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
    """A region to be fused, with the facts and functions that the search for a way to fuse it needs.

    `fuse` is the function `fusion.fuse` of this region, which still takes the arguments of one way. `price` returns the number of
    values that a tensor stores. `pins` are the sets of results that should keep their declared mode order, the best first. `copies`
    are the rules of copying that are allowed, in the order in which they are tried. `choose_order` puts a fused region into its
    best order, and `cost` ranks it; both may refuse with a `FusionError`. `repeats` returns the work of a region in its order,
    divided by the work of its producers, each run once. `one_space` says that the region is one iteration space.
    """

    fuse: Callable[..., FusedRegion]
    price: CopyCost
    pins: tuple[frozenset[str], ...]
    copies: tuple[CopyRule, ...]
    choose_order: Callable[[FusedRegion], FusedRegion]
    cost: RegionCost
    repeats: Callable[[FusedRegion], float] = lambda region: math.inf
    one_space: bool = False


@dataclass(slots=True)
class WaysToFuse:
    """The ways to fuse one region that were tried: each is fused once, and its loops are ordered once. `chain` is the order of
    loops that the user asked for, empty if there is none."""

    problem: FusionProblem
    chain: tuple[str, ...] = ()
    fused: dict[FusionChoice, FusedRegion | Refusal] = field(default_factory=dict)
    ordered: dict[FusionChoice, FusedRegion | Refusal] = field(default_factory=dict)

    def fuse(self, choice: FusionChoice) -> FusedRegion | Refusal:
        """Return the region fused in one way; its loops are not ordered yet."""
        problem = self.problem
        if choice not in self.fused:
            price, free = None if choice.copies == "never" else problem.price, choice.copies == "free"
            self.fused[choice] = attempt(
                problem.fuse, chain=self.chain, pinned=choice.pinned, merge=choice.merge, price=price, free=free
            )
        return self.fused[choice]

    def order(self, choice: FusionChoice) -> FusedRegion | Refusal:
        """Return the region fused in one way, in its best order."""
        if choice not in self.ordered:
            fused = self.fuse(choice)
            self.ordered[choice] = fused if isinstance(fused, Refusal) else attempt(self.problem.choose_order, fused)
        return self.ordered[choice]

    def first(self, merges: tuple[MergePolicy, ...]) -> FusionCandidate | Refusal:
        """Return the first way with an order that can be lowered; else the refusal of the way with the fewest wishes. If a way of
        merging views makes an Einsum be computed in too many places, it is not tried with other copies or other pinned
        results."""
        choices, crowded = fusion_choices(self.problem, merges), dict[MergePolicy, Refusal]()
        for choice in choices:
            region = crowded.get(choice.merge) or self.order(choice)
            if not isinstance(region, Refusal):
                return FusionCandidate(choice, region)
            if isinstance(region.error, PlacesError):
                crowded[choice.merge] = region
        fewest = next(c for c in reversed(choices) if c.copies == self.problem.copies[-1] and c.merge == merges[0])
        refusal = crowded.get(fewest.merge) or self.order(fewest)
        assert isinstance(refusal, Refusal)
        return refusal


def search(problem: FusionProblem, order: tuple[str, ...] = ()) -> FusionCandidate | Refusal:
    """Return the region fused in the best way, in its best order; with an `order` of the user, in the first way that allows it.
    If there is none, return the refusal of the way with the fewest wishes."""
    if order:
        return WaysToFuse(problem, order).first(merge_policies_for(problem, order))
    return best_way(WaysToFuse(problem))


def best_way(ways: WaysToFuse) -> FusionCandidate | Refusal:
    """Return the best way if the user asked for no order: the first that can be lowered. If that repeats much work, or the region
    is one iteration space, it is the first with more views merged, where that is expected to cost less."""
    lean = ways.first(MERGE_POLICIES)
    if isinstance(lean, Refusal) or lean.choice.merge != "lean":
        return lean
    if not ways.problem.one_space and ways.problem.repeats(lean.region) <= FEW_REPEATS:
        return lean
    merged = ways.fuse(replace(lean.choice, merge="early"))
    if not isinstance(merged, Refusal) and len(merged.indices) == len(lean.region.indices):
        return lean  # no producer would have run again
    other, cost = ways.first(MERGE_POLICIES[1:]), ways.problem.cost
    return lean if isinstance(other, Refusal) or cost(lean.region).rank <= cost(other.region).rank else other


def fusion_choices(problem: FusionProblem, merges: Iterable[MergePolicy]) -> tuple[FusionChoice, ...]:
    """Return the ways to fuse the region, best first."""
    return tuple(dict.fromkeys(starmap(FusionChoice, product(problem.copies, merges, problem.pins))))


def merge_policies_for(problem: FusionProblem, order: tuple[str, ...]) -> tuple[MergePolicy, ...]:
    """Return the policies of merging views for a region whose loops the user names in `order`.

    Merging decides which loops there are, and an order is refused if its names mean other loops. The names mean loops of the
    region as it is fused without an order; else of the first way in which all of them exist. If they exist in no way, every
    policy is returned, so that any may report it.
    """
    ways = WaysToFuse(problem)
    usual = best_way(ways)
    unordered = () if isinstance(usual, Refusal) else (usual.choice,)
    matching: tuple[MergePolicy, ...] = ()
    for choice in (*unordered, *fusion_choices(problem, MERGE_POLICIES)):
        fused = ways.fuse(choice)
        if isinstance(fused, Refusal) or not has_loops(fused, order):
            continue
        matching = matching or (choice.merge,)
        if choice in unordered or not isinstance(ways.order(choice), Refusal):
            return (choice.merge,)
    return matching or MERGE_POLICIES


def has_loops(fused: FusedRegion, order: tuple[str, ...]) -> bool:
    """Return whether the names of an order are distinct loops of the region."""
    names = fused.own_names(order)
    return len(set(names)) == len(names) and set(names) <= set(fused.indices)
