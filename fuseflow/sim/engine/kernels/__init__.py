"""Each primitive has a file here, with the kernel that runs it and the rule that lays out a node of a graph for it."""

from fuseflow.samml.nodes import Node
from fuseflow.sim.engine.kernels import (
    accumulate,
    align,
    alu,
    drop,
    flatten_split,
    fork_merge,
    join,
    load,
    locate,
    permute,
    reduce,
    repeat,
    root,
    scan,
    select,
    write,
)
from fuseflow.sim.engine.node_layout import LayoutRule

_FAMILIES = (
    accumulate, align, alu, drop, flatten_split, fork_merge, join, load, locate, permute, reduce, repeat, root, scan, select, write
)  # fmt: skip
RULES: dict[type[Node], LayoutRule] = {kind: rule for family in _FAMILIES for kind, rule in family.RULES.items()}
