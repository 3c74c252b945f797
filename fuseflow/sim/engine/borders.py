"""The border between threads: streams whose writer and reader belong to different threads, and what these tell each other.

A thread runs the parts of some nodes. Between two meetings of all threads it changes nothing that another thread looks at:

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

from fuseflow.native.bitsets import SHIFT, add, next_in_word
from fuseflow.native.records import Record, get_int, inline, set_int
from fuseflow.sim.engine.stream_rings import reader_at, stream_at
from fuseflow.sim.engine.visits import ASKER_SIZE, OUTLOOK_SIZE, UNASKED, asker_at, outlook_at

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
    """Bring the views and proxies up to date at which the thread with the agenda `a` sees the thread with the agenda `other`. Parts
    that may fire become due."""
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
