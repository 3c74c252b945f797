"""The things that a page is about: regions, nodes, FIFOs, tensors, Einsums and lines of source text, or the points of a sweep. Each has
one number and one place in the address bar, wherever its name stands on the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

Kind: TypeAlias = Literal["region", "point", "node", "fifo", "tensor", "einsum", "line"]

LONGEST_KEY = 60
"""The letters of a name that stand in the address bar. Longer names end in the number of the thing."""


@dataclass(slots=True)
class Thing:
    """A thing with the facts that the page shows about it.

    `key` is its place in the address bar. `region` is the number of the region that it belongs to, if there is one. `facts` are
    pairs of a label and a text. `links` has the numbers of other things, by the label of their relation to this thing. `shares`
    are percents, by the way in which a graph may be coloured.
    """

    kind: Kind
    name: str
    key: str
    region: int | None = None
    facts: list[tuple[str, str]] = field(default_factory=list)
    links: dict[str, list[int]] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)

    def link(self, label: str, numbers: Iterable[int | None]) -> None:
        """Add links under a label. Each thing is linked once, and a number that is None is left out."""
        known = [number for number in dict.fromkeys(numbers) if number is not None]
        if known:
            self.links[label] = list(dict.fromkeys((*self.links.get(label, ()), *known)))

    def values(self) -> dict[str, Any]:
        """Return the thing as plain values for the scripts of the page, without empty ones."""
        values: dict[str, Any] = {"kind": self.kind, "name": self.name, "key": self.key}
        values |= {} if self.region is None else {"region": self.region}
        values |= {"facts": self.facts} if self.facts else {}
        values |= {"links": self.links} if self.links else {}
        return values | ({"shares": self.shares} if self.shares else {})


class Things:
    """The things of a page by number, in the order in which they were added."""

    def __init__(self) -> None:
        self._things: list[Thing] = []
        self._numbers: dict[tuple[Kind, str, str], int] = {}
        self._keys: set[str] = set()

    def __iter__(self) -> Iterator[Thing]:
        return iter(self._things)

    def __getitem__(self, number: int) -> Thing:
        return self._things[number]

    def add(self, kind: Kind, name: str, region: str = "") -> int:
        """Return the number of a thing, which is made if it is new. Nodes and FIFOs are things of their `region`."""
        if (kind, region, name) not in self._numbers:
            number = self._numbers[kind, region, name] = len(self._things)
            inside = self._numbers.get(("region", "", region)) if region else None
            self._things.append(Thing(kind, name, self._key(kind, region, name, number), inside))
        return self._numbers[kind, region, name]

    def number(self, kind: Kind, name: str, region: str = "") -> int | None:
        """Return the number of a thing, or None if it is no thing of the page."""
        return self._numbers.get((kind, region, name))

    def _key(self, kind: Kind, region: str, name: str, number: int) -> str:
        parts = [kind, *([region] if region else []), name]
        key = "/".join(quote(part[:LONGEST_KEY].encode("utf-8", "replace"), safe="") for part in parts)
        if any(len(part) > LONGEST_KEY for part in parts) or key in self._keys:
            key += f"~{number}"
        self._keys.add(key)
        return key

    def values(self) -> list[dict[str, Any]]:
        return [thing.values() for thing in self._things]
