"""The agenda says which parts of a network may have something to do. Most wait most of the time, and those are not visited.

A part is due at first, and whenever a neighbour has fired: one that reads what it writes, writes what it reads, or belongs to the
same node. A part that waits for an answer of the memory is due once the memory has advanced. One that waits for what no firing
tells (its other half, room) stays due. Sets of parts are bits: a sweep over thousands of parts passes over 32 that sleep at a
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fuseflow.sim.engine.node_layout import Array
from fuseflow.sim.native.records import Record, address, get_int, inline, set_int, trailing_zeros

AGENDA = Record(
    "count words "  # parts, and words of the sets of them
    "due answers held "  # sets: those to be visited; that wait for an answer; that wait for the engine
    "first neighbours "  # where the neighbours of each part are, and who they are
    "askers asking bounds "  # parts that may make requests, their number, and the cycles before which they certainly make none
    "outlooks"  # of each part, after its last visit
)
OUTLOOK = Record("ready awaited delay")
"""When a part is ready, which part has to fire before it does, and how much later its firing is then at least. In place of the part
stand the negative numbers below."""
agenda_at, outlook_at = AGENDA.at, OUTLOOK.at
OUTLOOK_SIZE = OUTLOOK.size
NEVER, REPLY, ENGINE = -1, -2, -3
"""What a part waits for in place of another: nothing, as it has ended; a reply of the memory; the engine, or it was not visited."""
SHIFT, BITS = 5, 32


def new_agenda(neighbours: Sequence[Sequence[int]], askers: Sequence[int], arrays: dict[int, Array]) -> Array:
    """Return an agenda for parts with these neighbours, of whom `askers` may make requests. The arrays that it refers to are put
    into `arrays` by their addresses."""
    count = len(neighbours)
    agenda, words = AGENDA.array(1), -(-count // BITS)
    fields: dict[str, Array] = {name: np.zeros(max(words, 1), dtype=np.int64) for name in ("due", "answers", "held")}
    fields["first"] = np.cumsum([0, *map(len, neighbours)], dtype=np.int64)
    fields["neighbours"] = np.array([p for numbers in neighbours for p in numbers] or [0], dtype=np.int64)
    fields["outlooks"] = OUTLOOK.array(count)
    fields["outlooks"]["awaited"] = ENGINE
    fields["askers"] = np.array(askers or [0], dtype=np.int64)
    fields["bounds"] = np.zeros(max(len(askers), 1), dtype=np.int64)
    for name, array in fields.items():
        agenda[name] = address(array)
        arrays[address(array)] = array
    agenda["count"], agenda["words"], agenda["asking"] = count, words, len(askers)
    return agenda


@inline
def add(members: int, part: int) -> None:
    """Put a part into a set."""
    k = part >> SHIFT
    set_int(members, k, get_int(members, k) | 1 << (part & BITS - 1))


@inline
def discard(members: int, part: int) -> None:
    """Remove a part from a set."""
    k = part >> SHIFT
    set_int(members, k, get_int(members, k) & ~(1 << (part & BITS - 1)))


@inline
def is_member(members: int, part: int) -> bool:
    """Return whether a part is in a set."""
    return bool(get_int(members, part >> SHIFT) >> (part & BITS - 1) & 1)


@inline
def next_member(word: int, after: int) -> int:
    """Return the first member of a word of a set after bit `after` (-1: the first of all), as a bit, or -1 if there is none."""
    bits = word >> (after + 1)
    return -1 if bits == 0 else after + 1 + trailing_zeros(bits)


@inline
def wake_all(a: Any) -> None:
    """Make all parts due."""
    for k in range(a.words):
        set_int(a.due, k, (1 << min(a.count - (k << SHIFT), BITS)) - 1)


@inline
def wake_neighbours(a: Any, part: int) -> None:
    """Make the neighbours of a part due."""
    for q in range(get_int(a.first, part), get_int(a.first, part + 1)):
        add(a.due, get_int(a.neighbours, q))


@inline
def wake_answered(a: Any) -> None:
    """Make those parts due that wait for an answer, after the memory has advanced. They wait for it until they are visited."""
    for k in range(a.words):
        set_int(a.due, k, get_int(a.due, k) | get_int(a.answers, k))
