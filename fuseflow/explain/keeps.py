"""Every `keep` of a program: where it is computed, why there, and its costs.

`keep(2 of 4 over j)` holds a group of four inside its region. `keep(1000 over i, j)` must see all of its operand, so it is a
region between two boundaries: its operand is written and read, and so is its result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from fuseflow.costs import TensorStatistics, expected_traffic
from fuseflow.costs.stream_shapes import ExpectedStream
from fuseflow.fusion.tree import Selection, nodes
from fuseflow.keep_rules import Kind, Largest, Threshold, kind, show_keep
from fuseflow.lower.regions import CompiledRegion
from fuseflow.samml.nodes import Port


@dataclass(frozen=True, slots=True)
class KeptResult:
    """A result of which a region keeps only some entries, and the costs of keeping them.

    `rule` is its text, in the indices of the region. `places` is how many times the region computes it. `held` is the most
    entries that one of these computations holds before it decides. A rule that must see a whole result is a region for itself,
    and `read` and `written` are the bytes that this region moves, as expected from tensor statistics. They are 0 if the rule is
    among other statements.
    """

    name: str
    region: str
    rule: str
    kind: Kind
    places: int
    held: int
    read: float
    written: float
    why: str


def kept_results(
    regions: Sequence[CompiledRegion],
    streams: Mapping[str, Mapping[Port, ExpectedStream]],
    statistics: Mapping[str, TensorStatistics],
    user_names: Mapping[str, str],
) -> tuple[KeptResult, ...]:
    """Return every result of which regions keep only some entries, region by region. `streams` are the expected streams of each region."""
    rows: list[KeptResult] = []
    for region in regions:
        selections: dict[str, list[Selection]] = {}
        for node in nodes(*region.fused.trees):
            if isinstance(node, Selection):
                selections.setdefault(node.label, []).append(node)
        for label, places in selections.items():
            rows.append(_kept_result(user_names.get(label, label), region, places, streams[region.name], statistics))
    return tuple(rows)


def _kept_result(
    name: str,
    region: CompiledRegion,
    places: Sequence[Selection],
    streams: Mapping[Port, ExpectedStream],
    statistics: Mapping[str, TensorStatistics],
) -> KeptResult:
    first = places[0]
    needs, over = kind(first.rule, first.over), ", ".join(f"`{v}`" for v in first.over)
    match first.rule:
        case Threshold():
            rule, held, why = show_keep(first.rule, ()), 0, "an entry is kept for its own value, and waits for no other"
        case Largest(every=every):
            extent = math.prod(region.fused.sizes[v] for v in first.over)
            rule, held = show_keep(first.rule, first.over), min(every or extent, extent)
            if every:
                why = f"the entries of a group wait for the last of {every} coordinates of {over}"
            elif len(first.over) == 1:
                why = f"the entries of a fiber along {over} wait for its last one"
            else:
                why = f"the first entry that is kept waits for all along {over}: what is compared and what is kept are stored"
        case unknown:
            assert_never(unknown)
    read = written = 0.0
    if needs == "materializing":
        graph = region.serial
        for tensor, moved in expected_traffic(graph, streams, statistics).items():
            read, written = (read, written + moved) if tensor in graph.outputs else (read + moved, written)
    return KeptResult(name, region.name, rule, needs, len(places), held, read, written, why)
