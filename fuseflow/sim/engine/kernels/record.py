"""Record: every token of a stream with the cycle from which it is visible, for checks and comparisons. Takes no part in time."""

from __future__ import annotations

import numpy as np

from fuseflow.samml.nodes import Port
from fuseflow.sim.engine.node_layout import Array, Part, fitting, words
from fuseflow.sim.engine.node_records import ENDED, GROW, awaits, node_at, source
from fuseflow.sim.engine.stream_rings import CONTROL, DONE, SLICE, copy, element, head_run, take, visible, word_in
from fuseflow.sim.native.records import Record, address, set_int
from fuseflow.tile_ops import TileShape

RECORD = Record("tokens count limit words")
state_at = RECORD.at


def recorder(port: Port, tile: TileShape, limit: int, keep: dict[int, Array]) -> Part:
    """A part that reads the stream: (kind, visible cycle, word or words) of every token."""
    limit = fitting(limit, tile)
    tokens, state = np.zeros((limit, 2 + words(tile)), np.int64), RECORD.array(1)
    keep[address(tokens)] = tokens
    state["tokens"], state["limit"], state["words"] = address(tokens), limit, words(tile)
    return Part(run_record, state, (port,), ())


def run_record(at: int) -> int:
    node = node_at(at)
    s = state_at(node.state)
    reader = source(node, 0)
    while True:
        k = awaits(node, 0)
        if k == 0:
            return 0
        k = min(k, s.limit - s.count)
        if k == 0:
            node.waits = GROW
            return 0
        run, first, seen = head_run(reader), reader.offset, visible(reader)
        for i in range(k):
            cell = s.tokens + 8 * (2 + s.words) * (s.count + i)
            set_int(cell, 0, run.kind)
            set_int(cell, 1, seen + i)
            if run.kind >= SLICE:
                copy(cell + 16, element(reader) + 8 * s.words * i, s.words)
            else:
                set_int(cell, 2, word_in(run, first + i))
        last = run.kind == CONTROL and run.word == DONE
        take(reader, k, seen)
        node.firings += k
        s.count += k
        if last:
            node.waits = ENDED
            return 0
