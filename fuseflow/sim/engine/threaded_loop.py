"""The loop over parts in threads: each thread runs its own parts, as `loop.py` explains, and meets the others to exchange what they need.

All threads go through the same steps, since all decide by the same totals of what each put on its board. Between two meetings a thread
changes nothing that another one looks at. Streams whose writer and reader belong to different threads are its border:

- The reader of such a stream sees it through a view, a stream record of its own. The view has the ring of the stream, and ends
  where the stream ended when the threads met last. Runs before that end are sealed: they no longer grow.
- The writer sees the reader through a proxy, a reader record of its own, which has taken what the reader had taken when the threads
  met last.
- Parts of other threads have a stand-in among the outlooks. Its `ready` bounds the cycle of the first firing that was not published.

When the threads have met, each brings its own views and proxies up to date, and tells the bounds of its own parts. Then they meet
again.
"""

from __future__ import annotations

from typing import Any

from fuseflow.memory.ports import FOREVER, memory_at
from fuseflow.memory.sending import next_request
from fuseflow.native.barrier import meet
from fuseflow.native.bitsets import SHIFT, add, next_in_word
from fuseflow.native.records import Record, get_int, inline, set_int
from fuseflow.native.signatures import call_advance
from fuseflow.sim.engine.loop import (
    BUSY,
    FAULT,
    HELD,
    SHORT,
    STATUS_COUNT,
    STUCK,
    UNSURE,
    earliest_held_firing,
    forget_bounds,
    meet_horizon,
    visit_due_parts,
)
from fuseflow.sim.engine.stream_rings import MANY, reader_at, stream_at
from fuseflow.sim.engine.visits import (
    ASKER_SIZE,
    FAULTY,
    OUTLOOK_SIZE,
    UNASKED,
    agenda_at,
    asker_at,
    outlook_at,
    wake_all,
    wake_answered,
)

CROSSING = Record("stream reader window proxy writer_part reader_part")
"""A stream and a reader of it in another thread: addresses of both, of the reader's view of the stream, and of the writer's proxy
of the reader, and the numbers of their parts."""
BORDER = Record(
    "mine others "  # sets of parts: of this thread that other threads see; of other threads that this one sees
    "first crossings "  # where the crossings of each part begin, and the addresses of the crossings
    "askers"  # the index of the asker of each part in the agenda of its thread
)
"""The border of a thread."""
CROSSING_SIZE, BORDER_SIZE = CROSSING.size, BORDER.size
crossing_at, border_at = CROSSING.at, BORDER.at


@inline
def publish(b: Any, a: Any) -> None:
    """Seal the streams of the parts of the agenda `a` that fired and that the border `b` shows to other threads, and tell bounds of
    their next firings."""
    for k in range(a.words):
        left = get_int(a.moved, k) & get_int(b.mine, k)
        bit = -1
        while True:
            bit = next_in_word(left, bit)
            if bit < 0:
                break
            part = (k << SHIFT) + bit
            _seal(b, part)
            own, published = _outlooks(a, part)
            published.moves, published.ready = own.moves, max(published.ready, own.ready)
    for k in range(a.shown, a.asking):
        asker = asker_at(a.askers + ASKER_SIZE * k)
        if asker.bound != UNASKED:
            own, published = _outlooks(a, asker.part)
            published.ready = max(published.ready, own.ready, asker.bound)


@inline
def _outlooks(a: Any, part: int) -> tuple[Any, Any]:
    """Return the outlook of a part of this thread, and what is published about it."""
    return outlook_at(a.outlooks + OUTLOOK_SIZE * part), outlook_at(a.outlooks + OUTLOOK_SIZE * (a.count + part))


@inline
def _seal(b: Any, part: int) -> None:
    """Seal the streams that a part of this thread writes to other threads, and the pops of the streams that it reads from them."""
    for q in range(get_int(b.first, part), get_int(b.first, part + 1)):
        c = crossing_at(get_int(b.crossings, q))
        if c.writer_part == part:
            stream_at(c.stream).sealed = stream_at(c.stream).tail
        else:
            reader = reader_at(c.reader)
            reader.sealed, reader.slot_cursor = reader.noted, reader_at(c.proxy).slot_cursor


