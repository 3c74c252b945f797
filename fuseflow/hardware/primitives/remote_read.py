"""Load and scan at a memory that takes time: an asker, which reads the inputs and requests lines, and a responder, which emits
the node's output once the answer has come. The link between them carries tokens, each with the number of answers for which it
waits.

Their processes are the same as in `fuseflow.sim.reference.remote_memory`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fuseflow.firing_rules.expressions import YES, Expr, concat
from fuseflow.firing_rules.rules import EMPTY, LEAST_WIDTH, Head, Module
from fuseflow.hardware.node_context import NodeContext
from fuseflow.hardware.primitives.memory_ports import Extent, ReadPort, elements_in_flight, read_port
from fuseflow.primitives.scan import listed, walk
from fuseflow.samml import nodes as n
from fuseflow.tensors.levels.base import StoredArray


@dataclass(frozen=True, slots=True)
class RequestLink:
    """The link of `depth` slots after an asker, and its next token: a value is a requested element, with `beside` further
    bits."""

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
