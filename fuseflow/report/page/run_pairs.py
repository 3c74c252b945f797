"""The regions and the nodes of two runs that correspond, and the table of how much faster the second is than the first, its baseline.

Regions are put together if they compute the same Einsum. Nodes are, in any lane and region, if their name, primitive and Einsum are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup
from networkx.utils import UnionFind

from fuseflow.report.page.catalog import WAITS, node_processes
from fuseflow.report.page.html_elements import Bar, Cell, Column, Link, html_table
from fuseflow.report.page.regions import repeated_label
from fuseflow.report.page.run_directory import StoredRun, Values

_COPY = re.compile(r"'\d+$")
"""The end of a name that tells nodes of one name in a region apart."""


@dataclass(frozen=True, slots=True)
class RegionPair:
    """Regions of one run, and regions of another that compute the same Einsums. Either may be empty, if one run computes none."""

    before: tuple[Values, ...]
    after: tuple[Values, ...]

    @property
    def name(self) -> str:
        """The name of the pair: the regions of the second run, or of the first where the second has none."""
        return ", ".join(region["name"] for region in self.after or self.before)

    @property
    def cycles(self) -> tuple[int, int]:
        """The cycles of the regions of both sides, repeated regions included."""
        before, after = (sum(region["times"] * region["cycles"] for region in side) for side in (self.before, self.after))
        return before, after

    @property
    def einsums(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(einsum for region in (*self.before, *self.after) for einsum in region["einsums"]))


def region_pairs(before: StoredRun, after: StoredRun) -> tuple[RegionPair, ...]:
    """Return the regions of two runs in pairs, in the order of the second run. Regions that only the first run has come last.

    A region with repeats counts for all regions that run like it. Copies, which compute no Einsum, are paired by their names.
    """
    first, second = before.result["regions"], after.result["regions"]
    every: list[Values] = [*second, *first]
    owner: dict[str, int] = {}
    together = UnionFind(range(len(every)))
    for k, region in enumerate(every):
        for einsum in region["einsums"] or (f"region {region['name']}",):
            together.union(owner.setdefault(einsum, k), k)
    groups: dict[int, tuple[list[Values], list[Values]]] = {}
    for k, region in enumerate(every):
        groups.setdefault(together[k], ([], []))[k < len(second)].append(region)
    return tuple(RegionPair(tuple(of_first), tuple(of_second)) for of_first, of_second in groups.values())


def speed_up(before: int, after: int) -> str:
    """Return the speed-up from `before` to `after`, which are cycles, as text; "" if one of them is 0."""
    return f"{before / after:.2f}" if before and after else ""


def speed_up_table(
    pairs: Sequence[RegionPair], links: Sequence[Link | None], cycles: tuple[int, int], sides: tuple[str, str] = ("A", "B")
) -> Markup:
    """Return a row for each pair of regions, whose name leads to its link, and a row for the whole runs, which take `cycles`.
    `sides` name the runs."""
    first, second = sides
    columns = (
        Column(f"regions of {second}", f"that compute the same as those of {first}", words=True),
        Column(f"regions of {first}", words=True),
        Column(f"{first}, cycles"),
        Column(f"{second}, cycles"),
        Column("speed-up", f"the cycles of {first}, divided by those of {second}"),
        Column("saved, cycles", f"the cycles of {first} less those of {second}"),
        Column(
            "of the slower", f"what is saved, of the slower of both: green where {second} is faster, red where slower", words=True
        ),
    )
    rows: list[tuple[Cell, ...]] = []
    for pair, link in zip(pairs, links, strict=True):
        before, after = pair.cycles
        name: Cell = link if link is not None else ", ".join(map(repeated_label, pair.after)) or "none"
        names = name, ", ".join(map(repeated_label, pair.before)) or "none"
        rows.append((*names, before, after, speed_up(before, after), before - after, _change(before, after)))
    total = speed_up(*cycles), cycles[0] - cycles[1], _change(*cycles)
    rows.append(("total", "total", *cycles, *total))
    return html_table(columns, rows, sortable=False)


def _change(before: int, after: int) -> Bar | None:
    if before == after:
        return None
    return Bar(100 * abs(before - after) / max(before, after), "good" if after < before else "bad")


@dataclass(slots=True)
class NodeSide:
    """The nodes of one run in a pair: their regions and names, the sum of their firings, and the cycles in which the busiest of
    them works, is starved, waits for memory and is blocked."""

    names: list[tuple[str, str]] = field(default_factory=list)
    firings: int = 0
    busy: int = 0
    starved: int = 0
    memory: int = 0
    blocked: int = 0

    def add(self, region: str, node: Values) -> None:
        self.names.append((region, node["name"]))
        self.firings += node["firings"]
        if node["occupied"] >= self.busy:
            processes = node_processes(node)
            self.busy = node["occupied"]
            self.starved, self.memory, self.blocked = (node[key] // processes for key in WAITS.values())


@dataclass(frozen=True, slots=True)
class NodePair:
    """A node of both runs, or of one of them."""

    name: str
    op: str
    einsum: str
    before: NodeSide
    after: NodeSide

    @property
    def change(self) -> int:
        """The cycles that the busiest node works longer in the second run."""
        return self.after.busy - self.before.busy


def node_pairs(pair: RegionPair, before: StoredRun, after: StoredRun) -> tuple[NodePair, ...]:
    """Return the nodes of a pair of regions, the largest change first."""
    sides: dict[tuple[str, str, str], NodePair] = {}
    for second, (regions, stored) in enumerate(((pair.before, before), (pair.after, after))):
        for region, node, key in _keyed(regions, stored):
            nodes = sides.setdefault(key, NodePair(*key, NodeSide(), NodeSide()))
            (nodes.after if second else nodes.before).add(region, node)
    return tuple(sorted(sides.values(), key=lambda p: (-abs(p.change), p.name, p.op, p.einsum)))


def _keyed(regions: Sequence[Values], stored: StoredRun) -> Iterator[tuple[str, Values, tuple[str, str, str]]]:
    """Yield the name of the region, the node and its key, which nodes of a pair share: name without lanes, primitive, Einsum."""
    for region in regions:
        compiled, _ = stored.compiled.get(region["name"], ({}, None))
        origins = compiled.get("origins", {})
        for node in region["statistics"]["nodes"]:
            name = _COPY.sub("", node["name"].partition("/")[0])
            yield region["name"], node, (name, node["op"], ", ".join(origins.get(node["name"], ())))