@inline
def take_over(b: Any, a: Any, other: Any) -> None:
    """Let one thread see what another one did since they last met: the thread with the borders `b` and the agenda `a` learns how far
    the streams of the thread with the agenda `other` were written and read. Its parts that may fire now are put on its agenda."""
    for k in range(a.words):
        _answer_wishes(b, a, get_int(other.wanted, k) & get_int(b.mine, k), k)
        left = get_int(other.moved, k) & get_int(b.others, k)
        bit = -1
        while True:
            bit = next_in_word(left, bit)
            if bit < 0:
                break
            _update(b, a, (k << SHIFT) + bit)


@inline
def _update(b: Any, a: Any, part: int) -> None:
    """Bring the views of the streams that a part of another thread writes, and the proxies of the readers in it, up to date."""
    for q in range(get_int(b.first, part), get_int(b.first, part + 1)):
        c = crossing_at(get_int(b.crossings, q))
        if c.writer_part == part:
            stream_at(c.window).tail = stream_at(c.stream).tail
            add(a.due, c.reader_part)
        else:
            reader, proxy = reader_at(c.reader), reader_at(c.proxy)
            proxy.head, proxy.popped, proxy.noted = reader.head, reader.popped, reader.noted
            add(a.due, c.writer_part)


@inline
def _answer_wishes(b: Any, a: Any, wishes: int, word: int) -> None:
    """Compute bounds, from now on, of those parts of this thread for which another thread asks: a word of a set of parts."""
    bit = -1
    while True:
        bit = next_in_word(wishes, bit)
        if bit < 0:
            return
        asker = asker_at(a.askers + ASKER_SIZE * get_int(b.askers, (word << SHIFT) + bit))
        if asker.bound == UNASKED:
            asker.bound = 0


@inline
def forget_news(a: Any) -> None:
    """Empty the sets of parts that fired, and of bounds that are asked for. All other threads have heard them."""
    for k in range(a.words):
        set_int(a.moved, k, 0)
        set_int(a.wanted, k, 0)


WORKER = Record(
    "nodes agenda border "  # addresses of the records of all parts; of the agenda and the border of this thread
    "number threads workers barrier board "  # of this thread; how many there are; the first worker; where they meet; what this one tells
    "memory send run receive step "  # the front of the memory and the functions of a window; 0: there is none; cycles of a window
    "now pending "  # the end of the last window; the end of a window whose channels need room, or 0
    "fired faults unsure unresolved open due held"  # what all boards say together
)
BOARD = Record("fired fault unsure unresolved open due held short")
"""Firings since the last meeting; whether a part has a fault, and whether one waits for the engine; askers that need to know more;
requests without an answer; the cycle of the next request; the first firing of a part that waits for a ring to grow; a channel
without room. It fills a cache line."""
WORKER_SIZE, BOARD_SIZE = WORKER.size, BOARD.size
worker_at, board_at = WORKER.at, BOARD.at


def sweep_in_threads(worker: int, budget: int) -> int:
    """Run the parts of one thread, while the other threads run theirs, and return the same status as they do: as `sweep_at_memory`
    does, plus the cycle times `STATUS_COUNT`."""
    w = worker_at(worker)
    a = agenda_at(w.agenda)
    wake_all(a)
    forget_bounds(w.nodes, a)
    fired, complete = 0, True
    if w.pending != 0 and not _finish_window(w, w.pending):
        return SHORT
    while True:
        a.unresolved = 0
        made = visit_due_parts(w.nodes, a, w.memory != 0)
        if w.memory != 0:
            board_at(w.board).due, board_at(w.board).held = next_request(w.memory), earliest_held_firing(w.nodes, a)
        _exchange(w, a, made, 0)
        if w.faults > 0:
            return FAULT
        fired += w.fired
        if fired > budget:
            return BUSY
        if w.fired > 0:
            complete = False
            continue
        start = _next_turn(w)
        if start == FOREVER:
            if complete:
                return STUCK
            wake_all(a)
            complete = True
            continue
        if w.held <= start:
            return HELD + STATUS_COUNT * start
        until = min(start + w.step, w.held)
        made = 0  # no request before is missing, since no part can fire
        while True:
            fired += _pass_window(w, a, made, until)
            if w.faults > 0:
                return FAULT
            if w.pending != 0:
                return SHORT
            if w.unsure > 0 or w.open == 0 or a.defers == 0:
                break
            if fired > budget:
                return BUSY
            until += w.step
            a.unresolved = 0
            made = meet_horizon(w.nodes, a, until)
        if a.defers != 0:
            wake_all(a)
        else:
            wake_answered(a)
        complete = False


