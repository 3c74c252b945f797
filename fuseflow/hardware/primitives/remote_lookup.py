"""Scans and locates that ask a memory that takes time for all that they need before they go on: askers, one behind the other, and gates
behind them, which let a token through once its answers are there.

A scan of a bitmap asks for the rank and the words of its fiber, a locate for one word and its rank, and a locate that keeps its level for
the coordinates of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from fuseflow.hardware.node_context import NodeContext
from fuseflow.hardware.primitives.memory_ports import Extent, elements_in_flight, read_port
from fuseflow.hardware.primitives.pointwise import PLACE_BITS, KeptLevel, bitmap_reference, bitmap_word, located
from fuseflow.hardware.primitives.remote_read import RequestLink, asker, request_link, scanned_extent
from fuseflow.primitives.scan import gives_elements, listed, walk
from fuseflow.rules.expressions import YES, Expr, any_of, concat, const
from fuseflow.rules.rules import EMPTY, Head, Module
from fuseflow.samml import nodes as n
from fuseflow.tensors.levels.base import StoredArray

POINT = "point"
"""The process of a locate that says which elements are asked for."""


def looked_up_scan(node: n.Scan, context: NodeContext, m: Module, arrays: Sequence[StoredArray]) -> None:
    """A scan that goes through a fiber once all of it is there."""
    level, outs = context.level(node), context.outputs(m)
    extents = [scanned_extent(stored, context.index) for stored in arrays]
    requests, tokens = _chain(context, m, context.input(m, 0), arrays, extents, behind=True)
    assert tokens is not None
    link = m.link("passed_out", "passed", context.index, _held(context, extents))
    tokens = _gates(m, tokens, requests)
    m.helpers.add("gate")
    m.intervals["gate"] = 1
    passed = {"passed_out": m.passed("passed_out", tokens)}
    _gate(m, tokens, requests[-1], passed, "gate")
    fiber = listed(m, link.payload, own_references=level.follows or not level.unique)
    walk(m, link, outs, fiber, link.is_value, gives_elements(m, outs, fiber))


def locate(node: n.Locate, context: NodeContext, m: Module) -> None:
    """A locate in a bitmap. The number of the word that has the bit of a coordinate is the number of its rank, too."""
    level, size, index = context.level(node), context.size(node), context.index
    heads, arrays = context.inputs(m), level.points(size)
    (out,) = context.outputs(m)
    extents = [Extent(stored.bits, stored.bits, stored.bits, index) for stored in arrays]
    word, place = bitmap_word(heads[1].payload if len(heads) == 2 else const(0, index), heads[0], size)
    elements, targets = _links(context, m, extents, index, index + PLACE_BITS)
    absent = any_of(head.is_empty for head in heads)
    _control(m, heads)
    empty = {name: m.mark(name, EMPTY) for name in ("elements_out", "targets_out")}
    asked = {"elements_out": m.value("elements_out", word), "targets_out": m.value("targets_out", concat(place, word))}
    m.rule("points nowhere", ~heads[0].control & absent, heads, gives=empty, on=POINT)
    m.rule("points", ~heads[0].control & ~absent, heads, gives=asked, on=POINT)
    requests, _ = _chain(context, m, elements, arrays, extents, behind=False)
    tokens = _gates(m, targets, requests)
    stored, reference = bitmap_reference(m, tokens.payload.bits(0, index), tokens.payload.bits(index, PLACE_BITS))
    located(m, [tokens, requests[-1].head], out, ~tokens.is_value | ~stored, reference, requests[-1].ready)


def kept_locate(node: n.Locate, context: NodeContext, m: Module, entries: StoredArray) -> None:
    """A locate that keeps its level. First it asks for all coordinates, with no tokens beside them, and keeps them; then it looks
    tokens up, without requests."""
    crd, index, extent = context.input(m, 0), context.index, Extent(entries.bits, entries.bits, entries.bits, context.index)
    (out,) = context.outputs(m)
    elements, targets = _links(context, m, [extent], index, crd.width)
    kept, at = KeptLevel(context, m, context.size(node)), m.register("asked", index)
    asking = at < m.array("count", const(0, 1), index)
    asked = {"elements_out": m.value("elements_out", at), "targets_out": m.mark("targets_out", EMPTY)}
    m.rule("asks", asking, gives=asked, sets={"asked": at + 1}, on=POINT)
    _control(m, [crd], ~asking)
    passed = {"elements_out": m.mark("elements_out", EMPTY), "targets_out": m.passed("targets_out", crd)}
    m.rule("points", ~asking & ~crd.control, [crd], gives=passed, on=POINT)
    (request,), _ = _chain(context, m, elements, [entries], [extent], behind=False)
    heads = [targets, request.head]
    m.rule("keeps", kept.loading & request.ready, heads, sets=kept.sets, stores=kept.stores)
    located(m, heads, out, kept.absent(targets), kept.reference(targets), ~kept.loading)


def _links(context: NodeContext, m: Module, extents: Sequence[Extent], element: int, target: int) -> tuple[Head, Head]:
    """Declare the links behind the process that says which elements are asked for: one for these elements, and one for the tokens
    that the node makes of them. The first has as many slots as the second, whose tokens leave later."""
    m.helpers.add(POINT)
    m.intervals[POINT] = 1
    depth = _held(context, extents)
    return m.link("elements_out", "elements", element, depth), m.link("targets_out", "targets", target, depth)


def _control(m: Module, heads: Sequence[Head], ready: Expr = YES) -> None:
    gives = {name: m.passed(name, heads[0]) for name in ("elements_out", "targets_out")}
    m.rule("points control", ready & heads[0].control, heads, gives=gives, closes=True, on=POINT)


def _held(context: NodeContext, extents: Sequence[Extent]) -> int:
    """Return how many tokens may be on their way to the last process: as many as the elements that each port holds."""
    assert context.memory is not None
    sizes = [extent.size for extent in extents if extent.size is not None]
    return min(elements_in_flight(context.memory, size) for size in sizes)


def _chain(
    context: NodeContext, m: Module, head: Head, arrays: Sequence[StoredArray], extents: Sequence[Extent], behind: bool
) -> tuple[list[RequestLink], Head | None]:
    """Add askers, one behind the other, that each ask for the elements of an array. Returns for each the link to its gate, and with
    `behind` the tokens behind the last one. Never more of these tokens wait than in the link to the gate, which is read later."""
    requests: list[RequestLink] = []
    for k, (stored, extent) in enumerate(zip(arrays, extents, strict=True)):
        port = read_port(context, m, stored.kind, extent)
        request = request_link(context, m, port, f"request{k}")
        plain: list[str] = []
        following = None
        if behind or k < len(arrays) - 1:
            plain = [f"token{k}_out"]
            following = m.link(plain[0], f"token{k}", context.index, request.depth)
        asker(m, port, head, head.payload, f"ask{k}", {f"request{k}_out": None}, plain)
        requests.append(request)
        if following is None:
            return requests, None
        head = following
    return requests, head


def _gates(m: Module, tokens: Head, requests: Sequence[RequestLink]) -> Head:
    """Add gates, one behind the other, which let a token through once its answer is there: for all requests but the last one. Returns the
    tokens behind them. There are never more of these than in the link of the next request."""
    for k, (request, after) in enumerate(pairwise(requests)):
        on, out = f"gate{k}", f"through{k}_out"
        m.helpers.add(on)
        m.intervals[on] = 1
        following = m.link(out, f"through{k}", tokens.width, after.depth)
        _gate(m, tokens, request, {out: m.passed(out, tokens)}, on)
        tokens = following
    return tokens


def _gate(m: Module, tokens: Head, request: RequestLink, gives: dict[str, Expr], on: str) -> None:
    heads = [tokens, request.head]
    m.rule(f"{on} control", tokens.control, heads, gives=gives, closes=True, on=on)
    m.rule(f"{on} value", ~tokens.control & request.ready, heads, gives=gives, on=on)
