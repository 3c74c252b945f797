"""Removes elements of a nest that have an empty list below."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fuseflow.estimate.counted.distinct import group_positions
from fuseflow.estimate.counted.nests import FiberLevel, FiberNest, PerFiber, below_links, by_element


def without_empty_lists(nest: FiberNest, depths: Collection[int]) -> FiberNest:
    """Return a nest without the elements of these depths, counted from 0, that have an empty list below."""
    chain = nest.chain
    levels, links = [part.level for part in chain], [part.links for part in chain]
    for p in sorted(depths, reverse=True):
        level, lengths = levels[p], below_links(levels[p + 1].lengths, links[p + 1])
        if isinstance(lengths, PerFiber) and (lengths.numbers > 0).all():
            continue
        filled = by_element(lengths) > 0
        if not filled.all():
            levels[p] = FiberLevel(group_positions(level.owner[filled], level.fibers), level.crd[filled], level.size)
            links[p + 1] = by_element(links[p + 1])[filled]
    above: FiberNest | None = None
    for original, level, link in zip(chain, levels, links, strict=True):
        unchanged = above is original.above and level is original.level and link is original.links
        above = original if unchanged else FiberNest(above, link, level)
    assert above is not None
    return above


def written_nest(levels: Sequence[FiberNest | None]) -> FiberNest | None:
    """Return the nest of a result, whose levels are written from streams with these nests, outermost first. None for a scalar.

    A stream of inner coordinates can have a list for an outer coordinate that was dropped since that list is empty: public
    primitives drop from one pair of streams after the other, and the innermost stream passes only the first of these. Such lists
    store nothing.
    """
    if not levels or levels[-1] is None:
        return None
    chain = levels[-1].chain
    dropped = [p for p, (nest, part) in enumerate(zip(levels, chain, strict=True)) if nest and nest.elements < part.elements]
    return without_empty_lists(levels[-1], dropped) if dropped else levels[-1]
