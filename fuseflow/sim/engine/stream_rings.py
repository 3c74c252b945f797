"""Streams are sequences of runs. A kernel can inspect, take and produce many tokens at a time.

A run is `length` tokens visible at consecutive cycles `time`, time + 1, ... A stream is a ring of runs at its writer. Each of its
readers has its own place in that ring, its own FIFO depth and a history of the cycles in which it took tokens; from these follow
the free slots of a bounded FIFO, and the peak occupancy of any. A run's tokens are

    CONTROL  one stop (word low * 64 + high) or `D` (word DONE)
    EMPTY    `N`, length times
    REPEATED the same word
    AFFINE   word, word + 1, ...                  coordinates and references
    SLICE    the elements from address `word` on  in a tensor, which stays where it is
    SCRATCH  the same, in the ring of computed elements of the stream, where token m has its place at m modulo the ring's capacity

A word is an integer, or the bits of a float64. An element is one word, or a tile of them (`bytes` of the stream), which only
SLICE and SCRATCH hold.
"""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import LINE, Record, get_int, inline, outline, prefetch, set_int
from fuseflow.sim.engine.pop_history import ALWAYS, note_pops, raise_peak, slots_from

CONTROL, EMPTY, REPEATED, AFFINE, SLICE, SCRATCH = range(6)
DONE = -1
ELEMENT = -2  # in place of the word of a stop or `D`, for a token that is neither
MANY = 1 << 60

RUN = Record("kind word length time")
STREAM = Record(
    "ring mask tail pushed latency lag given "  # runs; `lag`: how much later values come than stops, `given`: when the last one did (comal)
    "scratch capacity bytes limited "  # computed elements; `limited`: whether they wrap
    "readers count bounded blocked free "  # addresses of the readers, whether any has a depth; the result of `room`
    "beyond "  # readers behind links: behind `readers` are their witnesses (`past_links`), and then the addresses of these readers
    "known_tail known_pushed "  # up to where there certainly is room for runs and elements
    "known_slots "  # up to where there certainly are slots in bounded FIFOs
    "writer "  # number of the part
    "sealed"  # no run before this one grows any more
)
READER = Record(
    "stream ring mask head until offset delay latency "  # place in the ring; `until`: runs that were seen; `delay`: of hops and fan-out
    "depth back popped history history_mask noted slot_cursor peak_cursor peak reach stalled "  # `back`: of a slot; `reach`: see `take`
    "several "  # whether it takes more than one token in some cycle
    "unwatched "  # whether neither slots nor a peak follow from its pops, as of an unbounded stream inside a node
    "part "  # number of the part that reads
    "sealed"  # no run of pops before this one changes any more
)

AHEAD = 8  # runs between the fetch of an element that is referred to and its use

MOST_AHEAD = 1024  # bytes of such elements

SHARED = 2  # `bounded` of a stream whose tokens may share a cycle (comal): slots are looked for anew for each of them

FULL_RING = MANY  # `blocked` of a stream whose ring is full: a limit of the engine, not of the model

run_at, stream_at, reader_at = RUN.at, STREAM.at, READER.at
RUN_SIZE, STREAM_SIZE, READER_SIZE = RUN.size, STREAM.size, READER.size
WORD_OFFSET = RUN.offset("word")


@inline
def stop_word(low: int, high: int) -> int:
    """Return the word of a stop that ends lists of the levels `low` to `high`."""
    return low << 6 | high


@inline
def low_of(word: int) -> int:
    """Return the lowest level of a stop, given as a word."""
    return word >> 6


@inline
def high_of(word: int) -> int:
    """Return the highest level of a stop, given as a word."""
    return word & 63


@inline
def raise_stop(word: int, levels: int) -> int:
    """Return the stop `word` as it appears in a stream that is `levels` deeper."""
    return word + levels * 65


@inline
def lower_stop(word: int, levels: int) -> int:
    """Return the stop `word` as it appears in a stream that is `levels` shallower."""
    return max((word >> 6) - levels, 0) << 6 | ((word & 63) - levels)


# Reading


@inline
def tokens_left(reader: Any) -> int:
    """Return the number of tokens left in the run at the head of a reader, or 0 if no run has come yet."""
    if reader.head >= reader.until:
        if reader.stalled != 0:
            return 0
        reader.until = stream_at(reader.stream).tail
        if reader.head == reader.until:
            return 0
    return run_at(reader.ring + RUN_SIZE * (reader.head & reader.mask)).length - reader.offset


@inline
def head_address(reader: Any) -> int:
    """Return the address of the run at the head."""
    return reader.ring + RUN_SIZE * (reader.head & reader.mask)


@inline
def head_run(reader: Any) -> Any:
    """Return the run at the head; there must be one."""
    return run_at(reader.ring + RUN_SIZE * (reader.head & reader.mask))


@inline
def visible(reader: Any) -> int:
    """Return the cycle from which the next token is visible."""
    return head_run(reader).time + reader.offset + reader.delay


