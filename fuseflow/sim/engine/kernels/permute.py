"""The primitive `permute` emits the entries of a tensor with its levels in another order. It has the parts of an `accumulate`,
but computes the workspace keys in another way.

The key of an entry is linear in its coordinates. Each coordinate has a weight in the number of the row (all output levels but the
last), and one in the column, which is 1 for the level that becomes the last and else 0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from fuseflow.native.kernel_library import specialize
from fuseflow.native.records import get_int, set_int
from fuseflow.native.signatures import Function
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.kernels.accumulate import BUFFERS, fill_and_emit, run_fill, workspace_state
from fuseflow.sim.engine.node_firing import TWICE, take_coordinates
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part
from fuseflow.sim.engine.stream_rings import REPEATED, WORD_OFFSET, copy, element_address, head_address, head_run, word_in
from fuseflow.sim.engine.workspace import BLOCK, find_or_insert


def permute(node: n.Permute, layout: NodeLayout) -> list[Part]:
    levels = [node.inputs[level] for level in node.order]
    state = workspace_state(layout, levels, BUFFERS)
    weights = np.zeros((len(levels), 2), np.int64)
    row = 1
    for level, port in reversed(list(zip(node.order[:-1], levels, strict=False))):
        weights[level, 0] = row
        row *= layout.bounds[port]
    weights[node.order[-1], 1] = 1
    state["weights"] = layout.array(weights)
    return fill_and_emit(permuting_fill(), state, layout)


@cache
def permuting_fill() -> Function:
    """Return the fill kernel of `accumulate`, changed to place entries in another order of levels."""
    return specialize(run_fill, "run_fill_permuted", open_row=open_entries, put_run=scatter)


def open_entries(node: Any, s: Any, nest: Any, t: int) -> None:
    """Take the outer coordinates of a run of entries that begins in cycle t, and compute their share of row and column."""
    if nest.open == nest.depth:
        return
    take_coordinates(node, nest, nest.depth, t)
    s.prefix = s.column = 0
    for level in range(nest.depth):
        c = get_int(nest.crds, level)
        s.prefix += get_int(s.weights, 2 * level) * c
        s.column += get_int(s.weights, 2 * level + 1) * c


def scatter(node: Any, s: Any, w: Any, crd: Any, val: Any, k: int) -> None:
    """Put the next k values of `val` into the workspace `w`, at the coordinates of `crd`. Set the fault TWICE if an entry exists."""
    coordinates, values = head_run(crd), head_run(val)
    stride = 0 if values.kind == REPEATED else 8 * s.words
    at = head_address(val) + WORD_OFFSET if stride == 0 else element_address(val)
    in_row = get_int(s.weights, 2 * s.order - 2)
    in_column = get_int(s.weights, 2 * s.order - 1)
    for i in range(k):
        c = word_in(coordinates, crd.offset + i)
        column = s.column + in_column * c
        place = find_or_insert(w, (s.prefix + in_row * c) * s.row + (column >> 3))
        bit = column & 7
        mask = get_int(w.masks, place)
        if mask >> bit & 1 != 0:
            node.fault = TWICE
            return
        set_int(w.masks, place, mask | 1 << bit)
        copy(w.values + 8 * s.words * (BLOCK * place + bit), at + stride * i, s.words)


RULES: dict[type[n.Node], LayoutRule] = {n.Permute: permute}
