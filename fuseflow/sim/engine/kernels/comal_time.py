"""A step that takes no time on the `comal` machine: a token is inspected without a firing."""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import inline
from fuseflow.native.signatures import call_note
from fuseflow.sim.engine.node_records import traced_at


@inline
def look_only(node: Any, visible_at: int) -> int:
    """Inspect a token that is visible from cycle `visible_at` on, without firing. Return the cycle of the inspection."""
    if node.tracer != 0:
        call_note(traced_at(node.tracer).note, node.tracer, max(node.ready, visible_at), 0, visible_at, 0)
    idle = visible_at - node.last - 1
    if idle > 0:
        node.starved += idle
        node.last = visible_at - 1
        node.ready = visible_at
    return node.ready
