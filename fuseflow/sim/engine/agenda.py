"""The agenda says which parts (a part is the piece of a node that fires on its own) may be able to fire. The others are not
visited.

A part is due at first, and whenever a neighbour has fired: a part that reads its output, writes its input, or belongs to the same
node. A part that waits for an answer of the memory is due once the memory has advanced. A part stays due if no firing marks the
end of its wait (for the other part of its node, or for room).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fuseflow.native.bitsets import BITS, SHIFT, word_count
from fuseflow.native.records import Record, address, get_int, inline, set_int
from fuseflow.sim.engine.node_layout import Array

AGENDA = Record(
    "count words "  # parts, and words of the sets of them
    "due answers held "  # sets of parts: to be visited; that wait for an answer; that wait for the engine
    "first neighbours "  # where the neighbours of each part are; a word of these sets and the neighbours in it, as pairs
    "defers "  # whether the memory advances while only those are visited that decide about requests
    "askers asking "  # an ASKER of each part that may make requests, and their number
    "outlooks path"  # of each part, after its last visit; the steps of a walk (`horizon.py`)
)
ASKER = Record("part bound source delay moves port request")
"""A part that may make requests, and the cycle before which it certainly makes none. If it waits, in the end, for an answer: the
part that waits for that answer, how much later than it the asker fires at least, its moves until then, and the port and the
number of the request."""
OUTLOOK = Record("ready awaited delay moves since")
"""The cycle before which a part certainly does not fire, the awaited part that has to fire before it (or a negative number
below), and the least delay between both firings; the moves of the part, which are the visits in which it fired; and the moves of
the awaited part at the last visit of this part. An agenda that does not defer leaves all this unused."""
STEP = Record("part bound delay")
"""A step of a walk: a part, a bound of the asker's next firing, and how much later than the part the asker fires at least."""
agenda_at, asker_at, outlook_at, step_at = AGENDA.at, ASKER.at, OUTLOOK.at, STEP.at
ASKER_SIZE, OUTLOOK_SIZE, STEP_SIZE = ASKER.size, OUTLOOK.size, STEP.size
NEVER, REPLY, ENGINE = -1, -2, -3
"""Marks in place of an awaited part: the part has ended; it waits for a reply of the memory; or for the engine or a visit."""
UNKNOWN = -1
"""The source of an asker whose wait is not known."""


def new_agenda(neighbours: Sequence[Sequence[int]], askers: Sequence[int], defers: bool, arrays: dict[int, Array]) -> Array:
    """Return an agenda for parts whose neighbours are `neighbours`, and of which the parts `askers` may make requests. With
    `defers`, parts that decide about no request are visited later. The arrays of the agenda are put into `arrays` by address."""
    count = len(neighbours)
    agenda, words = AGENDA.array(1), word_count(count)
    fields: dict[str, Array] = {name: np.zeros(words, dtype=np.int64) for name in ("due", "answers", "held")}
    fields["first"], fields["neighbours"] = _words_of(neighbours)
    fields["outlooks"] = OUTLOOK.array(count)
    fields["outlooks"]["awaited"] = ENGINE
    fields["path"] = STEP.array(count)
    fields["askers"] = ASKER.array(len(askers))
    fields["askers"]["part"] = askers
    fields["askers"]["source"] = UNKNOWN
    for name, array in fields.items():
        agenda[name] = address(array)
        arrays[address(array)] = array
    agenda["count"], agenda["words"], agenda["asking"], agenda["defers"] = count, words, len(askers), defers
    return agenda


def _words_of(neighbours: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    """Return where the neighbours of each part begin, and the neighbours as bit sets: pairs of the index of a word and its bits.
    A part has few such words, as most of its neighbours are near it in the graph."""
    numbers = np.array([p for sorted_numbers in neighbours for p in sorted_numbers], np.int64)
    part = np.repeat(np.arange(len(neighbours)), [len(sorted_numbers) for sorted_numbers in neighbours])
    word = numbers >> SHIFT
    starts = np.flatnonzero(np.diff(part, prepend=-1) | np.diff(word, prepend=-1))
    members = np.bitwise_or.reduceat(1 << (numbers & BITS - 1), starts) if len(starts) else numbers
    first: Array = np.searchsorted(part[starts], np.arange(len(neighbours) + 1))
    return first, np.stack([word[starts], members], axis=1, dtype=np.int64)


@inline
def wake_all(a: Any) -> None:
    """Mark all parts of the agenda `a` as due for a visit."""
    for k in range(a.words):
        set_int(a.due, k, (1 << min(a.count - (k << SHIFT), BITS)) - 1)


@inline
def wake_neighbours(a: Any, part: int) -> None:
    """Mark the neighbours of a part as due in the agenda `a`."""
    for q in range(get_int(a.first, part), get_int(a.first, part + 1)):
        word = get_int(a.neighbours, 2 * q)
        set_int(a.due, word, get_int(a.due, word) | get_int(a.neighbours, 2 * q + 1))


@inline
def wake_answered(a: Any) -> None:
    """Mark the parts that wait for an answer as due in the agenda `a`, after the memory has advanced. A visit ends their wait."""
    for k in range(a.words):
        set_int(a.due, k, get_int(a.due, k) | get_int(a.answers, k))
