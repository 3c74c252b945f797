"""Firing rules of primitives: one file for each family, whose `RULES` are found here. The reference simulator interprets them, and
`fuseflow.hardware` prints them as circuits."""

from __future__ import annotations

from fuseflow.firing_rules.context import Builder
from fuseflow.samml.node import Node, family_rows

RULES: dict[type[Node], Builder] = family_rows(__name__, __path__)
