"""The steps of the processes that read and write at a memory that takes time: requests, answers, and tokens between them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from fuseflow.samml.tokens import D, N, Stop, stop
from fuseflow.sim.reference.memory_ports import PreloadPort, ReadPort, WritePort, await_answer, await_loaded
from fuseflow.sim.reference.node_context import Written
from fuseflow.sim.reference.rule_processes import FiberReader
from fuseflow.sim.reference.timed_process import Fifo, Output, Process, Steps, Wait, await_slots, await_tokens
from fuseflow.tensors.levels.base import StoredArray

END = stop(0, 0)


def ask(p: Process, port: ReadPort, stride: int, size: int, count: float, words: int = 0, paired: bool = False) -> Steps:
    """Request `size` bits at `stride` times every reference, which is below `count`, and emit pairs of the token and the number
    of its request. With `paired` the input is pairs whose first element is the token. `words` is the number of words of a value
    (0: not a load)."""
    (source,), (link,) = p.inputs, p.outputs
    requested = 0
    while True:
        while not source:
            yield source
        token, visible = source[0]
        if paired:
            token, _ = token
        free = yield from await_slots(*p.outputs)
        request: int | None = None
        if token is D or token.__class__ is Stop:
            t = p.close(visible, free)
        elif token is N:
            t = p.fire(visible, free)
        else:
            if not 0 <= token < count:
                raise p.outside()
            requested += 1
            t, request = yield from port.ask(p, stride * token, stride * token + size, visible, free)
        source.take(t)
        link.push((token, request), t)
        if token is D:
            if words:
                p.elements = {"val": requested * words}
            return


def _head(source: Fifo, paired: bool) -> Generator[Wait, None, tuple[Any, int | None, int]]:
    """Wait for the next reference of a scan. Returns the token, the request for the position of its fiber if the input is
    `paired` with requests, and the cycle from which both are visible."""
    while not source:
        yield source
    item, visible = source[0]
    token, request = item if paired else (item, None)
    return token, request, visible


def walk(p: Process, pos: ReadPort | None, fiber: FiberReader, port: ReadPort) -> Steps:
    """Run a scan that requests its coordinates through a port: it fires as `scan` does, and once more for every further line. It
    waits for the position of each fiber at the port `pos`, if positions are stored."""
    (source,), (link,) = p.inputs, p.outputs
    while True:
        token, request, visible = yield from _head(source, pos is not None)
        if pos is not None and request is not None:
            visible = p.answered(visible, (yield from await_answer(pos, request)))
        if token is D or token.__class__ is Stop:
            t = p.close(visible, (yield from await_slots(*p.outputs)))
            source.take(t)
            link.push((token.raised() if token.__class__ is Stop else D, None), t)
            if token is D:
                return
            continue
        fiber(p, token)
        pending = True
        bounds = [*fiber.refs, fiber.end] if fiber.size else []
        for crd, (low, high) in zip(fiber.crds, pairwise(bounds), strict=True):
            free = yield from await_slots(*p.outputs)
            t, request = yield from port.ask(p, port.place.bits * low, port.place.bits * high, visible, free)
            if pending:
                source.take(t)
                pending = False
            link.push(((crd, low), request), t)
        if pending:
            source.take(p.fire(visible))
        token, _, visible = yield from _head(source, pos is not None)
        t = p.close(visible, (yield from await_slots(*p.outputs)))
        end = END
        if token.__class__ is Stop:
            if token.low != 0:
                raise p.error(f"stop {token} does not end a fiber of references")
            source.take(t)
            end = stop(0, token.high + 1)
        link.push((end, None), t)


def respond(p: Process, port: ReadPort, values: Callable[[Any], tuple[Any, ...]]) -> Steps:
    """Emit the requested elements, `values` of each token, once the answer has come, with one firing for each token."""
    (link,) = p.inputs
    outputs: tuple[Output, ...] = p.outputs
    while True:
        while not link:
            yield link
        (token, request), visible = link[0]
        answer_cycle = yield from await_answer(port, request)
        free = (yield from await_slots(*outputs)) if p.bounded else 0
        visible = p.answered(visible, answer_cycle)
        is_control = token is D or token.__class__ is Stop
        t = p.close(visible, free) if is_control else p.fire(visible, free)
        link.take(t)
        for out, item in zip(outputs, [token] * len(outputs) if is_control else values(token), strict=True):
            out.push(item, t)
        if token is D:
            return


def point(p: Process, arrays: Sequence[StoredArray], reference: Callable[[int, int], Any]) -> Steps:
    """Emit for each coordinate below a reference a pair: the element of the arrays that holds the coordinate, and the
    coordinate's reference, which the locate will emit."""
    (out,), (stored, *_) = p.outputs, arrays
    lookups = 0
    while True:
        visible = yield from await_tokens(0, p.inputs)
        crd, *ref = (source[0][0] for source in p.inputs)
        free = yield from await_slots(out)
        control = crd is D or crd.__class__ is Stop
        if any((x is D or x.__class__ is Stop) != control or (control and x is not crd) for x in ref):
            raise p.misaligned(crd, *ref)
        target = (crd, crd)
        if not control:
            target = (N, N)
            if crd is not N and N not in ref:
                (parent,) = ref or [0]  # the outermost level has one
                target = parent * stored.fiber + crd // stored.told, reference(crd, parent)
                lookups += 1
        t = p.close(visible, free) if control else p.fire(visible, free)
        for source in p.inputs:
            source.take(t)
        out.push(target, t)
        if crd is D:
            p.elements = {array.kind: lookups for array in arrays}
            return


