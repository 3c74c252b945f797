"""This kernel runs a `root` that waits until all tensors are in the scratchpad that are loaded before the graph begins."""

from __future__ import annotations

from fuseflow.native.records import Record
from fuseflow.sim.engine.memory_ports import answer_cycle, requester_at, wait_for_answer
from fuseflow.sim.engine.node_firing import ENDED, WAIT, close, fire, node_at, room_at, target
from fuseflow.sim.engine.stream_rings import AFFINE, CONTROL, DONE, push

LOADED_ROOT = Record("loads")
"""`loads` is the address of the requester of the lines that are loaded."""
state_at = LOADED_ROOT.at


def run_root_loaded(address: int) -> int:
    """Fire for the reference once the last line has come, then for `D`."""
    node = node_at(address)
    loads, out = requester_at(state_at(node.state).loads), target(node, 0)
    if node.firings == 0:
        answer = answer_cycle(node, loads, loads.lines - 1)
        if answer == WAIT or room_at(node, 0) == 0:
            return 0
        push(out, AFFINE, 0, 1, fire(node, wait_for_answer(node, 0, answer), out.free, 1))
    if room_at(node, 0) > 0:
        push(out, CONTROL, DONE, 1, close(node, 0, out.free))
        node.waits = ENDED
    return 0
