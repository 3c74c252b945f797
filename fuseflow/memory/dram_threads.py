"""DRAM in threads: each thread sends the requests of its own ports, and runs some of the channels.

A window has three steps, between which all threads meet. In the first, each thread puts the transactions of its ports into
mailboxes, one for each channel. In the second, each channel takes them in the order in which one thread would have sent them, runs
to the end of the window, and reports what it completed. In the third, each thread finishes the requests of its ports. So results do
not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

from fuseflow.memory.channel import channel_at
from fuseflow.memory.dram import advance_channel, packed_place
from fuseflow.memory.mailboxes import MAILBOX_SIZE, THREAD_BITS, mailbox_at, message_at, message_of, take_completions
from fuseflow.memory.mapping import PLACE_BITS
from fuseflow.memory.ports import FOREVER, LATE, arrival, memory_at, port_at, request_at, settle
from fuseflow.memory.queues import enqueue
from fuseflow.memory.sending import head_of, mark_sent, next_port, start_sending
from fuseflow.native.records import Record, get_int, inline

SHARE = Record(
    "channels count places unit_bits "  # as in the state of the model
    "number threads first last "  # of this thread; how many there are; the channels `first` to `last` - 1 are run by this thread
    "inboxes outboxes"  # of all threads and channels: those of one thread, or of one channel, stand one behind the other
)
"""The share of a thread in the model."""
share_at = SHARE.at


def send_to_channels(memory: int, until: int) -> int:
    """Put the transactions of all requests before cycle `until` into mailboxes. `memory` is the address of the thread's front of
    the memory. Returns 0, or LATE if a request is older than the last window."""
    if start_sending(memory, until) == LATE:
        return LATE
    port = next_port(memory, until)
    while port != 0:
        _post(memory, port)
        port = next_port(memory, until)
    return 0


@inline
def _post(memory: int, port: int) -> None:
    """Put the transactions of a port's first unsent request into mailboxes."""
    share, p = share_at(memory_at(memory).model), port_at(port)
    r = request_at(head_of(port))
    cycle = arrival(memory, r.cycle)
    first, last = r.address >> share.unit_bits, (r.address + r.bytes - 1) >> share.unit_bits
    r.left = last - first + 1
    for unit in range(first, last + 1):
        packed = packed_place(share.places, unit)
        box = mailbox_at(share.inboxes + MAILBOX_SIZE * (share.number * share.count + (packed >> PLACE_BITS)))
        t = message_at(message_of(box, box.count))
        t.cycle, t.arrival, t.unit, t.place, t.write = r.cycle, cycle, unit, packed & ((1 << PLACE_BITS) - 1), r.write
        t.port, t.request, t.number = port, share.number << THREAD_BITS | p.sent, p.number
        box.count += 1
    p.transactions += r.left
    mark_sent(memory, port)


def run_channels(memory: int, until: int) -> int:
    """Run the channels of this thread to cycle `until` of the ports. Returns 0, or 1 + the number of a channel whose pool needs room before
    it can continue; then the function is called again."""
    m = memory_at(memory)
    share, end = share_at(m.model), arrival(memory, until)
    for k in range(share.first, share.last):
        channel = get_int(share.channels, k)
        while True:
            box = _next_mailbox(share, k, m.count)
            if box == 0:
                break
            if channel_at(channel).room == 0:
                return k + 1
            t = message_at(message_of(mailbox_at(box), mailbox_at(box).taken))
            enqueue(channel, t.arrival, t.unit, t.place, t.write, t.port, t.request)
            mailbox_at(box).taken += 1
        advance_channel(channel, end)
    return 0


@inline
def _next_mailbox(share: Any, channel: int, ports: int) -> int:
    """Return the address of the mailbox of a channel whose next transaction was requested first, or 0 if all are empty. Within a cycle, the
    ports take turns (`sending.py`)."""
    best, first, turn = 0, FOREVER, 0
    for thread in range(share.threads):
        address = share.inboxes + MAILBOX_SIZE * (thread * share.count + channel)
        box = mailbox_at(address)
        if box.taken == box.count:
            continue
        t = message_at(message_of(box, box.taken))
        own_turn = (t.number - t.cycle) % ports
        if t.cycle < first or (t.cycle == first and best != 0 and own_turn < turn):
            best, first, turn = address, t.cycle, own_turn
    return best


def receive_answers(memory: int, until: int) -> int:
    """End the window at cycle `until` for the ports of this thread. Returns 0."""
    share = share_at(memory_at(memory).model)
    for channel in range(share.count):
        take_completions(share.outboxes + MAILBOX_SIZE * (channel * share.threads + share.number))
    settle(memory, until)
    return 0
