"""Inlining: producers substituted into consumers, reduction indices renamed, one node for each view (rule F1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fuseflow.einsum import nodes as ein
from fuseflow.einsum.indices import LETTERS
from fuseflow.errors import FusionError
from fuseflow.fusion.tree import Tree, Trees


@dataclass(slots=True)
class Inliner:
    """Builds the trees of a region. `views` maps (tensor, indices) to its node: equal uses are one view.

    `extents` gives the size of every local index of every Einsum; `sizes` those of the region's own indices, as they are named.
    `local` maps the index names of each Einsum, in its first view, to the region's.
    """

    einsums: Mapping[str, ein.Einsum]
    extents: Mapping[str, Mapping[str, int]]
    trees: Trees = field(default_factory=Trees)
    sizes: dict[str, int] = field(default_factory=dict)
    views: dict[tuple[str, tuple[str, ...]], Tree] = field(default_factory=dict)
    local: dict[str, dict[str, str]] = field(default_factory=dict)
    reductions: dict[tuple[str, tuple[str, ...]], Tree] = field(default_factory=dict)

    def results(self, names: Sequence[str]) -> dict[str, tuple[tuple[str, ...], Tree]]:
        """Indices and tree of each result. The first result's own names are kept where they are free.

        Consumers come first, so that a result which is also an operand takes the indices of its first view.
        """
        found: dict[str, tuple[tuple[str, ...], Tree]] = {}
        for einsum in reversed(tuple(self.einsums.values())):
            if einsum.name not in names:
                continue
            known = [indices for tensor, indices in self.views if tensor == einsum.name]
            extents = self.extents[einsum.name]
            local = plain(einsum, einsum.indices)
            indices = known[0] if known else tuple(self.fresh(v, extents[v]) for v in local)
            found[einsum.name] = indices, self.view(einsum.name, indices)
        return {e: found[e] for e in self.einsums if e in found}

    def fresh(self, wanted: str, size: int) -> str:
        """A new region index: the wanted name if it is free, else the first free letter."""
        name = wanted if wanted not in self.sizes else next((c for c in LETTERS if c not in self.sizes), "")
        suffix = 1
        while not name or name in self.sizes:
            name, suffix = f"{wanted}{suffix}", suffix + 1
        self.sizes[name] = size
        return name

    def view(self, tensor: str, indices: tuple[str, ...]) -> Tree:
        if len(set(indices)) < len(indices):
            raise FusionError(
                f"`{tensor}[{', '.join(indices)}]` repeats an index: a diagonal cannot be streamed",
                hint="multiply by an identity matrix, or take the diagonal outside",
            )
        if (tensor, indices) not in self.views:
            self.views[tensor, indices] = self.expand(tensor, indices)
        return self.views[tensor, indices]

    def expand(self, tensor: str, indices: tuple[str, ...]) -> Tree:
        if tensor not in self.einsums:
            return self.trees.view(tensor, indices)
        einsum = self.einsums[tensor]
        table = dict(zip(plain(einsum, einsum.indices), indices, strict=True))
        tree = self.body(einsum, einsum.body, table)
        self.local.setdefault(tensor, table)
        return tree

    def body(self, einsum: ein.Einsum, node: ein.Expr, table: dict[str, str]) -> Tree:
        match node:
            case ein.Const():
                return self.trees.number(node.value)
            case ein.Access():
                return self.view(node.tensor, tuple(table[v] for v in plain(einsum, node.indices)))
            case ein.Apply():
                return self.trees.op(node.op, tuple(self.body(einsum, a, table) for a in node.args))
            case ein.Reduce():
                return self.reduction(einsum, node, table)

    def reduction(self, einsum: ein.Einsum, node: ein.Reduce, table: dict[str, str]) -> Tree:
        """A reduction inside a body is a producer like an Einsum: one node for each tuple of its free indices."""
        key = self.label(einsum, node), tuple(table[v] for v in ein.free_indices(node))
        if key not in self.reductions:
            for v in node.over:  # a name may be reduced twice in one body: each time it is another loop
                table[v] = self.fresh(v, self.extents[einsum.name][v])
            over = tuple(table[v] for v in node.over)
            self.reductions[key] = self.trees.reduction(node.op, over, key[1], self.body(einsum, node.body, table), key[0])
        return self.reductions[key]

    def label(self, einsum: ein.Einsum, node: ein.Reduce) -> str:
        """The name of a reduction: equal ones of an Einsum share it, no others (what has one name is views of one producer)."""
        if node is einsum.body:
            return einsum.name
        alike = [n for n in ein.walk(einsum.body) if isinstance(n, ein.Reduce) and n.op == node.op and n is not einsum.body]
        place = list(dict.fromkeys(alike)).index(node)
        name = f"{einsum.name}.{node.op}" + (f"_{place + 1}" if place else "")
        while name in self.einsums:
            name += "_"
        return name


def plain(einsum: ein.Einsum, indices: tuple[ein.Index, ...]) -> tuple[str, ...]:
    """Index names. A split has no streams yet: the program can be interpreted, not lowered."""
    for index in indices:
        if isinstance(index, ein.Split):
            raise FusionError(
                f"`{einsum.name}` reshapes a dimension (`{index}`): this version has no dataflow graph for reshapes",
                hint="reshape the tensor before it enters the model",
                span=einsum.location.span,
            )
    return tuple(i for i in indices if isinstance(i, str))
