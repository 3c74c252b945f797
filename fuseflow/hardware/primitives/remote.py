"""The nodes that make requests to a memory that takes time, and their rules there. Computed levels and resident tensors need
none."""

from __future__ import annotations

from fuseflow.hardware.node_context import NodeContext
from fuseflow.hardware.primitives.remote_lookup import kept_locate, locate, looked_up_scan
from fuseflow.hardware.primitives.remote_read import load, walked_scan
from fuseflow.hardware.primitives.remote_write import write_lane_values, write_level, write_values
from fuseflow.rules.context import Builder
from fuseflow.rules.rules import Module
from fuseflow.samml import nodes as n


def asks(node: n.Node, context: NodeContext) -> bool:
    """Return whether a node makes requests to the memory of the machine."""
    if context.memory is None or not isinstance(node, n.TensorUser) or not node.asks_memory(context.declared):
        return False
    return not isinstance(node, n.Scan | n.WriteLevel) or bool(context.level(node).stored)


def _scan(node: n.Scan, context: NodeContext, m: Module) -> None:
    reads = context.level(node).reads(context.size(node))
    if reads.entries is None:
        looked_up_scan(node, context, m, reads.scanned)
    else:
        walked_scan(node, context, m, reads.entries, reads.scanned)


def _locate(node: n.Locate, context: NodeContext, m: Module) -> None:
    level = context.level(node)
    if level.kept:
        entries = level.reads(context.size(node)).entries
        assert entries is not None, "what is kept has entries"
        kept_locate(node, context, m, entries)
    else:
        locate(node, context, m)


REMOTE_RULES: dict[type[n.Node], Builder] = {
    n.Scan: _scan,
    n.Locate: _locate,
    n.Load: load,
    n.WriteLevel: write_level,
    n.WriteValues: write_values,
    n.WriteLaneValues: write_lane_values,
}