@inline
def is_control(reader: Any) -> bool:
    """Return whether the next token is a stop or `D`."""
    return head_run(reader).kind == CONTROL


@inline
def next_word(reader: Any) -> int:
    """Return the next token of a stream of words, as a word (0 for an `N`)."""
    run = head_run(reader)
    if run.kind == AFFINE:
        return run.word + reader.offset
    if run.kind >= SLICE:
        return get_int(run.word, reader.offset)
    return run.word


@inline
def word_in(run: Any, i: int) -> int:
    """Return token i of a run of words."""
    if run.kind == AFFINE:
        return run.word + i
    if run.kind >= SLICE:
        return get_int(run.word, i)
    return run.word


@inline
def upcoming_word(reader: Any) -> int:
    """Return the first word of the run AHEAD runs after the head, to prefetch its element, or 0 if it has not come yet."""
    if reader.head + AHEAD >= reader.until:
        return 0
    return word_in(run_at(reader.ring + RUN_SIZE * ((reader.head + AHEAD) & reader.mask)), 0)


@inline
def fetch_upcoming(reader: Any, base: int, size: int) -> None:
    """Prefetch the elements of `size` bytes in the array at `base` to which the run AHEAD runs after the head refers: the first,
    and those behind it if the references are consecutive."""
    if reader.offset != 0 or reader.head + AHEAD >= reader.until:
        return
    run = run_at(reader.ring + RUN_SIZE * ((reader.head + AHEAD) & reader.mask))
    start = base + size * word_in(run, 0)
    prefetch(start)
    if run.kind == AFFINE:
        for i in range(LINE, min(size * run.length, MOST_AHEAD), LINE):
            prefetch(start + i)


@inline
def second_token(reader: Any) -> tuple[int, int]:
    """Return, for the token after the next one, the cycle from which it is visible, or -1 if it has not come yet, and its word if
    it is a stop or `D`, else ELEMENT."""
    run, offset = head_run(reader), reader.offset + 1
    if offset == run.length:
        if reader.head + 1 == stream_at(reader.stream).tail:
            return -1, ELEMENT
        run, offset = run_at(reader.ring + RUN_SIZE * ((reader.head + 1) & reader.mask)), 0
    return run.time + offset + reader.delay, run.word if run.kind == CONTROL else ELEMENT


@inline
def take_in_same_cycle(reader: Any, t: int) -> None:
    """Take one token in cycle t, in which the reader may take other tokens, too."""
    reader.several, reader.reach = 1, ALWAYS
    take(reader, 1, t)


@inline
def take(reader: Any, k: int, t: int) -> None:
    """Take k tokens of the run at the head in cycles t, t + 1, ..."""
    run = head_run(reader)
    if reader.unwatched == 0:
        note_pops(reader, k, t)
    reader.popped += k
    offset = reader.offset + k
    if offset < run.length:
        reader.offset = offset
        return
    # Between the producing firing of the run's last token and its pop, at most one token left in a cycle: so few cycles make no new peak.
    # Where several may leave in a cycle, all that made the occupancy of the last `raise_peak` may also have left since.
    if t + k - (run.time + run.length) > reader.reach and (
        reader.reach == ALWAYS or reader.several != 0 or not _goes_on(reader, run)
    ):
        raise_peak(reader, run.time + run.length - 1 - reader.latency - reader.back, run.length - 1 if reader.several != 0 else 0)
    reader.offset = 0
    reader.head += 1


@inline
def _goes_on(reader: Any, run: Any) -> bool:
    """Return whether the run after the head continues the cycles of `run`, the one at the head. Then the occupancy is no lower
    when the last token of that run is produced, and it is looked at only then."""
    if reader.head + 1 >= reader.until:
        return False
    return bool(run_at(reader.ring + RUN_SIZE * ((reader.head + 1) & reader.mask)).time == run.time + run.length)


# Writing


@inline
def room(stream: Any, now: int) -> int:
    """Return how many tokens may be produced at consecutive cycles, by a node that is ready in cycle `now`, from `stream.free` on.
    If 0, `stream.blocked` says why: it is the position, among the readers, of one whose FIFO is full, or FULL_RING."""
    if stream.tail >= stream.known_tail or stream.pushed >= stream.known_pushed:
        _look_for_room(stream)
        if stream.tail >= stream.known_tail or stream.pushed >= stream.known_pushed:
            stream.blocked = FULL_RING
            return 0
    k = stream.known_pushed - stream.pushed
    if stream.limited != 0:
        k = min(k, stream.capacity - (stream.pushed & (stream.capacity - 1)))
    if stream.bounded != 0:
        if stream.pushed >= stream.known_slots or stream.bounded == SHARED:
            _look_for_slots(stream, now)
        k = min(k, stream.known_slots - stream.pushed)
    return k


@inline
def is_full(stream: Any) -> bool:
    """Return whether the FIFO that `room` found full still is."""
    if stream.blocked == FULL_RING:
        return False
    reader = reader_at(get_int(stream.readers, stream.blocked))
    if stream.blocked >= stream.count:
        reader = _witness(stream, stream.blocked - stream.count)
    return bool(stream.pushed - reader.depth >= reader.popped)


