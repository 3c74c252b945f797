"""Permute: the entries of a tensor are emitted with its levels in another order, through a sorted workspace."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from fuseflow.samml import nodes as n
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Process
from fuseflow.sim.reference.workspace import PutValue, RowOpener, Workspace, fill_and_emit


def permute(node: n.Permute, context: NodeContext) -> Sequence[Process]:
    return fill_and_emit(context, partial(_scattering_rows, node.order))


def _scattering_rows(order: Sequence[int], fill: Process) -> RowOpener:
    """Return a function that opens a row of a workspace; it puts values at their coordinates in the new order, and raises an
    error if one is taken."""

    def open_row(work: Workspace, crds: Sequence[int]) -> PutValue:
        outer = tuple(crds)

        def put(key: int, value: Any) -> None:
            entry = (*outer, key)
            *above, last = [entry[level] for level in order]
            row = work.setdefault(tuple(above), {})
            if last in row:
                raise fill.error("got two values at the same coordinates, which it refuses: the entries of a tensor are unique")
            row[last] = value

        return put

    return open_row


RULES: dict[type[n.Node], Rule] = {n.Permute: permute}
