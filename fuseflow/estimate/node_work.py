"""The work of a node on its streams: firings, FLOPs, and the elements that it reads or writes.

Flows may hold arrays of numbers, one for each part of a stream. The firings are arrays then, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, prod
from typing import TypeAlias, assert_never

import numpy as np

from fuseflow.estimate.stream_flow import Flow, Number, least
from fuseflow.machine.machine import Machine
from fuseflow.memory.settings import IdealMemory
from fuseflow.samml import nodes as n
from fuseflow.samml.public_streams import is_coordinate_drop
from fuseflow.samml.writers import LanePart, lane_part
from fuseflow.tile_ops import TileShape, flops, work_count

ProcessFirings: TypeAlias = tuple[Number, Number]
"""The firings of one process on values, and on stops or `D`."""


def firings(
    node: n.Primitive,
    declared: Mapping[str, n.TensorDecl],
    inputs: Sequence[Flow],
    outputs: Sequence[Flow],
    steps: Number,
    machine: Machine,
) -> list[ProcessFirings]:
    """Return the firings of every process of a node. `steps` are the comparisons, if the node merges; `declared` are the tensors
    by name."""
    if machine.rules == "comal" and (processes := _comal_firings(node, inputs, outputs, machine)) is not None:
        return processes
    if (
        not isinstance(machine.memory, IdealMemory)
        and isinstance(node, n.TensorUser)
        and node.asks_memory(declared)
        and (processes := _remote_firings(node, declared[node.tensor], inputs, outputs, _line(declared[node.tensor], machine)))
        is not None
    ):
        return processes
    match node:
        case n.Root():
            return [(1, 1)]
        case n.Scan() | n.Range():
            ref, crd = inputs[0], outputs[0]
            return [(crd.elements + crd.inner - crd.inner_filled, ref.elements + ref.stops - ref.inner_filled + 1)]
        case n.Repeat():
            signal = inputs[1]
            return [(signal.elements + signal.inner - signal.inner_filled, signal.stops + 1)]
        case n.Join():
            return [(steps, inputs[0].stops + 1)]
        case n.Align():
            old, new, x = inputs
            return [(steps + x.elements, x.stops - (old.stops - old.inner_filled) + new.stops + 1)]
        case n.Reduce():
            x = inputs[0]
            return [(x.elements, x.stops + (x.filled[-2] if x.depth > 1 else 0) + 1)]
        case n.Workspace():
            x, out = inputs[-1], outputs[-1]
            childless = x.empty(inputs[0].depth + 1, x.depth)
            return [(x.elements, x.stops + childless + 1), (out.elements, out.stops + 1)]
        case n.Drop():
            x, out = inputs[-1], outputs[-1]
            childless = x.empty(inputs[0].depth + 1, x.depth)
            more = out.stops - inputs[0].stops
            return [(x.elements + childless, x.stops + more * (more > 0) + 1)]
        case n.Flatten():
            x = inputs[1]
            return [(x.elements + x.inner - x.inner_filled, x.stops + 1)]
        case n.SplitLevel():
            return [(inputs[0].elements, inputs[0].stops + outputs[0].elements - inputs[0].inner_filled + 1)]
        case n.Merge():
            return [(outputs[0].elements, outputs[0].stops + 1)]
        case n.Locate() if node.keeps(declared):
            return [(inputs[0].elements + outputs[0].read, inputs[0].stops + 1)]
        case n.WriteLevel() | n.WriteValues():
            return [(_entries_written(node, declared[node.tensor], inputs[0]), inputs[0].stops + 1)]
        case n.Pointwise() | n.Fork() | n.TensorWriter():  # one firing for each token
            return [(inputs[0].elements, inputs[0].stops + 1)]
        case unknown:
            assert_never(unknown)


def _line(decl: n.TensorDecl, machine: Machine) -> int:
    """Return the bytes of a request for a tensor: of a line of the memory, or of a word of the scratchpad."""
    assert not isinstance(machine.memory, IdealMemory)
    return machine.scratchpad.bytes_a_cycle if decl.scratchpad and machine.scratchpad is not None else machine.memory.line


def _comal_firings(
    node: n.Primitive, inputs: Sequence[Flow], outputs: Sequence[Flow], machine: Machine
) -> list[ProcessFirings] | None:
    """Return the firings by the rules of `comal`, None where these are the usual ones, as for a scan that asks a memory."""
    if isinstance(node, n.Range) or (isinstance(node, n.Scan) and machine.memory.model == "ideal"):
        ref = inputs[0]
        return [(outputs[0].elements, ref.elements + ref.stops - ref.inner_filled + 1)]
    if isinstance(node, n.Drop) and is_coordinate_drop(node):
        return [(inputs[0].elements, inputs[0].stops + 1)]
    if isinstance(node, n.Repeat):
        return [(inputs[1].tokens, 0)] * 2
    if isinstance(node, n.Reduce):
        return [(inputs[0].elements, inputs[0].stops + 1)]
    if isinstance(node, n.Accumulate):
        reduced, *between, _, x = inputs
        between_stops = sum(stream.inner_filled for stream in between)
        return [(x.elements, x.stops - x.empty(1, reduced.depth) + between_stops + reduced.stops + 1)]
    if isinstance(node, n.WriteLevel):
        return [(inputs[0].elements, inputs[0].inner_filled + 1)]
    if isinstance(node, n.WriteValues):
        return [(inputs[0].elements, 1)]
    return None


def _remote_firings(
    node: n.Primitive, decl: n.TensorDecl, inputs: Sequence[Flow], outputs: Sequence[Flow], line: int
) -> list[ProcessFirings] | None:
    """Return the firings with a memory that takes time, in lines of `line` bytes, None where these are the usual ones.

    Requests are made by another process, whose firings do not count. So a scan through entries fires once for each token that it
    makes. A writer fires for each line that an element fills, and at the end once for each array whose last line is not full.
    """
    if isinstance(node, n.Scan) and decl.format.levels[node.level].reads(decl.size(node.level)).entries is not None:
        return [(outputs[0].elements, outputs[0].stops + 1)]
    if isinstance(node, n.WriteLaneValues):
        return [(_lane_write_firings(inputs[0].elements, lane_part(node, decl), decl.value_bits, line), inputs[0].stops + 1)]
    if isinstance(node, n.WriteValues):
        return [(_write_firings(_entries_written(node, decl, inputs[0]), decl.value_bits, 0, line), inputs[0].stops + 1)]
    if isinstance(node, n.WriteLevel):
        x, written, arrays = inputs[0], _entries_written(node, decl, inputs[0]), decl.stored_arrays(node.level)
        entries = [
            _write_firings(written, array.bits * array.entry, array.first * array.bits, line) for array in arrays if array.entry
        ]
        ends = [
            _write_firings(x.inner, array.bits * array.fiber, array.first * array.bits, line) for array in arrays if array.fiber
        ]
        return [((sum(entries) if entries else written) + sum(ends), x.stops - (x.inner if ends else 0) + 1)]
    return None


def _entries_written(node: n.WriteLevel | n.WriteValues, decl: n.TensorDecl, stream: Flow) -> Number:
    """Return the number of entries that a writer writes: those on its stream, and those with which it pads fibers."""
    room = decl.room(node.level if isinstance(node, n.WriteLevel) else -1)
    return stream.elements if room is None else stream.inner * room


def _write_firings(elements: Number, bits: int, start: int, line: int) -> Number:
    """Return the firings for writing elements of `bits` bits behind the first `start` bits of an array, in lines of `line` bytes.

    There is one for each element, or one for each line that an element fills if these are more; and one for a last line that is not full.
    """
    end, line_bits = start + elements * bits, 8 * line
    return (elements if bits <= line_bits else end // line_bits - start // line_bits) + (end % line_bits != 0)


def _lane_write_firings(elements: Number, part: LanePart, bits: int, line: int) -> Number:
    """Return the firings for writing elements of `bits` bits to the positions of a lane, in lines of `line` bytes.

    An element takes one, or one for each line that it fills, or that is left after it, if these are more; and a last line that is
    begun takes one. Lines repeat after some runs, so only the elements of these runs are inspected. If the number of elements is
    not whole, each takes the mean.
    """
    if not part.run:  # a dimension inside has size 0, and no run an element
        return 0 * elements
    line_bits = 8 * line
    period = part.run * (line_bits // gcd(part.run * part.lanes * bits, line_bits))
    numbers = np.arange(period + 1)
    starts = (numbers // part.run * part.lanes * part.run + numbers % part.run + part.first) * bits
    first, last, following = starts[:-1] // line_bits, (starts[:-1] + bits - 1) // line_bits, starts[1:] // line_bits
    begun = last == following
    total = np.concatenate([[0], np.cumsum(np.maximum(last - first + ~begun, 1))])
    if not isinstance(elements, int) or not elements:
        return elements * (int(total[-1]) / period)
    periods, rest = divmod(elements, period)
    return periods * int(total[-1]) + int(total[rest]) + int(begun[(elements - 1) % period])


def node_flops(node: n.Primitive, inputs: Sequence[Flow], tiles: Sequence[TileShape]) -> Number:
    """Return the FLOPs of a node by the table of operators. A reduction has one for each value that it folds."""
    if not node.operator:
        return 0
    return (work_count if node.grain == "fold" else flops)(node.operator, tiles) * node_values(node, inputs)


def node_values(node: n.Primitive, inputs: Sequence[Flow]) -> Number:
    """Return the number of values that a node applies its operator to, or that it folds."""
    return inputs[-1 if node.grain == "fold" else 0].elements


def elements_read(
    node: n.Scan | n.Locate | n.Load, decl: n.TensorDecl, inputs: Sequence[Flow], outputs: Sequence[Flow]
) -> dict[str, Number]:
    """Return the number of elements that a node reads from memory, by kind of array."""
    present = inputs[0].elements - inputs[0].absent
    match node:
        case n.Load():
            return {"val": present * prod(decl.tile)}
        case n.Scan():
            read = outputs[0].read
            return {array.kind: array.scanned * present + array.entry * read for array in decl.stored_arrays(node.level)}
        case n.Locate() if node.keeps({node.tensor: decl}):
            return {"crd": outputs[0].read}
        case n.Locate():
            present = least(flow.elements - flow.absent for flow in inputs)  # only repeated coordinates can be `N`
            return {array.kind: present for array in decl.stored_arrays(node.level) if array.told}
        case unknown:
            assert_never(unknown)


def elements_written(decl: n.TensorDecl, levels: Sequence[Flow], values: Flow) -> dict[tuple[int, str], Number]:
    """Return the number of elements written to each array of a result, by its level (-1 for the values) and its kind, given the flows that
    its writers read. Of a result that is like another tensor, the values alone are written."""
    if decl.like:
        return {(-1, "val"): (values.elements if (room := decl.room(-1)) is None else values.inner * room) * prod(decl.tile)}
    entries = levels[-1].elements if levels else 1
    parents: Number = 1
    words: dict[tuple[int, str], Number] = {}
    for p, (kind, flow, dimension) in enumerate(zip(decl.format.levels, levels, decl.format.order, strict=True)):
        own = flow.elements if kind.unique and not kind.follows else entries
        each = decl.shape[dimension] if kind.full else decl.room(p)
        children = own if each is None else parents * each
        for array in decl.stored_arrays(p):
            words[p, array.kind] = array.count(parents, children)
        parents = children
    stored = values.elements if decl.room(-1) is None else parents
    return {**words, (-1, "val"): stored * prod(decl.tile)}
