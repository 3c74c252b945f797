"""Writers look past links. A `link` is a hop where the route of a stream divides: a process behind a FIFO of a few slots, whose writer
could fire only a few times in one go.

A link passes a token on in every cycle in which its branches have room, and its FIFO has a slot for each cycle that a token is under way
to it and a slot is under way back. So that FIFO holds up its writer only where a reader behind the link holds up the link:

    the writer gives token n no earlier than that reader takes token n - S, plus 1 + b
    S: the slots of both FIFOs    b: both ways back, and a cycle of the link

This is the rule of a FIFO of S slots. So the writer counts the slots of all readers behind a link in place of those of the link. Each
reader has a *witness* at the stream of the writer: a reader record with S and b, and the pops of the reader. The link fires as ever, for
which its FIFO needs no bound, in the same cycles.

A writer sees the pops of far readers at once, so one thread runs the graph. In a deadlock links are waited for again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fuseflow.native.records import address
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.network_layout import NetworkLayout
from fuseflow.sim.engine.node_firing import BUFFER, NOTHING, OUTPUT
from fuseflow.sim.engine.node_layout import Array
from fuseflow.sim.engine.pop_history import POPS
from fuseflow.sim.engine.stream_rings import MANY, READER, READER_SIZE, SHARED


@dataclass(frozen=True, slots=True)
class End:
    """A reader behind links (its number), and the slots and the way back that a writer before the links sees."""

    reader: int
    slots: int
    back: int


class PastLinks:
    """The witnesses of a layout, by stream, until it waits for links again. `passed` are the readers at links that nobody waits for."""

    def __init__(self, layout: NetworkLayout, passed: Array, ends: dict[int, list[End]]) -> None:
        self.layout, self.passed, self.streams = layout, passed, np.array(list(ends), np.int64)
        self.depths, self.addresses = layout.readers["depth"][passed], layout.streams["readers"][self.streams]
        self.kept: list[Array] = []
        """The arrays that kernels find by address."""
        layout.readers["depth"][passed], layout.readers["slot_cursor"][passed] = 0, MANY
        for stream, behind in ends.items():
            self._watch(stream, behind)

    def _watch(self, stream: int, ends: list[End]) -> None:
        """Let the writer of a stream see the readers `ends`, whose histories get room for the pops that it looks at."""
        layout, numbers = self.layout, [end.reader for end in ends]
        for end in ends:
            if len(layout.histories[end.reader]) < end.slots + 2:
                layout.histories[end.reader] = history = POPS.array(history_size(end))
                layout.readers["history"][end.reader], layout.readers["history_mask"][end.reader] = (
                    address(history),
                    len(history) - 1,
                )
        witnesses = READER.array(len(ends))
        witnesses["depth"], witnesses["back"] = [end.slots for end in ends], [end.back for end in ends]
        witnesses["part"] = layout.readers["part"][numbers]
        near = address(layout.readers) + READER_SIZE * np.array(layout.readers_of[stream], np.int64)
        far = address(layout.readers) + READER_SIZE * np.array(numbers, np.int64)
        seen = np.concatenate([near, address(witnesses) + READER_SIZE * np.arange(len(ends)), far])
        self.kept += [witnesses, seen]
        layout.streams["readers"][stream], layout.streams["beyond"][stream] = address(seen), len(ends)

    def remove(self) -> None:
        """Let every writer wait for links again, from the pops on that it looks at next."""
        layout, waits = self.layout, self.layout.nodes["waits"]
        layout.streams["readers"][self.streams], layout.streams["beyond"][self.streams] = self.addresses, 0
        layout.readers["depth"][self.passed] = self.depths
        for r, depth in zip(self.passed.tolist(), self.depths.tolist(), strict=True):
            reader, history = layout.readers[r], layout.histories[r]
            entries = np.arange(max(int(reader["noted"]) - len(history), 0), int(reader["noted"]))
            due = int(layout.streams["pushed"][layout.edges[r].stream]) - depth
            first = history["first"][entries & (len(history) - 1)]
            reader["slot_cursor"] = entries[max(int(np.searchsorted(first, due, "right")) - 1, 0)] if len(entries) else 0
        waits[(waits >= OUTPUT) & (waits < BUFFER)] = NOTHING


def history_size(end: End) -> int:
    """Return the runs of pops that the history of a reader behind links holds."""
    return 1 << (end.slots + 1).bit_length()


def look_past_links(layout: NetworkLayout) -> PastLinks | None:
    """Let the writers of a layout that has not run look past links. Return None if no link is to be looked past: where there is none, where
    a FIFO has too few slots, and where limits leave no room for the history of a reader."""
    links = {p for p, owner in enumerate(layout.owners) if isinstance(owner, n.Link)}
    if not links or (layout.streams["bounded"] == SHARED).any():
        return None
    slots, back, delay = (layout.readers[name].tolist() for name in ("depth", "back", "delay"))
    latency = layout.streams["latency"].tolist()
    given = {p: k for k, p in enumerate(layout.writer_of) if p in links}
    passed = {
        r for r, edge in enumerate(layout.edges) if edge.part in links and slots[r] > latency[edge.stream] + delay[r] + back[r]
    }
    ends: dict[int, list[End]] = {}  # of each stream, those of later parts first

    def behind(stream: int) -> list[End]:
        """Return the readers behind the links that read a stream."""
        near = [r for r in layout.readers_of[stream] if r in passed]
        further = ((r, given[layout.edges[r].part]) for r in near)
        return [End(end.reader, slots[r] + end.slots, back[r] + end.back + 1) for r, k in further for end in (*own(k), *ends[k])]

    def own(stream: int) -> list[End]:
        return [End(r, slots[r], back[r]) for r in layout.readers_of[stream] if slots[r] and r not in passed]

    for stream in reversed(range(len(layout.keys))):
        ends[stream] = behind(stream)
    seen = {stream: some for stream, some in ends.items() if some}
    if not passed or any(history_size(end) > layout.limits.pops for some in seen.values() for end in some):
        return None
    return PastLinks(layout, np.array(sorted(passed), np.int64), seen)
