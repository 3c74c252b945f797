"""What kernels ask of a memory that takes time: lines of the arrays of a node, as far as its answers allow (docs/memory.md).

A requester is what a node has to do with one of its arrays: it is shared by the parts that ask, that fetch ahead and that wait for answers.
"""

from __future__ import annotations

from typing import Any

from fuseflow.sim.engine.node_records import ANSWER, LARGE, ROOM, WAIT, fire
from fuseflow.sim.memory.ports import issue, port_at, request_at, request_of
from fuseflow.sim.native.records import Record, called, get_int, inline, set_int

REQUESTER = Record(
    "port base stride size count "  # address of the port at the memory; of the array there; bytes of an element; elements
    "bits "  # a line is 2**bits bytes
    "outstanding "  # requests without an answer, at most
    "lines ahead touched needed "  # of an array that is fetched ahead: the cycle in which each of its first lines was needed
    "line next request "  # last asked for; to be sent next of what was begun, or -1; that answers what was read last
    "free wanted "  # when a request without an answer more is allowed; the first whose answer is still looked at
    "length filled"  # of an array that is written: bytes
)
requester_at = REQUESTER.at


@inline
def answer(node: Any, r: Any, request: int) -> int:
    """The cycle in which the answer of a request is seen; WAIT if that is not known yet. Those before it are not looked at any more."""
    if request < port_at(r.port).issued:
        seen: int = request_at(request_of(r.port, request)).visible
        if seen >= 0:
            r.wanted = request
            return seen
    node.waits = ANSWER
    return WAIT


@inline
def answered(node: Any, visible: int, answer: int) -> int:
    """The cycle by which a token that is visible from a cycle on has its answer, too. Once for each firing that waits."""
    node.waited += max(answer - max(visible, node.last + 1), 0)
    return max(answer, visible)


@inline
def may_send(node: Any, r: Any) -> bool:
    """Whether the next line may be asked for, from cycle `r.free` on."""
    p = port_at(r.port)
    credit = p.issued - r.outstanding
    r.free = 0
    if credit >= 0:
        seen = request_at(request_of(r.port, credit)).visible
        if seen < 0:
            node.waits = ANSWER
            return False
        r.free = seen
        p.released = max(p.released, min(credit, r.wanted))
    if p.issued - p.released > p.mask:
        node.waits = ROOM
        return False
    return True


@called
def send(node: Any, r: Any, first: int, last: int, seen: int, free: int, write: int) -> int:
    """A firing for each of these lines, which asks for it; the cycle of the last. WAIT if one may not be sent yet: call it again."""
    if r.next < 0:
        r.next = first
    t = WAIT
    while r.next <= last:
        if not may_send(node, r):
            return WAIT
        if write != 0:
            node.waited += max(r.free - max(node.ready, seen), 0)
        t = fire(node, seen, max(free, r.free), 1)
        issue(r.port, r.base + (r.next << r.bits), 1 << r.bits, write, t)
        r.next += 1
    r.next = -1
    return t


@inline
def touch(r: Any, line: int, t: int) -> None:
    """A line of an array that is fetched ahead is needed, and those before it."""
    while r.needed <= line:
        set_int(r.touched, r.needed, t)
        r.needed += 1


@inline
def touched(r: Any, line: int) -> int:
    found: int = get_int(r.touched, line)
    return found


@inline
def read_bytes(node: Any, r: Any, low: int, high: int, seen: int, free: int) -> int:
    """The firings that read these bytes of the array: the cycle of the last, or WAIT."""
    first, last = low >> r.bits, (high - 1) >> r.bits
    if r.lines != 0:
        t = fire(node, seen, free, 1)
        touch(r, last, t)
        r.request = last
        return t
    if r.next < 0:
        first += first == r.line
        if first > last:
            return fire(node, seen, free, 1)
    t = send(node, r, first, last, seen, free, 0)
    if t != WAIT:
        r.line = last
        r.request = port_at(r.port).issued - 1
    return t


@inline
def fitting_in(r: Any, line: int) -> int:
    """The last element that lies in a line or before it, whole."""
    found: int = (((line + 1) << r.bits) - r.size) // r.stride
    return found


@inline
def read(node: Any, r: Any, e: int, k: int, seen: int, free: int) -> tuple[int, int]:
    """Read as many of the k elements from e on as one request answers: the cycle of the first, or WAIT, and how many."""
    low = r.stride * e
    if r.lines != 0:
        line = (low + r.size - 1) >> r.bits
        n = min(k, fitting_in(r, line) - e + 1)
        t = fire(node, seen, free, n)
        touch(r, line, t)
        r.request = line
        return t, n
    if r.next < 0 and low >> r.bits == r.line:
        n = min(k, fitting_in(r, r.line) - e + 1)
        if n > 0:
            return fire(node, seen, free, n), n
    return read_bytes(node, r, low, low + r.size, seen, free), 1


@inline
def unfilled(r: Any) -> int:
    """How many elements can be written before one fills a line."""
    line = (1 << r.bits) - 1
    found: int = (line - (r.filled & line)) // r.size
    return found


@inline
def write(node: Any, r: Any, seen: int) -> int:
    """The firings that write an element that fills lines; the cycle of the last, or WAIT."""
    filled = r.filled + r.size
    if filled > r.length:
        node.fault = LARGE
        return WAIT
    t = send(node, r, r.filled >> r.bits, (filled >> r.bits) - 1, seen, 0, 1)
    if t != WAIT:
        r.filled = filled
    return t


@inline
def flush(node: Any, r: Any) -> bool:
    """The firing that writes the last line, if it was begun; whether all is sent."""
    line = r.filled >> r.bits
    return bool(r.filled == line << r.bits or send(node, r, line, line, 0, 0, 1) != WAIT)
