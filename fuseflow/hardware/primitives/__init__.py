"""The rules of every primitive that has a circuit: those in `fuseflow.primitives`, and one file here, with `RULES`, for each
family of primitives that read, write, compute or have workspaces."""

from __future__ import annotations

from fuseflow import primitives
from fuseflow.firing_rules.context import Builder
from fuseflow.samml.node import Node, family_rows

RULES: dict[type[Node], Builder] = primitives.RULES | family_rows(__name__, __path__)
