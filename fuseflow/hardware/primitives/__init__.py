"""The rules of every primitive that has a circuit: those of `fuseflow.primitives`, and of primitives that read, write, compute or have
workspaces, one file for each family."""

from __future__ import annotations

from fuseflow import primitives
from fuseflow.hardware.primitives import pointwise, scan, workspace, write
from fuseflow.rules.context import Builder
from fuseflow.samml import nodes as n

_FAMILIES = (pointwise, scan, workspace, write)
RULES: dict[type[n.Node], Builder] = primitives.RULES | {
    kind: build for family in _FAMILIES for kind, build in family.RULES.items()
}
