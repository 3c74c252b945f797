"""The nodes that make requests to a memory that takes time, and their rules there. Computed levels and resident tensors need none.

Load and most scans have an asker, which reads the inputs and requests lines, and a responder, which emits the output once the answer
has come. The link between them carries tokens, each with the number of answers for which it waits. Other scans and locates request
all that a token needs in askers in series, and gates after them pass a token on once its answers have come: the rank and the words of
a fiber of a bitmap for a scan, a word and its rank for a locate, all coordinates for a locate that keeps its level. Their processes
are the same as in `fuseflow.sim.reference.remote_memory`. Writers and roots are in `remote_moves`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fuseflow.firing_rules.context import Builder
from fuseflow.firing_rules.expressions import YES, Expr, any_of, concat, const
from fuseflow.firing_rules.rules import EMPTY, LEAST_WIDTH, Head, Module
from fuseflow.hardware.node_context import NodeContext
from fuseflow.hardware.primitives.locate_load import PLACE_BITS, KeptLevel, bitmap_reference, bitmap_word, located
from fuseflow.hardware.primitives.memory_ports import Extent, ReadPort, elements_in_flight, loaded, read_port
from fuseflow.hardware.primitives.remote_moves import root, write_lane_values, write_level, write_values
from fuseflow.primitives.scan import gives_elements, listed, walk
from fuseflow.samml import nodes as n
from fuseflow.tensors.levels.base import StoredArray


@dataclass(frozen=True, slots=True)
class RequestLink:
    """The FIFO of `depth` slots that carries tokens from where an element is requested at a port to where its answer is taken. The
    payload of its next token is the number of the request, above `beside` bits that the token brought along."""

    head: Head
    port: ReadPort
    beside: int
    depth: int

    @property
    def payload(self) -> Expr:
        return self.head.payload.bits(0, self.beside)

    @property
    def ready(self) -> Expr:
        """The condition that the answer of the next token has come, or that it waits for none."""
        needed = self.head.payload.bits(self.beside, self.port.answers.width)
        return ~self.head.is_value | self.port.is_answered(needed)


def request_link(context: NodeContext, m: Module, port: ReadPort, name: str, beside: int = 0) -> RequestLink:
    """Declare the link after an asker of a port, with `beside` bits next to the number of answers. Its output is `NAME_out`."""
    assert context.memory is not None
    depth = elements_in_flight(context.memory, port.extent.bits)
    head = m.link(f"{name}_out", name, max(port.answers.width + beside, LEAST_WIDTH), depth)
    return RequestLink(head, port, beside, depth)


def asker(
    m: Module, port: ReadPort, head: Head, element: Expr, on: str, numbered: Mapping[str, Expr | None], plain: Sequence[str] = ()
) -> None:
    """Add a helping process `on` that requests the element `element` for every token `head`. The outputs `numbered` get the
    number of answers for which the token waits, with the given bits beside it; the outputs `plain` get the token unchanged."""
    m.helper(on)
    outs = (*numbered, *plain)
    m.rule(f"{on} control", head.control, [head], gives={out: m.passed(out, head) for out in outs}, closes=True, on=on)
    m.rule(f"{on} empty", head.is_empty, [head], gives={out: m.mark(out, EMPTY) for out in outs}, on=on)

    def gives(needed: Expr) -> dict[str, Expr]:
        values = {out: needed if beside is None else concat(needed, beside) for out, beside in numbered.items()}
        return {out: m.value(out, value) for out, value in values.items()} | {out: m.passed(out, head) for out in plain}

    assert port.extent.size is not None
    port.ask(f"{on} value", head.is_value, port.extent.at(element, port.memory), [head], gives, {}, on)


def scanned_extent(stored: StoredArray, index: int) -> Extent:
    """Return the bits of an array that a scan requests at a reference of `index` bits."""
    return Extent(stored.bits, stored.bits * stored.fiber, stored.bits * stored.scanned, index)


def load(node: n.Load, context: NodeContext, m: Module) -> None:
    ref, decl = context.input(m, 0), context.declared[node.tensor]
    (out,) = context.outputs(m)
    port = read_port(context, m, "val", Extent(decl.value_bits, decl.value_bits, decl.value_bits, context.index))
    link = request_link(context, m, port, "asked", context.index)
    asker(m, port, ref, ref.payload, "ask", {"asked_out": ref.payload})
    head, fill = link.head, context.constant(decl.fill, decl.tile)
    value = m.array("values", link.payload, fill.width)
    m.rule("control", head.control, [head], gives={out: m.passed(out, head)}, closes=True)
    m.rule("empty", head.is_empty, [head], gives={out: m.value(out, fill)})
    m.rule("value", head.is_value & link.ready, [head], gives={out: m.value(out, value)})


def walked_scan(node: n.Scan, context: NodeContext, m: Module, entries: StoredArray, scanned: Sequence[StoredArray]) -> None:
    """Add the rules of a scan that first requests the positions of the fiber's entries (`scanned`), if they are stored, and then
    the entries. A process ahead of the node, the walker, requests the coordinates."""
    level, source, outs, index = context.level(node), context.input(m, 0), context.outputs(m), context.index
    repeats = level.follows or not level.unique
    port = read_port(context, m, entries.kind, Extent(entries.bits, entries.bits, None if repeats else entries.bits, index))
    ref, ready = source.payload, YES
    for stored in scanned:
        pos = read_port(context, m, stored.kind, scanned_extent(stored, index))
        asked = request_link(context, m, pos, "asked", index)
        asker(m, pos, source, ref, "ask", {"asked_out": ref})
        source, ref, ready = asked.head, asked.payload, asked.ready
    link = request_link(context, m, port, "walked", 2 * index)
    _walker(m, port, source, ref, ready, repeats)
    head, at, place = link.head, link.payload.bits(0, index), link.payload.bits(index, index)
    element = {out: m.value(out, part) for out, part in zip(outs, (m.array("crds", at, index), place), strict=False)}
    m.rule("control", head.control, [head], gives={out: m.passed(out, head) for out in outs}, closes=True)
    m.rule("value", head.is_value & link.ready, [head], gives=element)


def _walker(m: Module, port: ReadPort, source: Head, ref: Expr, ready: Expr, repeats: bool) -> None:
    """Add the process that walks a fiber and requests its coordinates. In a level whose coordinates repeat (`repeats`), it
    requests all entries up to the next different coordinate, or the end of the fiber."""
    on, out = "walk", "walked_out"
    m.helper(on)
    fiber = listed(m, ref, own_references=repeats)
    behind = m.array("next", fiber.at, ref.width) if repeats else fiber.at + 1
    bits = port.extent.between(fiber.ref, behind) if repeats else port.extent.at(fiber.at, port.memory)

    def gives(needed: Expr) -> dict[str, Expr]:
        return {out: m.value(out, concat(needed, fiber.ref, fiber.at))}

    def element(label: str, when: Expr, takes: Sequence[Head], sets: Mapping[str, Expr | int]) -> None:
        port.ask(f"walks {label}", when, bits, takes, gives, sets, on)

    walk(m, source, [out], fiber, source.is_value, element, ready, on)


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
