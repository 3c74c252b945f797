"""Locate: random access into a dense level."""

from __future__ import annotations

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.node_layout import NodeLayout, Part, Rule
from fuseflow.sim.engine.node_records import ENDED, MISALIGNED, awaits, close, fire, node_at, rooms, source, target
from fuseflow.sim.engine.stream_rings import (  # fmt: skip
    AFFINE,
    CONTROL,
    DONE,
    EMPTY,
    REPEATED,
    SCRATCH,
    head_run,
    push,
    scratch,
    take,
    visible,
    word_in,
)
from fuseflow.sim.native.records import Record, set_int

LOCATE = Record("size")
state_at = LOCATE.at


def locate(node: n.Locate, place: NodeLayout) -> list[Part]:
    decl = place.declared[node.tensor]
    return place.part(run_locate, place.state(LOCATE, size=decl.shape[decl.format.order[node.level]]))


def run_locate(address: int) -> int:
    """One firing a token: the coordinate, and the parent unless the level is the outermost."""
    node = node_at(address)
    s = state_at(node.state)
    crd, ref, out = source(node, 0), source(node, node.arity - 1), target(node, 0)
    alone = node.arity == 1
    while True:
        k = min(awaits(node, 0), node.burst)
        if k == 0:
            return 0
        seen = visible(crd)
        if not alone:
            k = min(k, awaits(node, 1))
            if k == 0:
                return 0
            seen = max(seen, visible(ref))
        k = min(k, rooms(node, 0))
        if k == 0:
            return 0
        run, first = head_run(crd), crd.offset
        parents, parent = head_run(ref), ref.offset
        if (run.kind == CONTROL) != (parents.kind == CONTROL) or (run.kind == CONTROL and run.word != parents.word):
            node.fault = MISALIGNED
            return 0
        if run.kind == CONTROL:
            word = run.word
            t = close(node, seen, out.free)
            take(crd, 1, t)
            if not alone:
                take(ref, 1, t)
            push(out, CONTROL, word, 1, t)
            if word == DONE:
                node.waits = ENDED
                return 0
            continue
        if run.kind == EMPTY or parents.kind == EMPTY:
            kind, word = EMPTY, 0
        elif run.kind == AFFINE and (alone or parents.kind == REPEATED):
            kind, word = AFFINE, run.word + first
            if not alone:
                word += parents.word * s.size
        else:
            kind, word = SCRATCH, scratch(out)
            for i in range(k):
                above = 0 if alone else word_in(parents, parent + i) * s.size
                set_int(word, i, above + word_in(run, first + i))
        t = fire(node, seen, out.free, k)
        take(crd, k, t)
        if not alone:
            take(ref, k, t)
        push(out, kind, word, k, t)


RULES: dict[type[n.Node], Rule] = {n.Locate: locate}
