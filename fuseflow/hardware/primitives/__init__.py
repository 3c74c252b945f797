"""The rules of every primitive that has a circuit: the rules in `fuseflow.primitives`, and of primitives that read, write,
compute or have workspaces, one file for each family, whose `RULES` are found here."""

from __future__ import annotations

from fuseflow import primitives
from fuseflow.rules.context import Builder
from fuseflow.samml.node import Node, family_rows

RULES: dict[type[Node], Builder] = primitives.RULES | family_rows(__name__, __path__)
