"""The primitive `link` passes every token on: a hop of an array at which the route of a stream divides."""

from __future__ import annotations

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_firing import fire, node_at, pass_control, room_at, source, target, tokens_at
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part
from fuseflow.sim.engine.stream_rings import head_run, is_control, pass_on, push, take, visible


def link(node: n.Link, layout: NodeLayout) -> list[Part]:
    return layout.part(run_link)


def run_link(address: int) -> int:
    """Fire once for each token, which goes to all readers."""
    node = node_at(address)
    x, out = source(node, 0), target(node, 0)
    while True:
        k = min(tokens_at(node, 0), node.burst)
        if k == 0:
            return 0
        k = min(k, room_at(node, 0))
        if k == 0:
            return 0
        visible_at = visible(x)
        if is_control(x):
            if not pass_control(node, head_run(x).word, visible_at, out.free):
                return 0
            continue
        kind, word = pass_on(head_run(x), x.offset, out, k)
        t = fire(node, visible_at, out.free, k)
        take(x, k, t)
        push(out, kind, word, k, t)


RULES: dict[type[n.Node], LayoutRule] = {n.Link: link}
