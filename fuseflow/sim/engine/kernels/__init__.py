"""One primitive a file: its kernel, and how a node of a graph is laid out for it."""

from fuseflow.samml.nodes import Node
from fuseflow.sim.engine.kernels import (
    accumulate,
    align,
    alu,
    drop,
    join,
    lanes,
    levels,
    load,
    locate,
    permute,
    reduce,
    repeat,
    root,
    scan,
    write,
)  # fmt: skip
from fuseflow.sim.engine.place import Rule

_FAMILIES = (accumulate, align, alu, drop, join, lanes, levels, load, locate, permute, reduce, repeat, root, scan, write)
RULES: dict[type[Node], Rule] = {kind: rule for family in _FAMILIES for kind, rule in family.RULES.items()}
