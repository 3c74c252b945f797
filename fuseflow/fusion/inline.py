"""Inlining: producers are substituted into consumers, reduction indices are renamed, and each view is one node (rule F1).

One Einsum is inlined at a time, consumers first. Before that, a view of it is read like a stored tensor. So the views of an
Einsum can be merged before it is expanded, and an Einsum with many uses is expanded only a few times.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from fuseflow.einsum import nodes as ein
from fuseflow.einsum.index_names import LETTERS, underscored_name
from fuseflow.errors import FusionError, PlacesError
from fuseflow.fusion.order_graph import AskedOrder
from fuseflow.fusion.region_trees import RegionTrees, ViewKey
from fuseflow.fusion.tree import Constant, Reduction, Tree, TreeTable, nodes
from fuseflow.keep_rules import NONZERO

MOST_PLACES = 500
"""The most places of the trees in which a region computes one Einsum. Beyond that, it is recomputed so often that no machine
would want it."""


@dataclass(slots=True)
class Inliner:
    """The inliner expands the Einsums of one region.

    `extents` has the size of every local index of every Einsum, and `sizes` the sizes of the region's indices, as they are named.
    `likes` has the tensor whose places an Einsum has, for those that are like one.
    `tables` map the index names of each Einsum to the region's, one for each view of it. Consumers of an Einsum in `dropped` get
    only its entries that are not 0. An Einsum has at most `most_places` views.
    """

    region: str
    einsums: Mapping[str, ein.Einsum]
    extents: Mapping[str, Mapping[str, int]]
    dropped: frozenset[str] = frozenset()
    likes: Mapping[str, str] = field(default_factory=dict)
    most_places: int = MOST_PLACES
    trees: TreeTable = field(default_factory=TreeTable)
    sizes: dict[str, int] = field(default_factory=dict)
    tables: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    _views: dict[ViewKey, None] = field(default_factory=dict)
    _reductions: dict[ViewKey, Tree] = field(default_factory=dict)

    @property
    def local_names(self) -> dict[str, dict[str, str]]:
        """The region's names of the indices of each Einsum in its first view."""
        return {name: tables[0] for name, tables in self.tables.items()}

    def asked(self, fused: RegionTrees) -> tuple[AskedOrder, ...]:
        """Return the orders that the user wrote with the Einsums, for each expanded view, with the loops that still exist."""
        orders: dict[AskedOrder, None] = {}
        names, present = dict(fused.renamings), frozenset(fused.indices)
        for einsum in self.einsums.values():
            for table in self.tables.get(einsum.name, ()) if einsum.order else ():
                loops = [table[v] for v in einsum.order if v in table]
                indices = tuple(dict.fromkeys(v for loop in loops if (v := names.get(loop, loop)) in present))
                orders[AskedOrder(einsum.name, indices, einsum.location.span)] = None
        return tuple(order for order in orders if len(order.indices) > 1)

    def write(self, fused: RegionTrees, einsum: ein.Einsum) -> RegionTrees:
        """Return the trees with this Einsum as a result, under its own index names if no other index has them. An Einsum that is also an
        operand takes the indices of its first view."""
        extents = self.extents[einsum.name]
        view_indices = [indices for tensor, indices in fused.views if tensor == einsum.name]
        indices = (
            view_indices[0]
            if view_indices
            else tuple(self.fresh(v, extents[v]) for v in plain_index_names(einsum, einsum.indices))
        )
        result = einsum.name, indices, self.trees.view(einsum.name, indices)
        views = dict.fromkeys((*fused.views, (einsum.name, indices)))
        return replace(fused, results=(result, *fused.results), views=tuple(views))

    def expand(self, fused: RegionTrees, einsum: ein.Einsum) -> RegionTrees:
        """Return the trees with every view of this Einsum replaced by its body. Raises `PlacesError` if it has too many views."""
        view_indices = [indices for tensor, indices in fused.views if tensor == einsum.name]
        if len(view_indices) > self.most_places:
            error = PlacesError(
                f"region `{self.region}` would compute `{einsum.name}` in {len(view_indices)} places",
                hint="fuse fewer Einsums: what a region boundary stores is computed once",
                span=einsum.location.span,
            )
            error.producer = einsum.name
            raise error
        self._views, self._reductions = dict.fromkeys(fused.views), {}
        memo: dict[Tree, Tree] = {}
        for indices in view_indices:
            table = dict(zip(plain_index_names(einsum, einsum.indices), indices, strict=True))
            tree = self.body(einsum, einsum.body, table)
            if einsum.name in self.likes:
                places = self.trees.view(self.likes[einsum.name], indices, places=True)
                tree = self.trees.op("where", (places, tree, self.trees.number(0.0)))
            if einsum.name in self.dropped:
                tree = self.trees.selection(
                    NONZERO, (), tuple(table[v] for v in ein.free_indices(einsum.body)), tree, einsum.name
                )
            memo[self.trees.view(einsum.name, indices)] = tree
            self.tables.setdefault(einsum.name, []).append(table)
        bodies = dict(memo)
        self.trees.rename_all(fused.nodes, {}, memo, replaced=einsum.name)
        expanded = replace(fused.renewed(memo), views=tuple(self._views))
        if any(isinstance(body, Constant) for body in bodies.values()):
            return expanded  # operators on constants are folded, and their operands are not in the trees
        return expanded.visiting(
            [below for node in fused.nodes for below in (nodes(bodies[node]) if node in bodies else (memo[node],))]
        )

    def rename(self, names: Mapping[str, str], present: Collection[str]) -> set[str]:
        """Record new `names` of indices. Return the old names that are not `present` any more: they may be used again."""
        for table in (table for tables in self.tables.values() for table in tables):
            table.update({v: names[w] for v, w in table.items() if w in names})
        freed = set(names).difference(present)
        self.sizes = {v: size for v, size in self.sizes.items() if v not in freed}
        return freed

    def fresh(self, wanted: str, size: int) -> str:
        """Return a new region index: the wanted name if no index has it, else the first unused letter."""
        name = wanted if wanted not in self.sizes else next((c for c in LETTERS if c not in self.sizes), "")
        suffix = 1
        while not name or name in self.sizes:
            name, suffix = f"{wanted}{suffix}", suffix + 1
        self.sizes[name] = size
        return name

    def view(self, einsum: ein.Einsum, tensor: str, indices: tuple[str, ...]) -> Tree:
        """Return the node with which an Einsum reads a tensor at these indices. Raises `FusionError` for a diagonal."""
        if len(set(indices)) < len(indices):
            raise FusionError(
                f"`{tensor}[{', '.join(indices)}]` repeats an index: a diagonal cannot be streamed",
                hint="multiply by an identity matrix, or take the diagonal outside",
                span=einsum.location.span,
            )
        self._views[tensor, indices] = None
        return self.trees.view(tensor, indices)

    def body(self, einsum: ein.Einsum, node: ein.Expr, table: dict[str, str]) -> Tree:
        """Return the tree of an expression of `einsum`; `table` maps its local indices to the region's."""
        match node:
            case ein.Const():
                return self.trees.number(node.value)
            case ein.Access():
                return self.view(einsum, node.tensor, tuple(table[v] for v in plain_index_names(einsum, node.indices)))
            case ein.Apply():
                return self.trees.op(node.op, tuple(self.body(einsum, a, table) for a in node.args))
            case ein.Reduce():
                return self.reduction(einsum, node, table)
            case ein.Keep():
                over, free = (tuple(table[v] for v in names) for names in (node.over, ein.free_indices(node)))
                return self.trees.selection(node.rule, over, free, self.body(einsum, node.body, table), einsum.name)
            case unknown:
                assert_never(unknown)

    def reduction(self, einsum: ein.Einsum, node: ein.Reduce, table: dict[str, str]) -> Tree:
        """Return the node of a reduction inside a body. It is a producer like an Einsum: there is one node for each tuple of its
        free indices (those that it does not reduce)."""
        key = self.label(einsum, node), tuple(table[v] for v in ein.free_indices(node))
        if isinstance(shared := self._reductions.get(key), Reduction):
            table |= dict(zip(node.over, shared.over, strict=True))
        if key not in self._reductions:
            for v in node.over:  # a name may be reduced twice in one body: each time it is another loop
                table[v] = self.fresh(v, self.extents[einsum.name][v])
            over = tuple(table[v] for v in node.over)
            self._reductions[key] = self.trees.reduction(node.op, over, key[1], self.body(einsum, node.body, table), key[0])
        return self._reductions[key]

    def label(self, einsum: ein.Einsum, node: ein.Reduce) -> str:
        """Return the name of a reduction. Only equal ones of an Einsum share it: nodes of one name are views of one producer."""
        if node is einsum.body:
            return einsum.name
        reductions = [n for n in ein.walk(einsum.body) if isinstance(n, ein.Reduce) and n.op == node.op and n is not einsum.body]
        position = list(dict.fromkeys(reductions)).index(node)
        # unless an Einsum of the region has this name
        return underscored_name(f"{einsum.name}.{node.op}" + (f"_{position + 1}" if position else ""), self.einsums)


def plain_index_names(einsum: ein.Einsum, indices: tuple[ein.Index, ...]) -> tuple[str, ...]:
    """Return names of indices. Raises `FusionError` for a split: such a program can be interpreted, and not lowered."""
    for index in indices:
        if isinstance(index, ein.Split):
            raise FusionError(
                f"`{einsum.name}` reshapes a dimension (`{index}`): this version has no dataflow graph for reshapes",
                hint="reshape the tensor before it enters the model",
                span=einsum.location.span,
            )
    return tuple([i for i in indices if isinstance(i, str)])
