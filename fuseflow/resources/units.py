"""The table of units: what each primitive is in hardware. A primitive without a row is refused by `tests/resources/test_units.py`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from fuseflow.samml import nodes as n
from fuseflow.samml.node import require_entry

UnitKind: TypeAlias = Literal["none", "stream", "operator"]
"""The kind of hardware: none at all, a unit that computes nothing, or the lanes of the operator that the node applies."""

UNITS: Mapping[type[n.Node], UnitKind] = MappingProxyType(
    {
        n.Root: "none",
        n.Scan: "stream",
        n.Range: "stream",
        n.Locate: "stream",
        n.Join: "stream",
        n.Align: "stream",
        n.Repeat: "stream",
        n.Load: "stream",
        n.Alu: "operator",
        n.Reduce: "operator",
        n.Accumulate: "operator",
        n.Permute: "stream",
        n.Drop: "stream",
        n.Select: "stream",
        n.Flatten: "stream",
        n.SplitLevel: "stream",
        n.Fork: "stream",
        n.Merge: "stream",
        n.WriteLevel: "stream",
        n.WriteValues: "stream",
    }
)
"""The kind of hardware of each primitive."""

Arithmetic: TypeAlias = Literal["mul", "add", "special"]
"""The components that are lanes of arithmetic."""

ARITHMETIC: Mapping[str, Arithmetic] = MappingProxyType(
    {"add": "add", "logic": "add", "mul": "mul", "div": "special", "transcendental": "special"}
)
"""The lanes on which the operators of each latency class run. A comparison is a subtraction of which the sign is kept."""


def unit_kind(node: n.Node) -> UnitKind:
    """Return the kind of hardware of a node. Raises `GraphError` for a primitive without a row."""
    return require_entry(UNITS, type(node), "row in the table of units (fuseflow/resources/units.py)")
