"""Each primitive has a kernel here that runs it and, in `RULES` of its file, the rule that lays out a node of a graph for it."""

from fuseflow.samml.node import Node, family_rows
from fuseflow.sim.engine.node_layout import LayoutRule

RULES: dict[type[Node], LayoutRule] = family_rows(__name__, __path__)
