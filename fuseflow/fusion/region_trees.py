"""The trees of a region while Algorithm 1 transforms them, and the constraints that they put on the order of the loops (rule F2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise

from fuseflow.einsum.nodes import TensorType
from fuseflow.fusion.order_graph import AskedOrder, Constraint, storage_edges, storage_reason
from fuseflow.fusion.region import Copy
from fuseflow.fusion.tree import (
    Operation,
    Producer,
    Reduction,
    Selection,
    Tree,
    TreeTable,
    View,
    all_indices,
    free_indices,
    loops,
    nodes,
)

ViewKey = tuple[str, tuple[str, ...]]
"""A tensor and the indices at which it is read."""


@dataclass(frozen=True)  # with a place for cached values
class RegionTrees:
    """The trees of a region so far. `results` are (name, indices, tree). `views` are all views so far, views of intermediates
    too. `merges` are the reductions whose index was unified with one of a consumer. `renamings` are all renamings, as (old, new).
    `copies` are the permuted copies that are read, and `permuted_results` the results that are permuted as they are written."""

    results: tuple[tuple[str, tuple[str, ...], Tree], ...] = ()
    views: tuple[ViewKey, ...] = ()
    merges: tuple[tuple[Reduction, str], ...] = ()
    renamings: tuple[tuple[str, str], ...] = ()
    copies: tuple[Copy, ...] = ()
    permuted_results: tuple[str, ...] = ()

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The trees of the results."""
        return tuple(tree for _, _, tree in self.results)

    @cached_property
    def nodes(self) -> tuple[Tree, ...]:
        """The nodes of all trees, producers first."""
        return nodes(*self.trees)

    def renewed(self, memo: Mapping[Tree, Tree]) -> RegionTrees:
        """Return these trees with new nodes, which `memo` maps the old ones to."""
        results = tuple([(name, indices, memo[tree]) for name, indices, tree in self.results])
        merges = tuple([(node, v) for r, v in self.merges if isinstance(node := memo.get(r, r), Reduction)])
        return replace(self, results=results, merges=merges)

    def visiting(self, nodes: Iterable[Tree]) -> RegionTrees:
        """Return these trees, and keep that their nodes, producers first, are the given `nodes`, each where it comes first."""
        vars(self)["nodes"] = tuple(dict.fromkeys(nodes))
        return self

    @cached_property
    def leaves(self) -> tuple[View, ...]:
        """The views that are read: of stored tensors, and of Einsums that are not expanded yet."""
        return tuple([n for n in self.nodes if isinstance(n, View)])

    @cached_property
    def reductions(self) -> tuple[Reduction, ...]:
        """The reductions of all trees, producers first."""
        return tuple([n for n in self.nodes if isinstance(n, Reduction)])

    @cached_property
    def selections(self) -> tuple[Selection, ...]:
        """The selections of all trees, producers first."""
        return tuple([n for n in self.nodes if isinstance(n, Selection)])

    @cached_property
    def indices(self) -> tuple[str, ...]:
        """The loops of the trees: result indices first, then the others, consumers first."""
        return loops((indices for _, indices, _ in self.results), self.nodes)

    @cached_property
    def bits(self) -> Mapping[str, int]:
        """A bit for each loop."""
        return {v: 1 << n for n, v in enumerate(self.indices)}

    @cached_property
    def around(self) -> Mapping[Tree, int]:
        """For each node, the bits of the indices of the results and producers that it is inside of."""
        bits, around = self.bits, dict.fromkeys(self.nodes, 0)
        for _, indices, tree in self.results:
            for v in indices:
                around[tree] |= bits[v]
        for node in reversed(self.nodes):
            outside = around[node]
            if isinstance(node, Producer):
                for v in (*node.free, *node.over):
                    outside |= bits[v]
            for operand in node.operands:
                around[operand] |= outside
        return around

    @cached_property
    def partners(self) -> Mapping[str, Mapping[str, Sequence[str]]]:
        """For every index, the other indices that would make two views of a tensor equal if both were one, with these tensors:
        the views differ in this position alone."""
        views_by_tensor: dict[str, list[tuple[str, ...]]] = {}
        for tensor, indices in self.views:
            views_by_tensor.setdefault(tensor, []).append(indices)
        partners: dict[str, dict[str, list[str]]] = {}
        for tensor, views in views_by_tensor.items():
            for v, w in _alternatives(tuple(views)) if len(views) > 1 else ():
                partners.setdefault(v, {}).setdefault(w, []).append(tensor)
        return partners


