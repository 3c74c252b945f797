"""The primitive `root` emits one reference, 0, and `D`."""

from __future__ import annotations

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_firing import ENDED, close, fire, node_at, room_at, target
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part
from fuseflow.sim.engine.stream_rings import AFFINE, CONTROL, DONE, push


def root(node: n.Root, layout: NodeLayout) -> list[Part]:
    return layout.part(run_root, computes=False)


def run_root(address: int) -> int:
    """Fire twice: for the reference, then for `D`."""
    node = node_at(address)
    out = target(node, 0)
    while room_at(node, 0) > 0:
        if node.firings == 0:
            push(out, AFFINE, 0, 1, fire(node, 0, out.free, 1))
        else:
            push(out, CONTROL, DONE, 1, close(node, 0, out.free))
            node.waits = ENDED
            return 0
    return 0


RULES: dict[type[n.Node], LayoutRule] = {n.Root: root}
