"""Mailboxes carry transactions between threads: from the threads whose ports request to the threads that run the channels of a DRAM,
and back.

A mailbox has one sender and one receiver. The sender fills it, all threads meet, and the receiver empties it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.memory.ports import finish
from fuseflow.native.records import Record, address, inline

MAILBOX = Record("messages mask count taken " + " ".join(f"unused_{k}" for k in range(4)))
"""The address of a ring of messages, and its size minus 1; the messages that were put in so far, and taken out. The record fills a
cache line."""
MESSAGE = Record("cycle arrival unit place write port request number")
"""A transaction on the way to its channel: cycle of its request in cycles of the accelerator and of the memory, address in transactions,
row and bank, whether it writes, address of its port and number of its request there, and number of the port."""
COMPLETION = Record("port request accepted done")
"""A transaction on the way back: address of its port and number of its request there, and the memory cycles in which it was accepted and
completed."""
MAILBOX_SIZE, MESSAGE_SIZE, COMPLETION_SIZE = MAILBOX.size, MESSAGE.size, COMPLETION.size
mailbox_at, message_at, completion_at = MAILBOX.at, MESSAGE.at, COMPLETION.at
THREAD_BITS = 40
"""A transaction has the number of the thread of its port above this many bits of the number of its request."""
REQUESTS = (1 << THREAD_BITS) - 1
"""The bits of the number of the request."""


def mailboxes(room: npt.NDArray[np.int64], record: Record) -> tuple[npt.NDArray[Any], list[npt.NDArray[Any]]]:
    """Return empty mailboxes with room for these numbers of messages of a type, and the arrays of the messages."""
    sizes = [1 << (int(count) | 1).bit_length() for count in room]
    boxes, messages = MAILBOX.array(len(room)), [record.array(size) for size in sizes]
    boxes["messages"], boxes["mask"] = [address(array) for array in messages], np.array(sizes) - 1
    return boxes, messages


@inline
def message_of(box: Any, number: int) -> int:
    """Return the address of a message in a mailbox."""
    message: int = box.messages + MESSAGE_SIZE * (number & box.mask)
    return message


@inline
def report(outboxes: int, port: int, request: int, accepted: int, done: int) -> None:
    """Report to the thread of a port that one transaction of a request was accepted and completed at these memory cycles."""
    box = mailbox_at(outboxes + MAILBOX_SIZE * (request >> THREAD_BITS))
    r = completion_at(box.messages + COMPLETION_SIZE * box.count)
    r.port, r.request, r.accepted, r.done = port, request & REQUESTS, accepted, done
    box.count += 1


@inline
def take_completions(box_address: int) -> None:
    """Finish the transactions that a mailbox has completions for, and empty it."""
    box = mailbox_at(box_address)
    for k in range(box.count):
        r = completion_at(box.messages + COMPLETION_SIZE * k)
        finish(r.port, r.request, r.accepted, r.done)
    box.count = 0