def start_loaded(p: Process, loads: PreloadPort) -> Steps:
    """Run a root that fires first when the last line that is loaded into the scratchpad has come."""
    (out,) = p.outputs
    loaded = yield from await_loaded(loads)
    free = yield from await_slots(out)
    out.push(0, p.fire(p.answered(0, loaded), free))
    free = yield from await_slots(out)
    out.push(D, p.close(0, free))


def point_kept(p: Process, entries: int, reference: Callable[[Any], Any], loads: PreloadPort | None) -> Steps:
    """Emit the numbers of all elements of a kept level, paired with `N`, once `loads` has read all of its lines. Then emit for each
    coordinate its reference, with no element to request."""
    (source,), (out,) = p.inputs, p.outputs
    loaded = yield from await_loaded(loads)
    for element in range(entries):
        free = yield from await_slots(out)
        out.push((element, N), p.fire(0 if element else p.answered(0, loaded), free))
    while True:
        visible = yield from await_tokens(0, p.inputs)
        crd = source[0][0]
        free = yield from await_slots(out)
        control = crd is D or crd.__class__ is Stop
        t = p.close(visible, free) if control else p.fire(visible, free)
        source.take(t)
        out.push((crd, crd) if control else (N, reference(crd)), t)
        if crd is D:
            return


def gate(p: Process, port: ReadPort, part: int | None, kept: int = 0) -> Steps:
    """Pass every token on once the element that was requested with it has come. The first `kept` tokens are consumed. The token
    is the element `part` of a pair, or comes alone if `part` is None."""
    (tokens, requests), (out,) = p.inputs, p.outputs
    while True:
        visible = yield from await_tokens(0, p.inputs)
        (item, _), ((_, request), _) = tokens[0], requests[0]
        token = item if part is None else item[part]
        answer_cycle = yield from await_answer(port, request)
        free = 0 if kept else (yield from await_slots(out))
        visible = p.answered(visible, answer_cycle)
        is_control = token is D or token.__class__ is Stop
        t = p.close(visible, free) if is_control else p.fire(visible, free)
        tokens.take(t)
        requests.take(t)
        if kept:
            kept -= 1
            continue
        out.push(token, t)
        if token is D:
            return


PortWrite: TypeAlias = tuple[WritePort, int]
"""A port that writes, and the number of bits that it writes at a time."""


def write(p: Process, written: Written, entry: PortWrite | None, closing: Sequence[PortWrite], room: int) -> Steps:
    """Run a writer: values go to the port `entry`, ends of fibers to the ports `closing`. Before a stop that ends a fiber, the
    fiber is padded to `room` entries."""
    (source,), elements = p.inputs, written.elements
    begin = 0
    while True:
        while not source:
            yield source
        token, visible = source[0]
        if token is N:
            raise p.refused()
        if token.__class__ is Stop:
            if token.low == 0:
                for _ in range(begin + room - len(elements)):
                    assert entry is not None, "a fiber with room has entries"
                    yield from entry[0].put(p, entry[1], visible)
                begin = len(elements)
                for port, size in closing:
                    t = yield from port.put(p, size, visible)
            source.take(t if closing and token.low == 0 else p.close(visible))
            written.push(token, 0)
        elif token is D:
            source.take(p.close(visible))
            for port, _ in (*([entry] if entry else []), *closing):
                yield from port.flush(p, visible)
            return
        else:
            source.take(p.fire(visible) if entry is None else (yield from entry[0].put(p, entry[1], visible)))
            written.push(token, 0)
