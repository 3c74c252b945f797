"""Kernels request lines of a node's arrays from a memory that takes time, with a bounded number of unanswered requests
(docs/explanation/memory.md).

A requester (the argument `r`) is the record of a node's traffic with one array. The parts of the node that request, that fetch
ahead and that wait for answers share it.
"""

from __future__ import annotations

from typing import Any

from fuseflow.memory.ports import PORT_SIZE, issue, port_at, request_at, request_of
from fuseflow.native.records import Record, inline, outline, prefetch, set_int
from fuseflow.sim.engine.node_firing import ANSWER, LARGE, ROOM, WAIT, fire

REQUESTER = Record(
    "port base stride size count "  # address of the port at the memory; of the array there; bits of an element; elements
    "data width "  # what to prefetch: address of the array in this process (else any), and bytes of an element there (else 0)
    "bits "  # a line is 2**bits bits
    "outstanding "  # requests without an answer, at most
    "banks bank "  # of an array that is preloaded: its ports, one behind the other from `port` on; which of them this one is
    "loads "  # of an array that is read ahead of tokens: the requester of the lines that are loaded into the scratchpad before; 0: none
    "lines ahead touched needed "  # of an array that is fetched ahead: the cycle in which each of its first lines was needed
    "line next request "  # last asked for; next to be sent of the begun lines, or -1; that answers the last read
    "free wanted "  # the cycle that allows the next request; the first request whose answer is still needed
    "length filled "  # of an array that is written: bits
    "run left gap begun"  # if lanes write: entries of a run; entries left of it; bits between runs; whether a line is begun
)
"""Offsets in an array are counted in bits, since an element may be smaller than a byte. Lines are whole bytes, so the lines with
the bits of an element have all bytes in which the element lies."""
BYTE = 3
"""A byte is 2**3 bits."""
requester_at = REQUESTER.at


@inline
def answer_cycle(node: Any, r: Any, request: int) -> int:
    """Return the cycle in which the answer to a request is visible, or WAIT if not known. Nothing asks for earlier requests any more."""
    if r.banks != 0:
        return _line_cycle(node, r, request)
    if request < port_at(r.port).issued:
        visible_at: int = request_at(request_of(r.port, request)).visible
        if visible_at >= 0:
            r.wanted = request
            return visible_at
    _await(node, r.port, request)
    return WAIT


@inline
def loaded_cycle(node: Any, loads: int) -> int:
    """Return the cycle in which the last line is there that the requester at an address loads into the scratchpad, or WAIT if that is
    not known yet. Address 0: nothing is loaded."""
    if loads == 0:
        return 0
    r = requester_at(loads)
    return answer_cycle(node, r, r.lines - 1)


@outline
def _line_cycle(node: Any, r: Any, line: int) -> int:
    """Return the cycle in which a line of a preloaded array and all before it have arrived, or WAIT if that is not known yet."""
    cycle = 0
    for bank in range(min(r.banks, line + 1)):
        port, request = r.port + PORT_SIZE * bank, (line - bank) // r.banks
        visible_at = -1
        if request < port_at(port).issued:
            visible_at = request_at(request_of(port, request)).visible
        if visible_at < 0:
            _await(node, port, request)
            return WAIT
        cycle = max(cycle, visible_at)
    r.wanted = line
    return cycle


