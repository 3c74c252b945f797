"""Join: the sorted merge of several sides."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from fuseflow.samml import nodes as n
from fuseflow.samml.streams import D, N
from fuseflow.sim.reference.place import Place, Rule
from fuseflow.sim.reference.process import Process, Steps, room


def join(node: n.Join, place: Place) -> Sequence[Process]:
    return place.process(_join, node)


def _join(p: Process, node: n.Join) -> Steps:
    """One firing a comparison, all heads visible; the sides at the smallest coordinate are taken together, emitted or not. A side at
    its stop waits for the others; when all are, one firing takes and emits it."""
    crd_out, *payload_outs = p.outputs
    outs = iter(payload_outs)
    sides = [(p.inputs[crd], [(p.inputs[k], next(outs)) for k in payloads]) for crd, payloads in node.sides()]
    crds = [crd for crd, _ in sides]
    while True:
        seen = 0
        for fifo in p.inputs:
            while not fifo:
                yield fifo
            if fifo[0][1] > seen:
                seen = fifo[0][1]
        heads = [crd[0][0] for crd in crds]
        keys = [head if head.__class__ is int else inf for head in heads]
        least = min(keys)
        if least is inf:
            yield from _together(p, heads[0], seen)
            if heads[0] is D:
                return
            continue
        match node.kind:
            case "intersect":
                emit = keys.count(least) == len(keys)
            case "left":
                emit = keys[0] == least
            case _:
                emit = True
        if emit and p.bounded:
            seen = yield from room(seen, *p.outputs)
        t = p.fire(seen)
        if emit:
            crd_out.push(least, t)
        for (crd, payloads), key in zip(sides, keys, strict=True):
            present = key == least
            if present:
                crd.take(t)
            for payload, out in payloads:
                if emit:
                    out.push(payload[0][0] if present else N, t)
                if present:
                    payload.take(t)


def _together(p: Process, token: object, seen: int) -> Steps:
    """Pass a stop, or `D`, that is on all inputs."""
    heads = [fifo[0][0] for fifo in p.inputs]
    if any(head is not token for head in heads):
        raise p.misaligned(*heads)
    t = p.close((yield from room(seen, *p.outputs)))
    for fifo in p.inputs:
        fifo.take(t)
    for out in p.outputs:
        out.push(token, t)


RULES: dict[type[n.Node], Rule] = {n.Join: join}
