"""A memory that answers every request after a fixed number of cycles, whatever its address and however many requests there are.

A circuit without a model of DRAM has such a memory behind its ports (`fuseflow/hardware/sv/ff_fixed_memory.sv`).
"""

from __future__ import annotations

from fuseflow.memory.ports import LATE, finish, memory_at, port_at, request_at, settle
from fuseflow.memory.sending import head_of, mark_sent, next_port, start_sending
from fuseflow.native.records import Record

FIXED = Record("latency")
"""The state of the model, which does not change."""
fixed_at = FIXED.at


def advance_fixed(memory: int, until: int) -> int:
    """Answer the requests at a memory that arrive before cycle `until`. Returns 0, or LATE if a request is older than the last window."""
    if start_sending(memory, until) == LATE:
        return LATE
    latency = fixed_at(memory_at(memory).model).latency
    port = next_port(memory, until)
    while port != 0:
        p, r = port_at(port), request_at(head_of(port))
        r.left = 1
        p.transactions += 1
        finish(port, p.sent, r.cycle, r.cycle + latency)
        mark_sent(memory, port)
        port = next_port(memory, until)
    settle(memory, until)
    return 0
