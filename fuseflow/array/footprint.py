"""Footprints: how many tiles of which kind a primitive takes.

    repeat: {PE: 2}
    accumulate: {PE: 4, MEM: order + 1}
    memory: {MEM: 1, port: 1}

The rows are the primitives by name. Three rows are of the place of data: `memory` of all nodes that ask the memory, `on_chip` of those
that read or write an array on the chip, and `locate` of those that compute a reference from a coordinate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from fuseflow.errors import ArrayError, did_you_mean
from fuseflow.samml import nodes as n
from fuseflow.samml.primitives import NODE_TYPES
from fuseflow.yaml_text import read_yaml, shipped_names, shipped_text

PORT = "port"
"""The kind of a port in a footprint, whatever its name in an array is."""
VARIABLES = ("inputs", "lanes", "order", "sides")
"""What a number of tiles may depend on: the streams that a node reads, its lanes, the order of its accumulation, and the sides that it
joins, where a side with several payloads counts as several."""
WITHOUT_TILE = n.Root, n.Link
"""The primitives that take no tile: a root is a bit of what reads it, and a link is the register of a hop."""
ROWS = (
    *("memory", "on_chip", "locate"),
    *(kind.op for kind in NODE_TYPES if not issubclass(kind, (n.TensorUser, *WITHOUT_TILE))),
)
MOST_TILES = 1024
"""The most tiles of a kind that a row may state as a number."""
_NUMBER = re.compile(r"(?:(?P<variable>[a-z]+)\s*(?:(?P<sign>[+-])\s*(?P<offset>\d{1,4}))?|(?P<number>\d{1,4}))", re.ASCII)


@dataclass(frozen=True, slots=True)
class TileNumber:
    """A number of tiles: a variable of a node, or none, plus an offset."""

    offset: int
    variable: str = ""

    @classmethod
    def parse(cls, value: int | str) -> TileNumber:
        """Return the number that a text such as `3`, `order + 1` or `lanes` states. Raises `ValueError`."""
        match = _NUMBER.fullmatch(str(value).strip())
        if match is None or (match["variable"] and match["variable"] not in VARIABLES):
            raise ValueError(f"`{value}` is no number of tiles")
        if match["number"]:
            number = int(match["number"])
            if number > MOST_TILES:
                raise ValueError(f"{number:,} tiles are more than {MOST_TILES:,}")
            return cls(number)
        offset = int(match["offset"] or 0)
        return cls(-offset if match["sign"] == "-" else offset, match["variable"])

    def of(self, node: n.Primitive) -> int:
        """Return the number for a node. It is never below 0."""
        return max(0, self.offset + _variable(self.variable, node))


def _variable(name: str, node: n.Primitive) -> int:
    match name, node:
        case "", _:
            return 0
        case "inputs", _:
            return len(node.inputs)
        case "lanes", n.Fork() | n.Merge():
            return max(len(node.inputs), len(node.ports))
        case "order", n.Accumulate():
            return node.order
        case "sides", n.Join():
            return sum(max(1, payloads) for payloads in node.payloads)
    raise ArrayError(
        f"the footprint of `{node.op}` has `{name}`, which that primitive does not have",
        hint=f"`inputs` is known of all primitives: the streams that it reads ({len(node.inputs)} here)",
    )


@dataclass(frozen=True)  # with a place for cached values
class Footprint:
    """The tiles of each primitive, by kind and in their order in a chain. `source` names the footprint in errors."""

    rows: Mapping[str, tuple[tuple[str, TileNumber], ...]]
    source: str
    _counts: dict[object, Mapping[str, int]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, rows: Mapping[str, Mapping[str, int | str]], source: str) -> Footprint:
        """Return the footprint that the rows of a file state. Raises `ArrayError` for a row or a number that is none."""
        parsed: dict[str, tuple[tuple[str, TileNumber], ...]] = {}
        for row, tiles in rows.items():
            if row not in ROWS:
                raise ArrayError(f"{source} has a row `{row}`, which is no primitive", hint=did_you_mean(row, ROWS))
            try:
                parsed[row] = tuple((kind, TileNumber.parse(number)) for kind, number in tiles.items())
            except ValueError as error:
                hint = f"write a whole number, or one of {', '.join(VARIABLES)}, as in `order + 1`"
                raise ArrayError(f"{source}, row `{row}`: {error}", hint=hint) from error
        return cls(parsed, source)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of tiles that any primitive takes, without ports."""
        return tuple(dict.fromkeys(kind for row in self.rows.values() for kind, _ in row if kind != PORT))

    def tiles(self, node: n.Primitive, tensors: Mapping[str, n.TensorDecl]) -> Mapping[str, int]:
        """Return the number of tiles of each kind that a node takes, and of ports: none for `WITHOUT_TILE`. Raises
        `ArrayError` for a primitive without a row."""
        row = row_of(node, tensors)
        if row is None:
            return {}
        key = row, len(node.inputs), len(node.ports), node.payloads if isinstance(node, n.Join) else ()
        if key not in self._counts:
            if row not in self.rows:
                raise ArrayError(
                    f"{self.source} has no row `{row}`, which node `{node.name}` needs",
                    hint=f"its rows are {', '.join(self.rows)}",
                )
            self._counts[key] = {kind: number.of(node) for kind, number in self.rows[row]}
        return self._counts[key]


def row_of(node: n.Primitive, tensors: Mapping[str, n.TensorDecl]) -> str | None:
    """Return the row of a footprint that a node has; None for one of `WITHOUT_TILE`."""
    if isinstance(node, n.TensorUser):
        if node.asks_memory(tensors) and not tensors[node.tensor].scratchpad:
            return "memory"
        return "locate" if isinstance(node, n.Locate) else "on_chip"
    return None if isinstance(node, WITHOUT_TILE) else node.op


def footprint_names() -> tuple[str, ...]:
    """Return the names of the footprints that ship with the package, sorted."""
    return shipped_names("fuseflow.array", "footprints")


@cache
def footprint_of(name: str) -> Footprint:
    """Return a footprint that ships with the package."""
    return Footprint.of(
        read_yaml(shipped_text("fuseflow.array", "footprints", name), f"{name}.yaml", ArrayError).content,
        f"the footprint `{name}`",
    )
