"""This module makes room for kernels, which cannot allocate: rings of streams, pop histories of readers and workspaces grow, and
full buffers of writers are emptied."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from fuseflow.native.records import address
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.network_layout import NetworkLayout
from fuseflow.sim.engine.node_firing import BUFFER, GROW, INPUT, OUTPUT, ROOM
from fuseflow.sim.engine.node_layout import Array
from fuseflow.sim.engine.pop_history import POPS
from fuseflow.sim.engine.stream_rings import FULL_RING, READER_SIZE, RUN, SCRATCH, STREAM_SIZE


@dataclass(slots=True)
class PartOutput:
    """The output of writers and recorders, as arrays in order, by the number of the part: `elements`, and `ends` of fibers."""

    elements: dict[int, list[Array]] = field(default_factory=lambda: defaultdict(list))
    ends: dict[int, list[Array]] = field(default_factory=lambda: defaultdict(list))


def serve(layout: NetworkLayout, part_output: PartOutput, until: int) -> bool:
    """Make room for the stuck parts that wait for the engine, and return whether there was any. Streams grow only if nothing else
    helps, and then only the last stream whose part may fire by cycle `until`: it is the reason why those before it are full."""
    waits = layout.nodes["waits"]
    served = False
    for p in np.flatnonzero(waits == GROW).tolist():
        _grow_or_collect(layout, p, part_output)
        served = True
    if (waits == ROOM).any():
        served = True
        assert layout.controller is not None
        memory = layout.controller.memory
        for k, port in enumerate(memory.ports):
            if port["issued"] - port["released"] > port["mask"]:
                memory.make_room(k)
    at_input = np.flatnonzero((waits >= INPUT) & (waits < OUTPUT))
    first_readers = (layout.nodes["inputs"][at_input] - address(layout.readers)) // READER_SIZE
    readers = first_readers + waits[at_input] - INPUT
    for r in readers[layout.readers["stalled"][readers] != 0].tolist():
        _grow_history(layout, r)
        served = True
    if served:
        return True
    at_output = np.flatnonzero((waits >= OUTPUT) & (waits < BUFFER) & (layout.nodes["ready"] <= until))
    streams = stream_numbers(layout, at_output, waits[at_output] - OUTPUT)
    full = streams[layout.streams["blocked"][streams] == FULL_RING]
    if len(full):
        _grow_stream(layout, int(full[-1]))
    return len(full) > 0


def collect_all(layout: NetworkLayout, part_output: PartOutput) -> None:
    """Move the tokens that are left in the buffers of all writers and recorders to `part_output`."""
    for p, owner in enumerate(layout.owners):
        if owner is None or isinstance(owner, n.TensorWriter):
            _grow_or_collect(layout, p, part_output)


def stream_numbers(layout: NetworkLayout, parts: Array, outputs: Array) -> Array:
    """Return, for each pair of a part and an output of it, the number of the stream there."""
    return (layout.nodes["outputs"][parts] - address(layout.streams)) // STREAM_SIZE + outputs


def _grow_or_collect(layout: NetworkLayout, p: int, part_output: PartOutput) -> None:
    """Grow the workspace that part `p` fills, or move the tokens in the buffers of a writer or recorder to `part_output`."""
    state, owner = layout.parts[p].state[0], layout.owners[p]

    def contents(name: str, count: int) -> Array:
        return layout.arrays[int(state[name])][:count].copy()

    if isinstance(owner, n.Workspace):
        layout.tables[owner.name][int(state["started"] - state["working"]) & 1].grow()
        return
    if owner is None:
        part_output.elements[p].append(contents("tokens", int(state["count"])))
        state["count"] = 0
        return
    part_output.elements[p].append(contents("elements", int(state["count"] * state["words"])))
    part_output.ends[p].append(contents("ends", int(state["ended"])))
    state["count"] = state["ended"] = 0


def _grow_history(layout: NetworkLayout, r: int) -> None:
    """Make the pop history of reader `r` eight times as large."""
    reader, old = layout.readers[r], layout.histories[r]
    new = POPS.array(8 * len(old))
    _move(old, new, max(int(reader["noted"]) - len(old), 0), int(reader["noted"]))
    layout.histories[r] = new
    reader["history"], reader["history_mask"], reader["stalled"] = address(new), len(new) - 1, 0


def _move(old: Array, new: Array, start: int, end: int) -> None:
    """Copy elements `start` to `end` of the ring `old` to the larger ring `new`. Element n is at n modulo the size, a power of two."""
    while start < end:  # up to the end of the old ring, then from its beginning
        count = min(end - start, len(old) - (start & (len(old) - 1)))
        at, place = start & (len(old) - 1), start & (len(new) - 1)
        new[place : place + count] = old[at : at + count]
        start += count


def _grow_stream(layout: NetworkLayout, k: int) -> None:
    """Double the ring of runs of stream `k`, or its ring of elements, whichever is full."""
    stream = layout.streams[k]
    readers = layout.readers[layout.readers_of[k]]
    if int(stream["tail"]) - int(readers["head"].min()) > int(stream["mask"]):
        _grow_ring(layout, k, int(readers["head"].min()))
    else:
        _grow_scratch(layout, k, int(readers["head"].min()), int(readers["popped"].min()))


def _grow_ring(layout: NetworkLayout, k: int, head: int) -> None:
    stream, old = layout.streams[k], layout.rings[k]
    new = RUN.array(2 * len(old))
    _move(old, new, max(head - 1, 0), int(stream["tail"]))
    layout.rings[k] = new
    stream["ring"], stream["mask"] = address(new), len(new) - 1
    stream["known_tail"] = 0
    for r in layout.readers_of[k]:
        layout.readers[r]["ring"], layout.readers[r]["mask"] = stream["ring"], stream["mask"]


def _grow_scratch(layout: NetworkLayout, k: int, head: int, popped: int) -> None:
    """Double the ring of computed elements of stream `k`, from run `head` and token `popped` on. Token m moves to m modulo the
    new capacity, so every stored run stays in one piece."""
    stream, old, ring = layout.streams[k], layout.scratches[k], layout.rings[k]
    width = int(stream["bytes"]) // 8
    capacity = int(stream["capacity"])
    new = np.zeros(2 * len(old))
    _move(old.reshape(-1, width), new.reshape(-1, width), popped, int(stream["pushed"]))
    layout.scratches[k] = new
    stream["scratch"], stream["capacity"] = address(new), 2 * capacity
    stream["known_pushed"] = 0
    runs = np.arange(head, int(stream["tail"])) & (len(ring) - 1)
    first = int(stream["pushed"]) - np.cumsum(ring["length"][runs][::-1])[::-1]  # the first token of each run
    is_scratch = ring["kind"][runs] == SCRATCH
    ring["word"][runs[is_scratch]] = address(new) + int(stream["bytes"]) * (first[is_scratch] & (2 * capacity - 1))
