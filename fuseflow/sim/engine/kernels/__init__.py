"""Kernels: one file for each primitive, with what it runs and how a node of a graph is laid out for it."""

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
    write,
)  # fmt: skip
from fuseflow.sim.engine.node_layout import Rule

_FAMILIES = (
    accumulate, align, alu, drop, flatten_split, fork_merge, join, load, locate, permute, reduce, repeat, root, scan, write
)  # fmt: skip
RULES: dict[type[Node], Rule] = {kind: rule for family in _FAMILIES for kind, rule in family.RULES.items()}