@inline
def _pass_window(w: Any, a: Any, made: int, until: int) -> int:
    """Advance the memory to cycle `until`, after parts fired until no request before is missing. In this thread `made` firings were
    made for that; others may make more necessary. The memory does not advance if a part has a fault or waits for the engine.
    Return the number of firings in all threads."""
    fired = 0
    while True:
        _exchange(w, a, made, until)
        fired += w.fired
        if w.faults > 0 or w.unsure > 0 or w.unresolved == 0:
            break
        a.unresolved = 0
        made = meet_horizon(w.nodes, a, until)
    return fired


@inline
def _exchange(w: Any, a: Any, made: int, until: int) -> None:
    """Exchange with the other threads what they need to know of the firings since the last exchange: `made`, or FAULTY or UNSURE. If no
    request before cycle `until` is missing, the memory advances to it."""
    board, b = board_at(w.board), border_at(w.border)
    board.fired, board.fault, board.unsure, board.unresolved = max(made, 0), made == FAULTY, made == UNSURE, a.unresolved
    if w.memory != 0:
        board.open = memory_at(w.memory).open
    meet(w.barrier, w.threads)
    w.fired, w.faults, w.unsure, w.unresolved, w.open, w.due, w.held = 0, 0, 0, 0, 0, FOREVER, MANY
    for k in range(w.threads):
        other = worker_at(w.workers + WORKER_SIZE * k)
        theirs = board_at(other.board)
        w.fired += theirs.fired
        w.faults += theirs.fault
        w.unsure += theirs.unsure
        w.unresolved += theirs.unresolved
        w.open += theirs.open
        w.due, w.held = min(w.due, theirs.due), min(w.held, theirs.held)
        if k != w.number:
            take_over(b, a, agenda_at(other.agenda))
    publish(b, a)
    if until > 0 and w.faults == 0 and w.unsure == 0 and w.unresolved == 0:
        _finish_window(w, until)
    else:
        meet(w.barrier, w.threads)
    forget_news(a)


@inline
def _finish_window(w: Any, until: int) -> bool:
    """Send the requests of this thread before cycle `until`, run its channels to that cycle when all have sent, and receive the
    answers when all have run. Return whether all channels had room. If not, the window is pending: the engine makes room first."""
    board = board_at(w.board)
    board.short = call_advance(w.send, w.memory, until) if w.pending == 0 else 0
    meet(w.barrier, w.threads)
    if w.run != 0 and board.short == 0:
        board.short = call_advance(w.run, w.memory, until)
    meet(w.barrier, w.threads)
    w.pending = 0
    for k in range(w.threads):
        if board_at(worker_at(w.workers + WORKER_SIZE * k).board).short != 0:
            w.pending = until
    if w.pending == 0:
        w.now = until
        if w.receive != 0:
            call_advance(w.receive, w.memory, until)
    return bool(w.pending == 0)


@inline
def _next_turn(w: Any) -> int:
    """Return the cycle from which the memory advances, past idle cycles, or FOREVER if nothing is requested."""
    if w.memory == 0 or (w.open == 0 and w.due == FOREVER):
        return FOREVER
    start: int = w.now if w.open > 0 else max(w.now, w.due)
    return start
