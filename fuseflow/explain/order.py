"""Why each region runs in the order it does: what its loops run over, and how many orders there are by each rule of counting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fuseflow.fusion import FusedRegion
from fuseflow.fusion.fuse import candidate_limit
from fuseflow.fusion.order_rules import OrderCount, count_legal, count_merged, count_reference
from fuseflow.fusion.tree import reductions
from fuseflow.lower.regions import CompiledRegion
from fuseflow.run.compiled import Compiled

CountingRule: TypeAlias = Literal["reference", "merged"]
"""The rule by which orders are counted: as the published compiler does, or with equal views merged."""


@dataclass(frozen=True, slots=True)
class OrderReport:
    """A region and how many orders it has, by rule (none were asked for: empty)."""

    region: CompiledRegion
    counts: Mapping[str, OrderCount] = field(default_factory=dict)


def explain_order(compiled: Compiled, rule: CountingRule | None = None) -> tuple[OrderReport, ...]:
    """Every region; with a `rule`, its orders are counted by that, and beside it with views merged and as they are legal here."""
    if rule is None:
        return tuple(OrderReport(region) for region in compiled.regions)
    stored = {t.name: t for t in compiled.program.inputs}
    found = []
    for region in compiled.regions:
        stored |= region.fused.stored
        counts: dict[str, OrderCount] = {}
        if region.einsums:  # a copy has no Einsums that could be inlined
            counts |= {"reference": count_reference(compiled.program, region.fused, stored)} if rule == "reference" else {}
            counts["merged"] = count_merged(compiled.program, region.fused, stored)
        found.append(OrderReport(region, counts | {"legal": count_legal(region.fused)}))
        stored |= region.result_types
    return tuple(found)


def inputs_without_data(compiled: Compiled) -> tuple[str, ...]:
    """Inputs whose statistics had to be assumed."""
    return tuple(t.name for t in compiled.program.inputs if t.name not in compiled.source.tensors)


def is_sampled(region: FusedRegion) -> bool:
    """Whether there were more orders than were compared."""
    return len(region.compared) >= candidate_limit(region) and count_legal(region).constrained.orders > len(region.compared)


@dataclass(frozen=True, slots=True)
class LoopSummary:
    """What an index stands for: its size, and that of the blocks that it runs over (1: single elements); the results that keep it, the
    reductions over it, the views that read along it, and what it is called in the Einsums where that is something else."""

    index: str
    size: int
    block: int
    results: tuple[str, ...]
    reduced: tuple[str, ...]
    views: tuple[str, ...]
    names: tuple[str, ...]


def summarize_loops(region: FusedRegion) -> list[LoopSummary]:
    made, blocks = reductions(*region.trees), region.blocks
    return [
        LoopSummary(
            index=v,
            size=region.sizes[v],
            block=blocks.get(v, 1),
            results=tuple(r.name for r in region.results if v in r.indices),
            reduced=tuple(dict.fromkeys(f"{r.op} {r}" for r in made if v in r.over)),
            views=tuple(str(view) for view in region.views if v in view.indices),
            names=tuple(f"{e}.{own}" for e, names in region.local_names.items() for own, now in names.items() if now == v != own),
        )
        for v in region.indices
    ]
