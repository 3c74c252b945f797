"""The nodes that make requests to a memory that takes time, and their rules there. Computed levels and resident tensors need none.

Load and most scans are in `remote_read`, writers in `remote_write`. The scans and locates here request all that a token needs: processes
in series request (askers), and processes after them (gates) pass a token on once its answers have come. A scan of a bitmap requests the
rank and the words of its fiber, a locate one word and its rank, and a locate that keeps its level all coordinates of the level.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from fuseflow.firing_rules.context import Builder
from fuseflow.firing_rules.expressions import YES, Expr, any_of, concat, const
from fuseflow.firing_rules.rules import EMPTY, Head, Module
from fuseflow.hardware.node_context import NodeContext
from fuseflow.hardware.primitives.locate_load import PLACE_BITS, KeptLevel, bitmap_reference, bitmap_word, located
from fuseflow.hardware.primitives.memory_ports import Extent, elements_in_flight, loaded, read_port
from fuseflow.hardware.primitives.remote_read import RequestLink, asker, load, request_link, scanned_extent, walked_scan
from fuseflow.hardware.primitives.remote_root import root
from fuseflow.hardware.primitives.remote_write import write_lane_values, write_level, write_values
from fuseflow.primitives.scan import gives_elements, listed, walk
from fuseflow.samml import nodes as n
from fuseflow.tensors.levels.base import StoredArray

POINT = "point"
"""The process of a locate that determines which elements are requested."""


def asks(node: n.Node, context: NodeContext) -> bool:
    """Return whether a node makes requests to the memory of the machine."""
    if isinstance(node, n.Root):
        return bool(context.transfers)
    if context.memory is None or not isinstance(node, n.TensorUser) or not node.asks_memory(context.declared):
        return False
    return not isinstance(node, n.Scan | n.WriteLevel) or bool(context.level(node).stored)


def scan(node: n.Scan, context: NodeContext, m: Module) -> None:
    reads = context.level(node).reads(context.size(node))
    if reads.entries is None:
        _looked_up_scan(node, context, m, reads.scanned)
    else:
        walked_scan(node, context, m, reads.entries, reads.scanned)


def _looked_up_scan(node: n.Scan, context: NodeContext, m: Module, arrays: Sequence[StoredArray]) -> None:
    """Add the rules of a scan that requests a whole fiber (`arrays`), and walks the fiber once it has come."""
    level, outs = context.level(node), context.outputs(m)
    extents = [scanned_extent(stored, context.index) for stored in arrays]
    requests, tokens = _chain(context, m, context.input(m, 0), arrays, extents, behind=True)
    assert tokens is not None
    link = m.link("passed_out", "passed", context.index, _held(context, extents))
    tokens = _gates(m, tokens, requests)
    m.helper("gate")
    passed = {"passed_out": m.passed("passed_out", tokens)}
    _gate(m, tokens, requests[-1], passed, "gate")
    fiber = listed(m, link.payload, own_references=level.follows or not level.unique)
    walk(m, link, outs, fiber, link.is_value, gives_elements(m, outs, fiber))


def locate(node: n.Locate, context: NodeContext, m: Module) -> None:
    """Add the rules of a locate, which in a bitmap requests the word with the bit of a coordinate and its rank, of the same number."""
    level, size, index = context.level(node), context.size(node), context.index
    if level.kept:
        entries = level.reads(size).entries
        assert entries is not None, "what is kept has entries"
        _kept_locate(node, context, m, entries)
        return
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


def _kept_locate(node: n.Locate, context: NodeContext, m: Module, entries: StoredArray) -> None:
    """Add the rules of a locate that keeps its level (`entries`). First it requests and keeps all coordinates; then it looks
    tokens up, without requests."""
    crd, index, extent = context.input(m, 0), context.index, Extent(entries.bits, entries.bits, entries.bits, context.index)
    (out,) = context.outputs(m)
    elements, targets = _links(context, m, [extent], index, crd.width)
    kept, at = KeptLevel(context, m, context.size(node)), m.register("asked", index)
    asking = at < m.array("count", const(0, 1), index)
    asked = {"elements_out": m.value("elements_out", at), "targets_out": m.mark("targets_out", EMPTY)}
    m.rule("asks", asking & loaded(context, m), gives=asked, sets={"asked": at + 1}, on=POINT)
    _control(m, [crd], ~asking)
    passed = {"elements_out": m.mark("elements_out", EMPTY), "targets_out": m.passed("targets_out", crd)}
    m.rule("points", ~asking & ~crd.control, [crd], gives=passed, on=POINT)
    (request,), _ = _chain(context, m, elements, [entries], [extent], behind=False)
    heads = [targets, request.head]
    m.rule("keeps", kept.loading & request.ready, heads, sets=kept.sets, stores=kept.stores)
    located(m, heads, out, kept.absent(targets), kept.reference(targets), ~kept.loading)


def _links(context: NodeContext, m: Module, extents: Sequence[Extent], element: int, target: int) -> tuple[Head, Head]:
    """Declare the links after the process POINT: one for the numbers of requested elements, with `element` bits, and one for the
    tokens that the node looks up, with `target` bits. Both are equally deep; tokens of the second leave later."""
    m.helper(POINT)
    depth = _held(context, extents)
    return m.link("elements_out", "elements", element, depth), m.link("targets_out", "targets", target, depth)


def _control(m: Module, heads: Sequence[Head], ready: Expr = YES) -> None:
    gives = {name: m.passed(name, heads[0]) for name in ("elements_out", "targets_out")}
    m.rule("points control", ready & heads[0].control, heads, gives=gives, closes=True, on=POINT)


def _held(context: NodeContext, extents: Sequence[Extent]) -> int:
    """Return how many tokens may be on their way to the last process: the elements that every port may have requested ahead."""
    assert context.memory is not None
    sizes = [extent.size for extent in extents if extent.size is not None]
    return min(elements_in_flight(context.memory, size) for size in sizes)


def _chain(
    context: NodeContext, m: Module, head: Head, arrays: Sequence[StoredArray], extents: Sequence[Extent], behind: bool
) -> tuple[list[RequestLink], Head | None]:
    """Add askers in series, each of which requests elements of one of `arrays` for the tokens `head`. Returns for each the link
    to its gate, and with `behind` the tokens after the last asker, else None. Never more of these tokens wait than in a link to a
    gate."""
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
    """Add gates in series, which pass a token on once its answer has come, for all requests but the last. Returns the tokens
    after them. There are never more of these than in the link of the next request."""
    for k, (request, after) in enumerate(pairwise(requests)):
        on, out = f"gate{k}", f"through{k}_out"
        m.helper(on)
        following = m.link(out, f"through{k}", tokens.width, after.depth)
        _gate(m, tokens, request, {out: m.passed(out, tokens)}, on)
        tokens = following
    return tokens


def _gate(m: Module, tokens: Head, request: RequestLink, gives: dict[str, Expr], on: str) -> None:
    heads = [tokens, request.head]
    m.rule(f"{on} control", tokens.control, heads, gives=gives, closes=True, on=on)
    m.rule(f"{on} value", ~tokens.control & request.ready, heads, gives=gives, on=on)


REMOTE_RULES: dict[type[n.Node], Builder] = {
    n.Root: root,
    n.Scan: scan,
    n.Locate: locate,
    n.Load: load,
    n.WriteLevel: write_level,
    n.WriteValues: write_values,
    n.WriteLaneValues: write_lane_values,
}
