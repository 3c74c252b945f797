"""Memory that answers every request in the next cycle."""

from __future__ import annotations

from fuseflow.sim.memory.ports import LATE, finish, head_of, next_port, port_at, request_at, sent, settle, start_sending

LATENCY = 1


def advance_ideal(memory: int, until: int) -> int:
    """Answer what arrives before cycle `until`. Returns 0, or LATE."""
    if start_sending(memory) == LATE:
        return LATE
    port = next_port(memory, until)
    while port != 0:
        r = request_at(head_of(port))
        r.left = 1
        finish(head_of(port), r.cycle, r.cycle + LATENCY)
        port_at(port).transactions += r.bytes
        sent(port)
        port = next_port(memory, until)
    settle(memory, until)
    return 0