def order_constraints(
    fused: RegionTrees,
    declared: Mapping[str, TensorType],
    stored: Mapping[str, TensorType],
    pinned: Collection[str],
    user_order: tuple[str, ...] = (),
    asked: tuple[AskedOrder, ...] = (),
) -> Iterator[Constraint]:
    """Yield the pairs of loops of a region of which one must enclose the other:

    - every level stored above a compressed one encloses it: its fibers are reached through their references. Dense levels are
      located and need nothing. `stored` has the formats of tensors that are read;
    - every free index of a merged reduction encloses the index it was merged with: its value must exist when that loop starts;
    - along the storage order of each `pinned` result, which `declared` has, and of each result that is like another tensor;
    - along `user_order`, the order that the user asked for;
    - along the indices over which a selection compares, in its order, and into the first of them from its other indices;
    - along each order in `asked`, which the user wrote with an Einsum.
    """
    for view in fused.leaves:
        for above, below in storage_edges(view.indices, stored[view.tensor]):
            yield Constraint(above, below, view, partial(storage_reason, view, stored))
    for reduction, index in fused.merges:
        for v in reduction.free:
            yield Constraint(v, index, None, partial("{} must be complete before loop {}".format, reduction, index))
    for name, indices, _ in fused.results:
        is_pinned = name in pinned or declared[name].like
        if is_pinned and name not in fused.permuted_results and (format := declared[name].format) is not None:
            for above, below in pairwise([indices[d] for d in format.order]):
                yield Constraint(above, below, name, partial("`{}` is to be stored {}".format, name, format.short()))
    for above, below in pairwise(user_order):
        yield Constraint(above, below, None, partial("the schedule orders {}".format, ",".join(user_order)))
    for node in fused.selections:
        around = ((v, node.over[0]) for v in node.free if node.over and v not in node.over)
        for above, below in (*around, *pairwise(node.over)):
            yield Constraint(above, below, None, partial("{} keeps {} over {}".format, node, node.rule, ", ".join(node.over)))
    for order in asked:
        for above, below in pairwise(order.indices):
            yield Constraint(above, below, order, partial(str, order))


@lru_cache(maxsize=4096)  # a merge changes the views of few tensors
def _alternatives(views: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of indices at one position of a tensor, where two views of it agree in all other positions.

    >>> _alternatives((("i", "k"), ("i", "j"), ("l", "m")))
    (('k', 'j'), ('j', 'k'))
    """
    pairs: list[tuple[str, str]] = []
    for position in range(len(views[0])):
        groups: dict[tuple[str, ...], list[str]] = {}
        for indices in views:
            groups.setdefault(indices[:position] + indices[position + 1 :], []).append(indices[position])
        pairs += [(v, w) for group in groups.values() if len(group) > 1 for v in group for w in group if w != v]
    return tuple(pairs)


LINEAR_OPERANDS: dict[str, tuple[int, ...]] = {"mul": (0, 1), "div": (0,), "neg": (0,), "copy": (0,)}
"""The operators that a sum moves out of, with the positions of the operands from which it does."""


def hoist_sums(fused: RegionTrees, trees: TreeTable) -> RegionTrees:
    """Return the trees of a region with their sums moved as far out as possible, so that there is one iteration space.

        T[i, j] = sum(k) A[i, k] * B[k, j];  Y[i, l] = sum(j) T[i, j] * C[j, l]
        ->  Y[i, l] = sum(j, k) A[i, k] * B[k, j] * C[j, l]

    This is the baseline that factored iteration is measured against. An operator that does not distribute (a relu of a sum, the sum in a
    softmax) ends an iteration space. Products are reassociated, so that rounding differs, and infinities and NaN may differ too.
    """
    memo: dict[Tree, Tree] = {}
    for node in fused.nodes:
        memo[node] = _moved(node, trees, memo)
    return fused.renewed(memo)


def _moved(node: Tree, trees: TreeTable, memo: Mapping[Tree, Tree]) -> Tree:
    new = trees.rebuilt(node, memo)
    if isinstance(new, Reduction):
        body = new.body
        if isinstance(body, Reduction) and body.op == new.op and not set(body.over) & set(new.over):
            return trees.reduction(new.op, (*new.over, *body.over), new.free, body.body, new.label)
    return _out_of(new, trees)


def _out_of(node: Tree, trees: TreeTable) -> Tree:
    """Return the sum of the products in place of a product of sums; any other node as it is."""
    if not isinstance(node, Operation):
        return node
    for position in LINEAR_OPERANDS.get(node.name, ()):
        inner = node.args[position]
        others = node.args[:position] + node.args[position + 1 :]
        if isinstance(inner, Reduction) and inner.op == "sum" and not set(inner.over) & all_indices(*others):
            args = (*node.args[:position], inner.body, *node.args[position + 1 :])
            body = _out_of(trees.op(node.name, args), trees)
            over = inner.over
            if isinstance(body, Reduction) and body.op == "sum" and not set(body.over) & set(over):
                over, body = (*over, *body.over), body.body
            free = tuple(v for v in free_indices(body)[body] if v not in over)
            return trees.reduction("sum", over, free, body, inner.label)
    return node
