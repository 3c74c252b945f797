"""Record: every token of a stream with the cycle from which it is visible, for checks and comparisons. Takes no part in time."""

from __future__ import annotations

import numpy as np

from fuseflow.samml.nodes import Port
from fuseflow.sim.engine.memory import Record, address, set_int
from fuseflow.sim.engine.nodes import ENDED, GROW, awaits, node_at, source
from fuseflow.sim.engine.place import Array, Part
from fuseflow.sim.engine.streams import CONTROL, DONE, head_run, take, visible, word_in

RECORD = Record("tokens count limit")
TOKEN_WORDS = 3
state_at = RECORD.at


def recorder(port: Port, limit: int, keep: dict[int, Array]) -> Part:
    """A part that reads the stream: (kind, word, visible cycle) of every token."""
    tokens, state = np.zeros((limit, TOKEN_WORDS), np.int64), RECORD.array(1)
    keep[address(tokens)] = tokens
    state["tokens"], state["limit"] = address(tokens), limit
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
            cell = TOKEN_WORDS * (s.count + i)
            set_int(s.tokens, cell, run.kind)
            set_int(s.tokens, cell + 1, word_in(run, first + i))
            set_int(s.tokens, cell + 2, seen + i)
        last = run.kind == CONTROL and run.word == DONE
        take(reader, k, seen)
        node.firings += k
        s.count += k
        if last:
            node.waits = ENDED
            return 0
