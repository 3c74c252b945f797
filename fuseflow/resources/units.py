"""The table of units: what each primitive is in hardware. A primitive without a row is refused by `tests/resources/test_units.py`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from fuseflow.samml import nodes as n
from fuseflow.samml.node import require_entry

UnitKind: TypeAlias = Literal["none", "stream", "operator"]
"""The kind of hardware: none at all, a unit that computes nothing, or the lanes of the operator that the node applies."""


class UnitRow(NamedTuple):
    """The kind of hardware of a primitive, and the area of its rules in gate equivalents. `at_memory` is that of one that asks a memory
    that takes time. A fork, a merge and a join have as much for each branch.

    The areas are means of what yosys makes of the modules of small models, and of random graphs for what these lack:
    `tools/area_weights.py` writes them. A `select` has no circuit, and counts like an accumulator.
    """

    kind: UnitKind
    area: int
    at_memory: int = 0


UNITS: Mapping[type[n.Node], UnitRow] = MappingProxyType(
    {
        n.Root: UnitRow("none", 23),
        n.Scan: UnitRow("stream", 476, 1622),
        n.Range: UnitRow("stream", 226),
        n.Locate: UnitRow("stream", 116, 773),
        n.Join: UnitRow("stream", 109),
        n.Align: UnitRow("stream", 266),
        n.Repeat: UnitRow("stream", 273),
        n.Load: UnitRow("stream", 77, 556),
        n.Alu: UnitRow("operator", 202),
        n.Reduce: UnitRow("operator", 485),
        n.Accumulate: UnitRow("operator", 690),
        n.Permute: UnitRow("stream", 530),
        n.Drop: UnitRow("stream", 541),
        n.Select: UnitRow("stream", 690),
        n.Flatten: UnitRow("stream", 273),
        n.SplitLevel: UnitRow("stream", 178),
        n.Fork: UnitRow("stream", 26),
        n.Merge: UnitRow("stream", 89),
        n.WriteLevel: UnitRow("stream", 18, 558),
        n.WriteValues: UnitRow("stream", 47, 318),
        n.WriteLaneLevel: UnitRow("stream", 18),
        n.WriteLaneValues: UnitRow("stream", 47, 336),
    }
)
"""The hardware of each primitive."""

Arithmetic: TypeAlias = Literal["mul", "add", "special"]
"""The components that are lanes of arithmetic."""

ARITHMETIC: Mapping[str, Arithmetic] = MappingProxyType(
    {"add": "add", "logic": "add", "mul": "mul", "div": "special", "transcendental": "special"}
)
"""The lanes on which the operators of each latency class run. A comparison is a subtraction of which the sign is kept."""


def unit_kind(node: n.Node) -> UnitKind:
    """Return the kind of hardware of a node. Raises `GraphError` for a primitive without a row."""
    return unit_row(node).kind


def unit_row(node: n.Node) -> UnitRow:
    """Return the row of a node. Raises `GraphError` for a primitive without one."""
    return require_entry(UNITS, type(node), "row in the table of units (fuseflow/resources/units.py)")
