"""The recorder keeps every token of a stream with the cycle from which it is visible, for checks and comparisons. It does not
change any cycle."""

from __future__ import annotations

import numpy as np

from fuseflow.native.records import Record, address, set_int
from fuseflow.samml.nodes import Port
from fuseflow.sim.engine.node_firing import ENDED, GROW, node_at, source, tokens_at
from fuseflow.sim.engine.node_layout import Array, Part, element_capacity, word_count
from fuseflow.sim.engine.stream_rings import CONTROL, DONE, SLICE, copy, element_address, head_run, take, visible, word_in
from fuseflow.tile_ops import TileShape

RECORD = Record("tokens count limit words")
state_at = RECORD.at


def recorder(port: Port, tile: TileShape, limit: int, arrays: dict[int, Array]) -> Part:
    """Return a part that reads the stream at a port and keeps kind, visible cycle and word or words of every token. Its buffer,
    for about `limit` elements, is put into `arrays`."""
    limit = element_capacity(limit, tile)
    tokens, state = np.empty((limit, 2 + word_count(tile)), np.int64), RECORD.array(1)  # only counted tokens are read
    arrays[address(tokens)] = tokens
    state["tokens"], state["limit"], state["words"] = address(tokens), limit, word_count(tile)
    return Part(run_record, state, (port,), ())


def run_record(at: int) -> int:
    """Run the part at an address: record every token, as many at a time as the buffer has room for."""
    node = node_at(at)
    s = state_at(node.state)
    reader = source(node, 0)
    while True:
        k = tokens_at(node, 0)
        if k == 0:
            return 0
        k = min(k, s.limit - s.count)
        if k == 0:
            node.waits = GROW
            return 0
        run, first, visible_at = head_run(reader), reader.offset, visible(reader)
        for i in range(k):
            cell = s.tokens + 8 * (2 + s.words) * (s.count + i)
            set_int(cell, 0, run.kind)
            set_int(cell, 1, visible_at + i)
            if run.kind >= SLICE:
                copy(cell + 16, element_address(reader) + 8 * s.words * i, s.words)
            else:
                set_int(cell, 2, word_in(run, first + i))
        last = run.kind == CONTROL and run.word == DONE
        take(reader, k, visible_at)
        node.firings += k
        s.count += k
        if last:
            node.waits = ENDED
            return 0
