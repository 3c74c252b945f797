"""Accumulate: a reduction over a loop that is not the innermost, into a sorted workspace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fuseflow.ops import reducer
from fuseflow.samml import nodes as n
from fuseflow.sim.reference.functions import fold_function
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.process import Process
from fuseflow.sim.reference.workspace import PutValue, RowOpener, Workspace, fill_and_emit


def accumulate(node: n.Accumulate, context: NodeContext) -> Sequence[Process]:
    open_row = _folding_rows(fold_function(reducer(node.function), context))
    return fill_and_emit(context, lambda fill: open_row)


def _folding_rows(fold: Callable[[Any, Any], Any]) -> RowOpener:
    """Return a function that opens a row of a workspace; it folds values whose coordinates are equal, except for the outermost,
    into one."""

    def open_row(work: Workspace, crds: Sequence[int]) -> PutValue:
        row = work.setdefault(tuple(crds[1:]), {})

        def put(key: int, value: Any) -> None:
            row[key] = fold(row[key], value) if key in row else value

        return put

    return open_row


RULES: dict[type[n.Node], Rule] = {n.Accumulate: accumulate}
