"""Firing rules of primitives: one file for each family. The reference simulator interprets them, and `fuseflow.hardware` prints them as
circuits."""

from __future__ import annotations

from fuseflow.primitives import align, drop, flatten_split, fork_merge, join, pointwise, reduce, repeat
from fuseflow.rules.context import Builder
from fuseflow.samml import nodes as n

_FAMILIES = (align, drop, flatten_split, fork_merge, join, pointwise, reduce, repeat)
RULES: dict[type[n.Node], Builder] = {kind: build for family in _FAMILIES for kind, build in family.RULES.items()}
