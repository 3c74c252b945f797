"""The rules of every primitive that has a circuit: one file for each family, as in `fuseflow.sim.reference`."""

from __future__ import annotations

from fuseflow.hardware.node_context import Builder
from fuseflow.hardware.primitives import (
    align,
    drop,
    flatten_split,
    fork_merge,
    join,
    pointwise,
    reduce,
    repeat,
    scan,
    workspace,
    write,
)
from fuseflow.samml import nodes as n

_FAMILIES = (align, drop, flatten_split, fork_merge, join, pointwise, reduce, repeat, scan, workspace, write)
RULES: dict[type[n.Node], Builder] = {kind: build for family in _FAMILIES for kind, build in family.RULES.items()}
