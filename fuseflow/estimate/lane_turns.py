"""The cycles that lanes lose by taking turns, where FIFOs are too shallow for a lane to work ahead of its turn.

A merge takes a whole row of one lane before it turns to the next. If the FIFO in front of it holds 16 of the 100 tokens of a row, a lane
makes 16 of them before its turn, and 84 while all others stand still. So the lanes take 0.84 times the cycles of one lane together,
however many they are. The same holds behind rows that are dealt to lanes: the next lane gets nothing before the last one had room for its
row. Work behind a workspace that holds whole rows waits for no turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fuseflow.estimate.flows import Flow, Number
from fuseflow.samml import nodes as n


@dataclass(frozen=True, slots=True)
class LaneTurns:
    """The turns of lanes at a node that takes rows from them, or deals rows to them: each of `lanes` lanes has `number` turns."""

    lanes: Number
    number: Number


def merged_rows(node: n.Primitive, inputs: Sequence[Flow]) -> Number:
    """Return how many rows of its first lane a node takes, or 0 if it is no merge, or one of single values."""
    if not isinstance(node, n.Merge) or not node.levels:
        return 0
    return inputs[0].lists[inputs[0].depth - node.levels]


def row_fork(node: n.Primitive, by_name: Mapping[str, n.Primitive]) -> n.Fork | None:
    """Return the fork that deals rows of which `node` lets those of its lane through; None if `node` does not do that."""
    fork = by_name.get(node.inputs[1].node) if isinstance(node, n.Align) else None
    return fork if isinstance(fork, n.Fork) and fork.inputs[0] == node.inputs[0] else None


def lane_turns(node: n.Primitive, inputs: Sequence[Flow], by_name: Mapping[str, n.Primitive]) -> LaneTurns | None:
    """Return the turns of lanes at a node, None if no lanes take turns there."""
    if fork := row_fork(node, by_name):
        return LaneTurns(fork.lanes, inputs[1].elements)
    rows = merged_rows(node, inputs)
    return LaneTurns(len(node.inputs), rows) if rows else None
