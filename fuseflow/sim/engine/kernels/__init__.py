"""One primitive a file: its kernel, and how a node of a graph is laid out for it."""

from fuseflow.samml.nodes import Node
from fuseflow.sim.engine.kernels import (
    accumulate,
    align,
    alu,
    drop,
    flatten_split,  # fmt: skip
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
)
from fuseflow.sim.engine.node_layout import Rule

_FAMILIES = (
    accumulate,
    align,
    alu,
    drop,
    join,
    fork_merge,
    flatten_split,
    load,
    locate,
    permute,
    reduce,
    repeat,
    root,
    scan,
    write,
)
RULES: dict[type[Node], Rule] = {kind: rule for family in _FAMILIES for kind, rule in family.RULES.items()}
