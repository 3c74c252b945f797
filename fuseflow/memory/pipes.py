"""Memories without queues, which ignore addresses: one that answers every request after a fixed number of cycles, as behind the ports of a
circuit without a model of DRAM (`fuseflow/hardware/sv/ff_fixed_memory.sv`), and that of the released Comal simulator.

Comal's is a pipe of fixed length, and not HBM2: it is there for comparison with Comal only. Eight channels take words of 4 bytes in
turn. A channel starts one request every 2 cycles and answers it 16 cycles later: these are 2 cycles, and a start-up of 14 for every
request. The queues are unbounded, so the memory moves at most 16 bytes a cycle. A port requests up to 8 words at once. Without contention
the answer is visible 19 cycles later: the latency, and one cycle each for the way there, the way back and the hand-over. These numbers
are derived from its source (https://github.com/stanford-ppl/comal), not measured.
"""

from __future__ import annotations

from fuseflow.memory.ports import (
    LATE,
    finish,
    memory_at,
    port_at,
    request_at,
    settle,
)
from fuseflow.memory.sending import head_of, mark_sent, next_port, start_sending
from fuseflow.native.records import Record, get_int, inline, set_int

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


CHANNELS = 8
WORD = 4
"""The bytes of a request to a channel."""
INTERVAL, LATENCY = 2, 16
HOPS = 3
ROUND_TRIP = LATENCY + HOPS

COMAL = Record("free turn")
"""The state of the model: the address of the first cycles in which channels can start a request, and the next word's channel."""
comal_at = COMAL.at


def advance_comal(memory: int, until: int) -> int:
    """Answer the requests at a memory that arrive before cycle `until`. Returns 0, or LATE if a request is older than the last window."""
    if start_sending(memory, until) == LATE:
        return LATE
    port = next_port(memory, until)
    while port != 0:
        p, r = port_at(port), request_at(head_of(port))
        r.left = (r.bytes + WORD - 1) // WORD
        p.transactions += r.left
        for _ in range(r.left):
            finish(port, p.sent, r.cycle, _start(memory, r.cycle) + ROUND_TRIP)
        mark_sent(memory, port)
        port = next_port(memory, until)
    settle(memory, until)
    return 0


@inline
def _start(memory: int, cycle: int) -> int:
    """Return the cycle in which the next channel in turn starts a word that arrives at `cycle`."""
    model = comal_at(memory_at(memory).model)
    started: int = max(cycle, get_int(model.free, model.turn))
    set_int(model.free, model.turn, started + INTERVAL)
    model.turn = (model.turn + 1) & (CHANNELS - 1)
    return started