@inline
def answered_port(r: Any) -> int:
    """Return the address of the port whose answer `answer_cycle` returned last."""
    port: int = r.port
    for bank in range(1, min(r.banks, r.wanted + 1)):
        other = r.port + PORT_SIZE * bank
        if _visible(r, other, bank) > _visible(r, port, (port - r.port) // PORT_SIZE):
            port = other
    return port


@inline
def answered_request(r: Any, port: int) -> int:
    """Return the number of the request at this port whose answer `answer_cycle` returned last."""
    request: int = r.wanted if r.banks == 0 else (r.wanted - (port - r.port) // PORT_SIZE) // r.banks
    return request


@inline
def _visible(r: Any, port: int, bank: int) -> int:
    """Return the cycle of the last answer of one port (number `bank`) of a preloaded array among the lines up to `r.wanted`."""
    cycle: int = request_at(request_of(port, (r.wanted - bank) // r.banks)).visible
    return cycle


@inline
def _await(node: Any, port: int, request: int) -> None:
    """Set the node to wait for the answer to a request at a port."""
    node.waits, node.asked_port, node.request = ANSWER, port, request


@inline
def awaited_answer(node: Any) -> int:
    """Return the cycle in which the answer that a node waits for is visible, or WAIT if that is not known yet."""
    if node.request >= port_at(node.asked_port).issued:
        return WAIT
    visible_at: int = request_at(request_of(node.asked_port, node.request)).visible
    return visible_at


@inline
def wait_for_answer(node: Any, visible: int, answer: int) -> int:
    """Return the cycle by which a token is visible (`visible`) and its answer is, too (`answer`), and count the cycles of
    waiting. Call this once for each firing that waits."""
    node.waited += max(answer - max(visible, node.last + 1), 0)
    return max(answer, visible)


@inline
def may_send(node: Any, r: Any) -> bool:
    """Return whether the next line may be requested, from cycle `r.free` on. If not, the node waits."""
    p = port_at(r.port)
    credit = p.issued - r.outstanding
    r.free = 0
    if credit >= 0:
        visible_at = request_at(request_of(r.port, credit)).visible
        if visible_at < 0:
            _await(node, r.port, credit)
            return False
        r.free = visible_at
        p.released = max(p.released, min(credit, r.wanted))
    if p.issued - p.released > p.mask:
        node.waits = ROOM
        return False
    return True


@inline
def issue_line(r: Any, line: int, write: int, t: int) -> None:
    """Issue the request for a line of the array (`write`: 1 to write) in cycle t."""
    issue(r.port, r.base + (line << (r.bits - BYTE)), 1 << (r.bits - BYTE), write, t)


@outline
def send(node: Any, r: Any, first: int, last: int, visible_at: int, free: int, write: int, k: int) -> int:
    """Fire once for each of the lines `first` to `last`, to request it (`write`: 1 to write), and k times for the last one. Return
    the first cycle of the last line. Return WAIT if a line may not be requested yet; the caller then calls again with the same
    lines."""
    if r.next < 0:
        r.next = first
    t = WAIT
    while r.next <= last:
        if not may_send(node, r):
            return WAIT
        if write != 0:
            node.waited += max(r.free - max(node.ready, visible_at), 0)
        t = fire(node, visible_at, max(free, r.free), k if r.next == last else 1)
        issue_line(r, r.next, write, t)
        r.next += 1
    r.next = -1
    return t


@inline
def touch_lines(r: Any, line: int, t: int) -> None:
    """Note that a line of an array that is fetched ahead, and all lines before it, are needed from cycle t on. Lines of a
    preloaded array need no note."""
    while r.banks == 0 and r.needed <= line:
        set_int(r.touched, r.needed, t)
        r.needed += 1


@inline
def read_bits(node: Any, r: Any, low: int, high: int, visible_at: int, free: int, k: int) -> int:
    """Fire to read the bits `low` to `high` - 1 of the array, and k - 1 times more for elements that end in the same line. Return
    the cycle of the first firing after which all these bits are requested, or WAIT."""
    first, last = low >> r.bits, (high - 1) >> r.bits
    if r.lines != 0:
        t = fire(node, visible_at, free, k)
        touch_lines(r, last, t)
        r.request = last
        return t
    if r.next < 0:
        first += first == r.line
        if first > last:
            return fire(node, visible_at, free, k)
    t = send(node, r, first, last, visible_at, free, 0, k)
    if t != WAIT:
        r.line = last
        r.request = port_at(r.port).issued - 1
    return t


@inline
def last_element_in(r: Any, line: int) -> int:
    """Return the number of the last element that ends in a line or before it."""
    element: int = (((line + 1) << r.bits) - r.size) // r.stride
    return element


@inline
def read_elements(node: Any, r: Any, e: int, k: int, visible_at: int, free: int) -> tuple[int, int]:
    """Fire to read as many of the k elements from number `e` on as one request covers. Return the cycle of the first firing, or
    WAIT, and the number of elements. They are prefetched, since the kernel that waits for the answer reads them soon."""
    low = r.stride * e
    n = min(k, last_element_in(r, (low + r.size - 1) >> r.bits) - e + 1)
    prefetch(r.data + r.width * e)
    prefetch(r.data + r.width * (e + n - 1))
    return read_bits(node, r, low, low + r.size, visible_at, free, n), n


@inline
def elements_before_full(r: Any) -> int:
    """Return how many elements can be written before one fills a line, or ends a run of a lane."""
    line = (1 << r.bits) - 1
    count: int = (line - (r.filled & line)) // r.size
    return count if r.run == 0 else min(count, r.left - 1)


@inline
def write_elements(r: Any, k: int) -> None:
    """Count k elements as written by the writer `r`, where none of them fills a line of memory or is the last of the elements that a
    lane writes in one turn."""
    r.filled += r.size * k
    r.left -= k
    r.begun = 1


@inline
def write_element(node: Any, r: Any, visible_at: int) -> int:
    """Fire to write an element that fills lines or ends a run of a lane, and return the cycle of the last firing. Return WAIT if
    a line may not be requested yet, or with a fault if the array is too small."""
    end = r.filled + r.size
    if end > r.length:
        node.fault = LARGE
        return WAIT
    left = r.left - 1
    following = end + r.gap if left == 0 else end
    last = (end - 1) >> r.bits
    begun = 1 if last == following >> r.bits else 0
    first, last = r.filled >> r.bits, last - begun
    t = fire(node, visible_at, 0, 1) if last < first else send(node, r, first, last, visible_at, 0, 1, 1)
    if t != WAIT:
        r.filled, r.begun = following, begun
        r.left = r.run if left == 0 else left
    return t


@inline
def flush(node: Any, r: Any) -> bool:
    """Fire to write the last line, if it is partly filled, and return whether everything is sent."""
    line = r.filled >> r.bits
    return bool(r.begun == 0 or send(node, r, line, line, 0, 0, 1, 1) != WAIT)