@inline
def _witness(stream: Any, q: int) -> Any:
    """Return witness q of a stream, which has taken what the reader behind links has taken. Of the pops of that reader no more are
    looked at than the witness has slots, and each run of pops has one at least."""
    witness = reader_at(get_int(stream.readers, stream.count + q))
    reader = reader_at(get_int(stream.readers, stream.count + stream.beyond + q))
    witness.popped, witness.noted = reader.popped, reader.noted
    witness.history, witness.history_mask = reader.history, reader.history_mask
    witness.slot_cursor = max(witness.slot_cursor, reader.noted - witness.depth)
    return witness


@outline
def _look_for_room(stream: Any) -> None:
    """Update `known_tail` and `known_pushed`: how far the readers have made room for runs, and for elements."""
    tail, pushed = MANY, MANY
    for q in range(stream.count):
        reader = reader_at(get_int(stream.readers, q))
        tail = min(tail, reader.head + stream.mask + 1)
        if stream.limited != 0:
            pushed = min(pushed, reader.popped + stream.capacity)
    stream.known_tail, stream.known_pushed = tail, pushed


@outline
def _look_for_slots(stream: Any, now: int) -> None:
    """Update `known_slots`, and `free` to the cycle from which the next slot is free in all bounded FIFOs. If there is none,
    `blocked` becomes the position of a reader whose FIFO is full."""
    stream.free, k = 0, MANY
    for q in range(stream.count):
        reader = reader_at(get_int(stream.readers, q))
        if reader.depth > 0 and k > 0:
            slots, cycle = slots_from(reader, stream.pushed - reader.depth, now)
            k, stream.free = min(k, slots), max(stream.free, cycle)
            if k == 0:
                stream.blocked = q
    if stream.beyond != 0:
        k = _look_past_links(stream, now, k)
    stream.known_slots = stream.pushed + k


@outline
def _look_past_links(stream: Any, now: int, k: int) -> int:
    """Return for how many of k tokens the readers behind links have slots, and update `free` and `blocked` as for other readers."""
    for q in range(stream.beyond):
        if k > 0:
            witness = _witness(stream, q)
            slots, cycle = slots_from(witness, stream.pushed - witness.depth, now)
            k, stream.free = min(k, slots), max(stream.free, cycle)
            if k == 0:
                stream.blocked = stream.count + q
    return k


@inline
def push(stream: Any, kind: int, word: int, k: int, t: int) -> None:
    """Produce k tokens, a run of this kind and word, in the firings in cycles t, t + 1, ... There must be room."""
    if stream.lag != 0:
        if kind == CONTROL:
            t = max(t, stream.given)
        else:
            t += stream.lag
            stream.given = t + k - 1
    time = t + stream.latency
    stream.pushed += k
    if stream.count == 0:
        return
    if kind != CONTROL and stream.tail > stream.sealed:
        last = run_at(stream.ring + RUN_SIZE * ((stream.tail - 1) & stream.mask))
        if last.kind == kind and last.time + last.length == time:
            step = 0
            if kind >= SLICE:
                step = stream.bytes
            elif kind == AFFINE:
                step = 1
            if last.word + step * last.length == word and _is_unfinished(stream):
                last.length += k
                return
    run = run_at(stream.ring + RUN_SIZE * (stream.tail & stream.mask))
    run.kind = kind
    run.word = word
    run.length = k
    run.time = time
    stream.tail += 1


@outline
def _is_unfinished(stream: Any) -> bool:
    """Return whether no reader has finished the last run of a stream, so that the run may grow."""
    finished = 0
    for q in range(stream.count):
        finished += reader_at(get_int(stream.readers, q)).head == stream.tail
    return finished == 0


@inline
def scratch_address(stream: Any) -> int:
    """Return the address of the next token's element in the ring of computed elements. `room` counts only contiguous elements
    from there."""
    return stream.scratch + stream.bytes * (stream.pushed & (stream.capacity - 1))


@inline
def element_address(reader: Any) -> int:
    """Return the address of the next token's element, where the run at the head is SLICE or SCRATCH."""
    return head_run(reader).word + stream_at(reader.stream).bytes * reader.offset


@inline
def copy(into: int, start: int, words: int) -> None:
    """Copy `words` words from one address to another."""
    for i in range(words):
        set_int(into, i, get_int(start, i))


@inline
def pass_on(run: Any, first: int, stream: Any, k: int) -> tuple[int, int]:
    """Return kind and word of a run on `stream` that repeats the k tokens from `first` on of `run`, which the node reads.
    Computed elements are copied into the ring of `stream`, for which `room` must have found room; others are not copied."""
    if run.kind < AFFINE:
        return run.kind, run.word
    if run.kind == AFFINE:
        return AFFINE, run.word + first
    word = run.word + stream.bytes * first
    if run.kind == SLICE:
        return SLICE, word
    into = scratch_address(stream)
    copy(into, word, k * (stream.bytes >> 3))
    return SCRATCH, into
