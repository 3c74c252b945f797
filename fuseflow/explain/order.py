"""The order of the loops of each region: what the loops run over, and how many orders there are by each rule of counting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fuseflow.fusion import FusedRegion
from fuseflow.fusion.order_counts import OrderCount, count_legal, count_merged, count_reference
from fuseflow.fusion.tree import reductions
from fuseflow.lower.regions import CompiledRegion
from fuseflow.run.compiled import Compiled

CountingRule: TypeAlias = Literal["reference", "merged"]
"""A rule for counting orders: `reference` counts as the published compiler does, `merged` with equal views merged."""


@dataclass(frozen=True, slots=True)
class OrderReport:
    """A region and how many orders it has, by rule. `counts` is empty if no rule was asked for."""

    region: CompiledRegion
    counts: Mapping[str, OrderCount] = field(default_factory=dict)


def explain_order(compiled: Compiled, rule: CountingRule | None = None) -> tuple[OrderReport, ...]:
    """Return a report for every region. With a `rule`, its orders are counted by that rule, and also as `merged` and as `legal`,
    which are the orders of this compiler."""
    if rule is None:
        return tuple(OrderReport(region) for region in compiled.regions)
    stored = {t.name: t for t in compiled.program.inputs}
    reports = []
    for region in compiled.regions:
        stored |= region.fused.stored
        counts: dict[str, OrderCount] = {}
        if region.einsums:  # a copy has no Einsums that could be inlined
            counts |= {"reference": count_reference(compiled.program, region.fused, stored)} if rule == "reference" else {}
            counts["merged"] = count_merged(compiled.program, region.fused, stored)
        reports.append(OrderReport(region, counts | {"legal": count_legal(region.fused)}))
        stored |= region.result_types
    return tuple(reports)


def inputs_without_data(compiled: Compiled) -> tuple[str, ...]:
    """Return the inputs without data, whose statistics had to be assumed."""
    return tuple(t.name for t in compiled.program.inputs if t.name not in compiled.source.tensors)


@dataclass(frozen=True, slots=True)
class LoopSummary:
    """A loop of a region, for a table: its index, the size of the index and of the blocks that it runs over (1 for single
    elements).

    `results` keep the index, `reduced` are the reductions over it, and `views` read along it. `names` are its names in those
    Einsums that name it differently.
    """

    index: str
    size: int
    block: int
    results: tuple[str, ...]
    reduced: tuple[str, ...]
    views: tuple[str, ...]
    names: tuple[str, ...]


def summarize_loops(region: FusedRegion) -> list[LoopSummary]:
    """Return the loops of a region, in the order of its indices."""
    folds, blocks = reductions(*region.trees), region.blocks
    return [
        LoopSummary(
            index=v,
            size=region.sizes[v],
            block=blocks.get(v, 1),
            results=tuple(r.name for r in region.results if v in r.indices),
            reduced=tuple(dict.fromkeys(f"{r.op} {r}" for r in folds if v in r.over)),
            views=tuple(str(view) for view in region.views if v in view.indices),
            names=tuple(f"{e}.{own}" for e, names in region.local_names.items() for own, now in names.items() if now == v != own),
        )
        for v in region.indices
    ]
