"""The joint loop: nodes in graph order, each until it is blocked, until nothing moves."""

from __future__ import annotations

from fuseflow.sim.engine.jit import call_kernel
from fuseflow.sim.engine.nodes import ENDED, NODE, node_at

NODE_SIZE = NODE.size
STUCK, BUSY, FAULT = 0, 1, 2


def sweep(nodes: int, count: int, budget: int) -> int:
    """Visit the nodes in rounds. STUCK: a round without a firing; BUSY: more than `budget` firings; FAULT: a node has a fault."""
    fired = 0
    while True:
        before = fired
        for i in range(count):
            address = nodes + NODE_SIZE * i
            node = node_at(address)
            if node.waits == ENDED:
                continue
            fired -= node.firings
            call_kernel(node.kernel, address)
            fired += node.firings
            if node.fault != 0:
                return FAULT
        if fired == before:
            return STUCK
        if fired > budget:
            return BUSY
