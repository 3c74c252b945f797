"""A reuse buffer keeps the lines that a port of the memory requested last, on the chip: fully associative, with the least
recently used line replaced.

Lines are looked up, and get their places, in the order of the requests of the port. So hits depend on that order alone, and not
on the cycles of answers. Answers come in the same order: each is written to its place, or read from it, in its turn, and a place
then holds the line that was looked up (Igehy, Eldridge and Proudfoot, "Prefetching in a Texture Cache Architecture", 1998, has
such a buffer for textures).

A buffer is a table of places in the order of their use, and of buckets by which a line is found.
"""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import Record, get_int, inline, outline, set_int

BUFFER = Record(
    "size used "  # places, and how many of them have a line
    "places buckets mask "  # addresses of the places, and of the first place in each bucket; line & mask is its bucket
    "newest oldest"  # used last, and longest ago; -1: none
)
PLACE = Record("line newer older next")
"""A line, the places that were used just after and just before it, and the next place in its bucket (-1: none)."""
buffer_at, place_at = BUFFER.at, PLACE.at
PLACE_SIZE = PLACE.size
NONE = -1


@outline
def look_up(buffer: int, line: int) -> bool:
    """Return whether a line is in the buffer at an address. If not, put the line there, in place of the least recently used line
    if the buffer is full. The line then counts as used last."""
    b = buffer_at(buffer)
    k = get_int(b.buckets, line & b.mask)
    while k != NONE and place_at(_place(b, k)).line != line:
        k = place_at(_place(b, k)).next
    if k != NONE:
        if k != b.newest:
            _leave_order(b, k)
            _use(b, k)
        return True
    k = b.used
    if k < b.size:
        b.used += 1
    else:
        k = b.oldest
        _leave_order(b, k)
        _leave_bucket(b, k)
    p = place_at(_place(b, k))
    p.line, p.next = line, get_int(b.buckets, line & b.mask)
    set_int(b.buckets, line & b.mask, k)
    _use(b, k)
    return False


@inline
def _place(b: Any, k: int) -> int:
    """Return the address of place k of the buffer `b`."""
    address: int = b.places + PLACE_SIZE * k
    return address


@inline
def _use(b: Any, k: int) -> None:
    """Mark place k of the buffer `b` as used last."""
    p = place_at(_place(b, k))
    p.newer, p.older = NONE, b.newest
    if b.newest == NONE:
        b.oldest = k
    else:
        place_at(_place(b, b.newest)).newer = k
    b.newest = k


@inline
def _leave_order(b: Any, k: int) -> None:
    """Remove place k of the buffer `b` from the order of use."""
    p = place_at(_place(b, k))
    if p.newer == NONE:
        b.newest = p.older
    else:
        place_at(_place(b, p.newer)).older = p.older
    if p.older == NONE:
        b.oldest = p.newer
    else:
        place_at(_place(b, p.older)).newer = p.newer


@inline
def _leave_bucket(b: Any, k: int) -> None:
    """Remove place k of the buffer `b` from the bucket of its line."""
    p = place_at(_place(b, k))
    bucket = p.line & b.mask
    at = get_int(b.buckets, bucket)
    if at == k:
        set_int(b.buckets, bucket, p.next)
        return
    while place_at(_place(b, at)).next != k:
        at = place_at(_place(b, at)).next
    place_at(_place(b, at)).next = p.next
