"""The things that a page is about: regions, nodes, FIFOs, tensors, Einsums and lines of source text, or the points of a sweep. Each has
one number and one place in the address bar, wherever its name stands on the page.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

Kind: TypeAlias = Literal["region", "point", "node", "fifo", "tensor", "einsum", "line"]

LONGEST_KEY = 60
"""The letters of a name that stand in the address bar. Longer names end in the number of the thing."""


@dataclass(slots=True, eq=False)
class Thing:
    """A thing with the facts that the page shows about it.

    `key` is its place in the address bar. `region` is the region that it belongs to, if there is one. `facts` are pairs of a label
    and a text. `links` has other things, by the label of their relation to this thing. `shares` are percents, by the way in which a
    graph may be coloured.
    """

    number: int
    kind: Kind
    name: str
    key: str
    region: Thing | None = None
    facts: list[tuple[str, str]] = field(default_factory=list)
    links: dict[str, list[Thing]] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)

    def link(self, label: str, things: Iterable[Thing | None]) -> None:
        """Add links under a label. Each thing is linked once, and None is left out."""
        known = dict.fromkeys((*self.links.get(label, ()), *(thing for thing in things if thing is not None)))
        if known:
            self.links[label] = list(known)

    def values(self) -> dict[str, Any]:
        """Return the thing as plain values for the scripts of the page, without empty ones."""
        values: dict[str, Any] = {"kind": self.kind, "name": self.name, "key": self.key}
        values |= {} if self.region is None else {"region": self.region.number}
        values |= {"facts": self.facts} if self.facts else {}
        values |= (
            {"links": {label: [thing.number for thing in things] for label, things in self.links.items()}} if self.links else {}
        )
        return values | ({"shares": self.shares} if self.shares else {})


def number_of(thing: Thing | None) -> int | None:
    """Return the number by which the scripts of a page know a thing."""
    return None if thing is None else thing.number


class Things:
    """The things of a page, in the order in which they were added, which is the order of their numbers."""

    def __init__(self) -> None:
        self._things: dict[tuple[Kind, str, str], Thing] = {}
        self._keys: set[str] = set()

    def add(self, kind: Kind, name: str, region: str = "") -> Thing:
        """Return a thing, which is made if it is new. Nodes and FIFOs are things of their `region`."""
        if (kind, region, name) not in self._things:
            number = len(self._things)
            inside = self.find("region", region) if region else None
            self._things[kind, region, name] = Thing(number, kind, name, self._key(kind, region, name, number), inside)
        return self._things[kind, region, name]

    def find(self, kind: Kind, name: str, region: str = "") -> Thing | None:
        """Return a thing, or None if it is no thing of the page."""
        return self._things.get((kind, region, name))

    def _key(self, kind: Kind, region: str, name: str, number: int) -> str:
        parts = [kind, *([region] if region else []), name]
        key = "/".join(quote(part[:LONGEST_KEY].encode("utf-8", "replace"), safe="") for part in parts)
        if any(len(part) > LONGEST_KEY for part in parts) or key in self._keys:
            key += f"~{number}"
        self._keys.add(key)
        return key

    def values(self) -> list[dict[str, Any]]:
        return [thing.values() for thing in self._things.values()]
