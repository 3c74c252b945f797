"""A visit runs a part until it is blocked. This module decides when a visit may be useful, and notes when the next one may be.

The agenda says which parts (a part is the piece of a node that fires on its own) may be able to fire. The others are not
visited.

A part is due at first, and whenever a neighbour has fired: a part that reads its output, writes its input, or belongs to the same
node. A part that waits for an answer of the memory is due once the memory has advanced. A part stays due if no firing marks the
end of its wait (for the other part of its node, or for room).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fuseflow.memory.ports import FOREVER
from fuseflow.native.bitsets import BITS, SHIFT, add, bit_set, discard, is_member, word_count
from fuseflow.native.records import Record, address, get_int, inline, set_int
from fuseflow.native.signatures import call_kernel
from fuseflow.sim.engine.memory_ports import awaited_answer
from fuseflow.sim.engine.node_firing import (
    ANSWER,
    BUFFER,
    ENDED,
    GROW,
    INPUT,
    NODE,
    OUTPUT,
    ROOM,
    TOUCH,
    WAIT,
    node_at,
    source,
    target,
)
from fuseflow.sim.engine.node_layout import Array
from fuseflow.sim.engine.stream_rings import FULL_RING, is_full, reader_at, stream_at, tokens_left

AGENDA = Record(
    "count words members "  # parts of the graph, words of the sets of them, and the set of the agenda's own
    "due answers held "  # sets of parts: to be visited; that wait for an answer; that wait for the engine
    "moved wanted "  # sets of parts: that fired since a thread looked; of other threads, whose bounds are asked for
    "unresolved "  # askers whose bound does not reach the horizon before other threads say more
    "first neighbours "  # where the neighbours of each part are; a word of these sets and the neighbours in it, as pairs
    "defers "  # whether the memory advances while only those are visited that decide about requests
    "askers asking shown "  # an ASKER of each part that may make requests, their number, and the first that other threads see
    "outlooks path"  # of each part, after its last visit; the steps of a walk (`loop.py`)
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
AGENDA_SIZE, ASKER_SIZE, OUTLOOK_SIZE, STEP_SIZE = AGENDA.size, ASKER.size, OUTLOOK.size, STEP.size
NEVER, REPLY, ENGINE, ABROAD = -1, -2, -3, -4
"""Marks in place of an awaited part: the part has ended; it waits for a reply of the memory; for the engine or a visit; or it belongs to
another thread."""
UNKNOWN = -1
"""The source of an asker whose wait is not known."""
UNASKED = FOREVER + 1
"""The bound of a part that makes no requests, and whose bound no other thread asks for."""
SETS = ("due", "answers", "held", "moved", "wanted")
"""The sets of an agenda that are empty at first."""


def new_agenda(neighbours: Sequence[Sequence[int]], askers: Sequence[int], defers: bool, arrays: dict[int, Array]) -> Array:
    """Return an agenda for parts whose neighbours are `neighbours`, and of which the parts `askers` may make requests. With
    `defers`, parts that decide about no request are visited later. The arrays of the agenda are put into `arrays` by address."""
    count = len(neighbours)
    agenda, words = AGENDA.array(1), word_count(count)
    fields: dict[str, Array] = {name: np.zeros(words, dtype=np.int64) for name in SETS}
    fields["members"] = bit_set(range(count), words)
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
        set_int(a.due, k, get_int(a.members, k))


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


NODE_SIZE = NODE.size
FAULTY = -1
"""The result of a visit, in place of a number of firings, if the part has a fault."""


@inline
def visit(nodes: int, a: Any, part: int) -> int:
    """Run a part until it is blocked, and note in the agenda `a` what it waits for. Return its firings, or FAULTY."""
    node = node_at(nodes + NODE_SIZE * part)
    waited = node.waits
    made = run_part(nodes, a, part)
    if made != FAULTY:
        _note_wait(a, node, part, waited, made)
    return made


@inline
def visit_alone(nodes: int, a: Any, part: int) -> int:
    """Visit a part, but do not update which parts are due: all become due before the next round. Return as `visit` does."""
    node = node_at(nodes + NODE_SIZE * part)
    made = run_kernel(nodes + NODE_SIZE * part)
    if made > 0:
        add(a.moved, part)
    if made != FAULTY:
        _note_wait(a, node, part, node.waits, made)
    return made


@inline
def run_part(nodes: int, a: Any, part: int) -> int:
    """Run a part until it is blocked, and update which parts are due in the agenda `a`. Return the number of its firings, or
    FAULTY. Where the memory answers at once, a visit does no more than this."""
    discard(a.due, part)
    address = nodes + NODE_SIZE * part
    node, made = node_at(address), run_kernel(address)
    if made == FAULTY:
        return FAULTY
    if made > 0:
        add(a.moved, part)
        wake_neighbours(a, part)
    if node.waits < INPUT or node.waits in (GROW, ROOM):
        add(a.due, part)
    return made


@inline
def run_kernel(address: int) -> int:
    """Run the part whose node record is at an address until it is blocked. Return the number of its firings, or FAULTY."""
    node = node_at(address)
    firings_before = node.firings
    call_kernel(node.kernel, address)
    made: int = FAULTY if node.fault != 0 else node.firings - firings_before
    return made


@inline
def still_waits(node: Any) -> bool:
    """Return whether a part certainly still waits, by a quick check: False may be wrong."""
    wait = node.waits
    if INPUT <= wait < OUTPUT:
        return bool(tokens_left(source(node, wait - INPUT)) == 0)
    if OUTPUT <= wait < BUFFER:
        return is_full(target(node, wait - OUTPUT))
    if wait == ANSWER:
        return bool(awaited_answer(node) == WAIT)
    return bool(wait == ENDED)


@inline
def _note_wait(a: Any, node: Any, part: int, waited: int, made: int) -> None:
    """Note what a part waits for: the engine, another part, or an answer. `waited` is its wait before the visit, in which it made
    `made` firings."""
    stuck = needs_engine(node)
    if stuck:
        add(a.held, part)
    elif is_member(a.held, part):
        discard(a.held, part)
    if a.defers != 0:
        outlook = outlook_at(a.outlooks + OUTLOOK_SIZE * part)
        outlook.ready = node.ready
        outlook.moves += made > 0
        outlook.awaited, outlook.delay = (ENGINE, 0) if stuck else _awaited(node, part)
        note_moves(a, outlook)
    elif node.waits == ANSWER:
        add(a.answers, part)
    elif waited == ANSWER:
        discard(a.answers, part)


@inline
def note_moves(a: Any, outlook: Any) -> None:
    """Note in an outlook the moves so far of the part that it awaits."""
    if outlook.awaited >= 0:
        outlook.since = outlook_at(a.outlooks + OUTLOOK_SIZE * outlook.awaited).moves


@inline
def may_go_on(a: Any, outlook: Any) -> bool:
    """Return whether the wait may be over: the awaited part has fired since the last visit, or an answer is awaited."""
    if outlook.awaited < 0:
        return bool(outlook.awaited == REPLY)
    return bool(outlook_at(a.outlooks + OUTLOOK_SIZE * outlook.awaited).moves != outlook.since)


@inline
def _awaited(node: Any, part: int) -> tuple[int, int]:
    """Return the part that has to fire before `part` does, or NEVER, REPLY or ENGINE, and the least delay between both."""
    wait = node.waits
    if INPUT <= wait < OUTPUT:
        reader = source(node, wait - INPUT)
        stream = stream_at(reader.stream)
        return stream.writer, stream.latency + reader.delay
    if OUTPUT <= wait < BUFFER:
        stream = target(node, wait - OUTPUT)
        reader = reader_at(get_int(stream.readers, stream.blocked))
        return reader.part, 1 + reader.back
    if wait == TOUCH:
        return part - 1, 1  # the part that fetches ahead
    if wait == BUFFER:
        return part + 1, 0  # who empties it
    if wait == ANSWER:
        return REPLY, 0
    return (NEVER if wait == ENDED else ENGINE), 0


@inline
def needs_engine(node: Any) -> bool:
    """Return whether a part waits for room that the engine makes, and not for anything of the model, such as a full FIFO."""
    wait = node.waits
    if INPUT <= wait < OUTPUT:
        return bool(source(node, wait - INPUT).stalled != 0)
    if OUTPUT <= wait < BUFFER:
        return bool(target(node, wait - OUTPUT).blocked == FULL_RING)
    return bool(wait in (GROW, ROOM))
