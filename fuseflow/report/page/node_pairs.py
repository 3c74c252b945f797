"""The nodes of two runs that correspond: they have the same name, primitive and Einsum, in any lane and region."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fuseflow.report.page.catalog import node_processes
from fuseflow.report.page.region_pairs import RegionPair
from fuseflow.report.page.run_directory import StoredRun, Values

_COPY = re.compile(r"'\d+$")
"""The end of a name that tells nodes of one name in a region apart."""


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
            self.starved, self.memory, self.blocked = (node[key] // processes for key in ("starved", "waited", "blocked"))


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
