"""A step that takes no time on the `comal` machine: a look at a token without a firing."""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import inline
from fuseflow.native.signatures import call_note
from fuseflow.sim.engine.node_records import traced_at


@inline
def look_only(node: Any, visible_at: int) -> int:
    """Look at a token without firing, and return the cycle: the node gets there no earlier than the token is visible."""
    if node.tracer != 0:
        call_note(traced_at(node.tracer).note, node.tracer, max(node.ready, visible_at), 0, visible_at, 0)
    idle = visible_at - node.last - 1
    if idle > 0:
        node.starved += idle
        node.last = visible_at - 1
        node.ready = visible_at
    return node.ready
