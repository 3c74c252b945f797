"""Faults planted in what compiles and runs views: offsets, strides, selections, concatenations, maxima by a pattern, and top-k. Random
programs with views must find each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from program_faults import Plant, fault

from fuseflow import keep_rules, ops
from fuseflow.einsum import selections
from fuseflow.einsum.nodes import Affine, Apply, Expr, Reduce
from fuseflow.sim.reference import rule_processes, select
from fuseflow.table import builder

VIEW_FAULTS: dict[str, Plant] = {}

Change = Callable[[Affine], Affine]


def _of_selections(change: Change) -> AbstractContextManager[Any]:
    """The selections of a program that is compiled are those of other indices. Its interpreter reads as before."""
    real = selections._selection
    return patch.object(selections, "_selection", lambda name, index, *extents: real(name, change(index), *extents))


# Offsets, strides and concatenations -----------------------------------------------------------------------------------------


@fault("an offset is one too large", VIEW_FAULTS)
def large_offset() -> AbstractContextManager[Any]:
    return _of_selections(lambda index: replace(index, offset=index.offset + 1) if index.offset > 0 else index)


@fault("a stride is ignored", VIEW_FAULTS)
def no_stride() -> AbstractContextManager[Any]:
    return _of_selections(lambda index: replace(index, terms=tuple((name, 1) for name, _ in index.terms)))


@fault("a turned index runs forward", VIEW_FAULTS)
def not_turned() -> AbstractContextManager[Any]:
    return _of_selections(lambda index: replace(index, terms=tuple((name, abs(factor)) for name, factor in index.terms)))


@fault("the second part of a concatenation stands one too far", VIEW_FAULTS)
def shifted_part() -> AbstractContextManager[Any]:
    return _of_selections(lambda index: replace(index, offset=index.offset - 1) if index.offset < -1 else index)


@fault("the terms of a window change places", VIEW_FAULTS)
def swapped_terms() -> AbstractContextManager[Any]:
    def swapped(index: Affine) -> Affine:
        factors = [factor for _, factor in reversed(index.terms)]
        return replace(index, terms=tuple((name, factor) for (name, _), factor in zip(index.terms, factors, strict=True)))

    return _of_selections(swapped)


@fault("selections with other offsets are one tensor", VIEW_FAULTS)
def one_selection() -> AbstractContextManager[Any]:
    real = selections._Selections.name

    def name(self: Any, index: Affine, sizes: Mapping[str, int], extent: int) -> str:
        if index.terms:
            same = [key for key in self.by_key if key[0] == tuple(f for _, f in index.terms) and key[3] == extent]
            lengths = tuple(sizes[v] for v, _ in index.terms)
            index = next((replace(index, offset=key[2]) for key in same if key[1] == lengths), index)
        return real(self, index, sizes, extent)

    return patch.object(selections._Selections, "name", name)


@fault("the sum over what is selected moves out of every operator", VIEW_FAULTS)
def sum_moves_out() -> AbstractContextManager[Any]:
    real = selections._Statement.opened

    def opened(self: Any, node: Expr) -> tuple[Expr, tuple[str, ...]]:
        if isinstance(node, Apply) and node.op != "mul":
            parts = [self.opened(arg) for arg in node.args]
            return replace(node, args=tuple(arg for arg, _ in parts)), tuple(v for _, over in parts for v in over)
        if isinstance(node, Reduce) and node.op != "sum":
            body, over = self.opened(node.body)
            return replace(node, body=body), over
        return real(self, node)

    return patch.object(selections._Statement, "opened", opened)


@fault("what is read outside of a tensor is its last entry", VIEW_FAULTS)
def clamped() -> AbstractContextManager[Any]:
    real = selections._gathered

    def gathered(array: Any, axis: int, wanted: Any) -> Any:
        last = array.shape[axis] - 1
        return real(array, axis, np.clip(wanted, 0, last) if last >= 0 else wanted)

    return patch.object(selections, "_gathered", gathered)


@fault("what a selection leaves out counts if it is infinite", VIEW_FAULTS)
def no_annihilator() -> AbstractContextManager[Any]:
    return patch.dict(ops.OPERATORS, mul=replace(ops.OPERATORS["mul"], annihilators=()))


# Maxima by a pattern ---------------------------------------------------------------------------------------------------------


@fault("a maximum over neighbours starts from 0", VIEW_FAULTS)
def zero_maximum() -> AbstractContextManager[Any]:
    real = rule_processes.reducer
    return patch.object(
        rule_processes, "reducer", lambda name: replace(real(name), identity=0.0) if name == "max" else real(name)
    )


@fault("what a pattern lacks counts as 0 in a maximum", VIEW_FAULTS)
def absent_neighbours() -> AbstractContextManager[Any]:
    return patch.object(builder.TableBuilder, "filled", lambda self, value, fill: value)


# The largest entries ---------------------------------------------------------------------------------------------------------


@fault("the smallest entries are kept", VIEW_FAULTS)
def smallest() -> AbstractContextManager[Any]:
    real = keep_rules._ranks
    return patch.object(keep_rules, "_ranks", lambda array, by: ~real(array, by))


@fault("of equal entries the last is kept", VIEW_FAULTS)
def last_of_equal() -> AbstractContextManager[Any]:
    real = keep_rules._ranks
    steps = (
        1 << 20
    )  # Magnitudes of random programs that differ at all differ by more of the smallest steps, and no fiber is as long.
    return patch.object(keep_rules, "_ranks", lambda array, by: real(array, by) // steps * steps + np.arange(array.shape[-1]))


@fault("entries are compared with their sign", VIEW_FAULTS)
def signed() -> AbstractContextManager[Any]:
    real = keep_rules._ranks
    return patch.object(keep_rules, "_ranks", lambda array, by: real(array, "greatest" if by == "magnitude" else by))


@fault("the reference keeps one entry too many", VIEW_FAULTS)
def one_more_kept() -> AbstractContextManager[Any]:
    real = select.keep_largest
    return patch.object(select, "keep_largest", lambda entries, node: real(entries, replace(node, keep=node.keep + 1)))


@fault("groups are not told apart", VIEW_FAULTS)
def no_groups() -> AbstractContextManager[Any]:
    real = select._fill
    return patch.object(select, "_fill", lambda p, every, buffers: real(p, 0, buffers))
