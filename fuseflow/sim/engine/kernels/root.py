"""The primitive `root` emits one reference, 0, and `D`. If tensors are loaded into the scratchpad before the graph begins, it waits until
they are there."""

from __future__ import annotations

from fuseflow.native.records import Record
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.memory_ports import loaded_cycle, wait_for_answer
from fuseflow.sim.engine.node_firing import ENDED, WAIT, close, fire, node_at, room_at, target
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


LOADED_ROOT = Record("loads")
"""`loads` is the address of the requester of the lines that are loaded."""
state_at = LOADED_ROOT.at


def run_root_loaded(address: int) -> int:
    """Fire for the reference once the last line has come, then for `D`."""
    node = node_at(address)
    out = target(node, 0)
    if node.firings == 0:
        loaded = loaded_cycle(node, state_at(node.state).loads)
        if loaded == WAIT or room_at(node, 0) == 0:
            return 0
        push(out, AFFINE, 0, 1, fire(node, wait_for_answer(node, 0, loaded), out.free, 1))
    if room_at(node, 0) > 0:
        push(out, CONTROL, DONE, 1, close(node, 0, out.free))
        node.waits = ENDED
    return 0


RULES: dict[type[n.Node], LayoutRule] = {n.Root: root}
