"""Renames a fused region: a model repeats its layers, so that one layer is fused for all of them.

Y1[i] = relu(X1[i]), fused    with    X1 -> X2, Y1 -> Y2    gives    Y2[i] = relu(X2[i]), fused
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import assert_never

from fuseflow.einsum.index_names import underscored_name
from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import Span
from fuseflow.fusion.order_graph import build_order_graph
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.region_trees import RegionTrees, order_constraints
from fuseflow.fusion.tree import Constant, Operation, Reduction, Selection, Tree, View, nodes


def can_rename(region: FusedRegion) -> bool:
    """Return whether a region can be renamed. Copies, results that are permuted to break a cycle, and tensors that are like
    others, do not follow from names alone."""
    types = (*region.stored.values(), *(result.tensor for result in region.results))
    return not region.copies and not any(result.levels for result in region.results) and not any(t.like for t in types)


def renamed_region(
    region: FusedRegion,
    name: str,
    names: Mapping[str, str],
    declared: Mapping[str, TensorType],
    stored: Mapping[str, TensorType],
    pinned: Collection[str] = (),
    chain: tuple[str, ...] = (),
    spans: Mapping[str, Span | None] | None = None,
) -> FusedRegion:
    """Return a region as if it had been fused under another `name` and with other `names` of its tensors, which differ in nothing
    else.

    `declared`, `stored`, `pinned` and `chain` are as for `fuse`, for the new names, and `spans` the locations of the Einsums. The
    order of the loops, and the orders that it was compared with, stay.
    """
    einsums = tuple([names[e] for e in region.einsums])
    memo = renamed_trees(region.trees, names, einsums)
    results = tuple([replace(r, tensor=declared[names[r.name]], tree=memo[r.tree]) for r in region.results])
    merges = tuple([(node, v) for reduction, v in region.merges if isinstance(node := memo[reduction], Reduction)])
    trees = RegionTrees(results=tuple([(r.name, r.indices, r.tree) for r in results]), merges=merges)
    local_names = {names[e]: table for e, table in region.local_names.items()}
    user_order = region.own_names(chain)
    asked = tuple([replace(o, einsum=names[o.einsum], span=(spans or {}).get(names[o.einsum])) for o in region.asked])
    return replace(
        region,
        name=name,
        einsums=einsums,
        results=results,
        stored={names[n]: stored[names[n]] for n in region.stored},
        fill={memo[node]: fill for node, fill in region.fill.items()},
        merges=merges,
        constraints=build_order_graph(trees.indices, order_constraints(trees, declared, stored, pinned, user_order, asked)),
        local_names=local_names,
        repeated=frozenset(names[e] for e in region.repeated),
        asked=asked,
        resident=frozenset(names[n] for n in region.resident),
    )


def renamed_trees(trees: tuple[Tree, ...], names: Mapping[str, str], einsums: Collection[str]) -> dict[Tree, Tree]:
    """Return, for every node of some trees, the same node with other `names` of tensors. Nodes that differ stay different.
    `einsums` are the new names of the Einsums of the region."""
    memo: dict[Tree, Tree] = {}
    for node in nodes(*trees):
        match node:
            case View():
                memo[node] = View(names[node.tensor], node.indices)
            case Constant():
                memo[node] = node
            case Operation():
                memo[node] = Operation(node.name, tuple([memo[arg] for arg in node.args]))
            case Reduction() | Selection():
                memo[node] = replace(node, body=memo[node.body], label=_renamed_label(node.label, names, einsums))
            case unknown:
                assert_never(unknown)
    return memo


def _renamed_label(label: str, names: Mapping[str, str], einsums: Collection[str]) -> str:
    """Return the label that a producer has in another Einsum: `softmax.max` is a reduction inside `softmax` (`Inliner.label`)."""
    if label in names:
        return names[label]
    parts = label.split(".")
    inside = next(n for n in range(len(parts) - 1, 0, -1) if ".".join(parts[:n]) in names)
    return underscored_name(".".join((names[".".join(parts[:inside])], *parts[inside:])).rstrip("_"), einsums)
