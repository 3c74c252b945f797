"""Root, scan and range: the nodes from which coordinates and references come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N, Stop, stop
from fuseflow.sim.reference.fibers import Fiber, FiberReader
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Backlog, Process, Steps, await_slots, look_behind, make_output

BACKLOG_LIMIT = (
    1024  # tokens that a scan may be ahead of its readers: small enough for the caches, large enough to hide the schedule
)
END = stop(0, 0)


def root(node: n.Root, context: NodeContext) -> Sequence[Process]:
    return context.process(_root)


def scan(node: n.Scan, context: NodeContext) -> Sequence[Process]:
    return scan_by(scan_steps, node, context)


def scan_by(steps: Callable[..., Steps], node: n.Scan, context: NodeContext) -> Sequence[Process]:
    """Return the process of a scan with these steps."""
    fiber = FiberReader(context.tensors[node.tensor], node.level)
    (process,) = processes = context.process(steps, fiber, fiber.parents)
    process.elements = fiber.requested
    return processes


def range_(node: n.Range, context: NodeContext) -> Sequence[Process]:
    return range_by(scan_steps, node, context)


def range_by(steps: Callable[..., Steps], node: n.Range, context: NodeContext) -> Sequence[Process]:
    """Return the process of a range with these steps."""
    full = range(node.size), range(node.size)
    process = Process(node, context.inputs, (*context.outputs, make_output(context.latency)), context.interval)
    process.steps = steps(process, lambda ref: full, inf)
    return [process]


def _root(p: Process) -> Steps:
    (out,) = p.outputs
    out.push(0, p.fire(0, (yield from await_slots(out))))
    out.push(D, p.close(0, (yield from await_slots(out))))


def scan_steps(p: Process, fiber: Callable[[Any], Fiber], parents: float, empty_fires: bool = True) -> Steps:
    """One firing gives an element, and the first takes the reference too. Then the closing firing looks at the next reference token. If
    that is a stop, it is merged with the end of the fiber; otherwise the fiber ends alone. A reference without elements costs a firing of
    its own if `empty_fires`; else the closing firing takes it."""
    (ref,), (crd_out, ref_out) = p.inputs, p.outputs
    fire, push_crd, push_ref, bounded = p.fire, crd_out.push, ref_out.push, p.bounded
    backlog = Backlog(p.outputs, BACKLOG_LIMIT)
    ahead = 0
    while True:
        while not ref:
            yield ref
        token, visible = ref[0]
        if token is D or token.__class__ is Stop:
            t = p.close(visible, (yield from await_slots(crd_out, ref_out)) if bounded else 0)
            ref.take(t)
            after = token.raised() if token.__class__ is Stop else D
            push_crd(after, t)
            push_ref(after, t)
            if token is D:
                return
            continue
        if token is not N and not 0 <= token < parents:
            raise p.outside()
        pending = True
        for crd, below in zip(*fiber(token), strict=True):
            t = fire(visible, (yield from await_slots(crd_out, ref_out)) if bounded else 0)
            if pending:
                ref.take(t)
                pending = False
            push_crd(crd, t)
            push_ref(below, t)
            ahead += 1
            if ahead == BACKLOG_LIMIT:
                ahead = 0
                if not backlog:
                    yield backlog
        if pending and not empty_fires:
            visible = yield from look_behind(visible, ref)
            t = p.close(visible, (yield from await_slots(crd_out, ref_out)) if bounded else 0)
            ref.take(t)
            token = ref[0][0]
        else:
            if pending:
                ref.take(fire(visible))
            while not ref:
                yield ref
            token, visible = ref[0]
            t = p.close(visible, (yield from await_slots(crd_out, ref_out)) if bounded else 0)
        end = END
        if token.__class__ is Stop:
            if token.low != 0:
                raise p.error(f"stop {token} does not end a fiber of references")
            ref.take(t)
            end = stop(0, token.high + 1)
        push_crd(end, t)
        push_ref(end, t)


RULES: dict[type[n.Node], Rule] = {n.Root: root, n.Scan: scan, n.Range: range_}
