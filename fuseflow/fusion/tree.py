"""The fused tree: a result with every producer of its region inlined.

A tree is a DAG with one node for each view, kept small by interning: a `Trees` table makes every node, equal nodes are one object,
so identity is equality and reuse of a producer never grows the tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from fuseflow.ops import operator, reducer


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A stored tensor read at an index tuple."""

    tensor: str
    indices: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.tensor}[{', '.join(self.indices)}]"


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """A pointwise operator."""

    name: str
    args: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A reduction of `body` over `over`, a view of the Einsum (or part of one) called `label` at the indices `free`."""

    op: str
    over: tuple[str, ...]
    free: tuple[str, ...]
    body: Tree
    label: str

    def __str__(self) -> str:
        return f"{self.label}[{', '.join(self.free)}]"


Tree: TypeAlias = View | Constant | Operation | Reduction


@dataclass(slots=True)
class TreeTable:
    """Makes nodes; equal ones once."""

    _nodes: dict[tuple[object, ...], Tree] = field(default_factory=dict)

    def view(self, tensor: str, indices: tuple[str, ...]) -> Tree:
        return self._nodes.setdefault((View, tensor, indices), View(tensor, indices))

    def number(self, value: float) -> Tree:
        return self._nodes.setdefault((Constant, value, math.copysign(1, value)), Constant(value))

    def op(self, name: str, args: tuple[Tree, ...]) -> Tree:
        """An operator; of constants, the constant."""
        if all(isinstance(a, Constant) for a in args):
            return self.number(float(operator(name)(*(a.value for a in args if isinstance(a, Constant)))))
        return self._nodes.setdefault((Operation, name, *map(id, args)), Operation(name, args))

    def reduction(self, op: str, over: tuple[str, ...], free: tuple[str, ...], body: Tree, label: str) -> Tree:
        return self._nodes.setdefault((Reduction, op, over, free, id(body), label), Reduction(op, over, free, body, label))

    def rename(
        self, tree: Tree, table: Mapping[str, str], memo: dict[Tree, Tree], tensors: Mapping[View, str] | None = None
    ) -> Tree:
        """`tree` with indices renamed, and views reading other `tensors`; `memo` maps the old nodes to the new ones."""
        tensors = tensors or {}

        def new(node: Tree) -> Tree:
            match node:
                case View():
                    return self.view(tensors.get(node, node.tensor), rename_indices(node.indices, table))
                case Constant():
                    return node
                case Operation():
                    return self.op(node.name, tuple(memo[a] for a in node.args))
                case Reduction():
                    return self.reduction(
                        node.op, rename_indices(node.over, table), rename_indices(node.free, table), memo[node.body], node.label
                    )
                case unknown:
                    assert_never(unknown)

        for node in nodes(tree):
            if node not in memo:
                memo[node] = new(node)
        return memo[tree]


def rename_indices(indices: tuple[str, ...], table: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(table.get(v, v) for v in indices)


def children(node: Tree) -> tuple[Tree, ...]:
    match node:
        case Operation():
            return node.args
        case Reduction():
            return (node.body,)
        case View() | Constant():
            return ()
        case unknown:
            assert_never(unknown)


def nodes(*trees: Tree, below: Callable[[Tree], tuple[Tree, ...]] = children) -> tuple[Tree, ...]:
    """All nodes of the trees, producers first, each once. `below` may hide what is not to be looked into."""
    seen: dict[Tree, None] = {}
    stack = list(reversed(trees))
    while stack:
        node = stack[-1]
        if node in seen:
            stack.pop()
            continue
        waiting = [child for child in below(node) if child not in seen]
        if waiting:
            stack += reversed(waiting)
        else:
            stack.pop()
            seen[node] = None
    return tuple(seen)


def views(*trees: Tree) -> tuple[View, ...]:
    return tuple(n for n in nodes(*trees) if isinstance(n, View))


def reductions(*trees: Tree) -> tuple[Reduction, ...]:
    return tuple(n for n in nodes(*trees) if isinstance(n, Reduction))


def loops(results: Iterable[tuple[str, ...]], below: tuple[Tree, ...]) -> tuple[str, ...]:
    """Every index of the trees that have these nodes, producers first: those of the results first, then the others, consumers first."""
    found = dict.fromkeys(v for indices in results for v in indices)
    for node in reversed(below):
        if isinstance(node, Reduction):
            found |= dict.fromkeys((*node.free, *node.over))
        elif isinstance(node, View):
            found |= dict.fromkeys(node.indices)
    return tuple(found)


def free_indices(*trees: Tree) -> dict[Tree, tuple[str, ...]]:
    """For every node of the trees, the indices of its value in order of appearance."""
    found: dict[Tree, tuple[str, ...]] = {}
    for node in nodes(*trees):
        match node:
            case View():
                found[node] = node.indices
            case Constant():
                found[node] = ()
            case Operation():
                found[node] = tuple(dict.fromkeys(v for a in node.args for v in found[a]))
            case Reduction():
                found[node] = node.free
            case unknown:
                assert_never(unknown)
    return found


def implicit_values(trees: tuple[Tree, ...], tensor_fill: Mapping[str, float], sizes: Mapping[str, int]) -> dict[Tree, float]:
    """For every node, its implicit value: of a view its tensor's; of an operator f(fills), or what an annihilator fixes; of a
    reduction the fold of as many equal values as it reduces."""
    found: dict[Tree, float] = {}
    for node in nodes(*trees):
        match node:
            case View():
                found[node] = tensor_fill[node.tensor]
            case Constant():
                found[node] = node.value
            case Operation():
                fixed = [f for k in range(len(node.args)) if (f := annihilated_value(node, k, found)) is not None]
                found[node] = fixed[0] if fixed else float(operator(node.name)(*(found[a] for a in node.args)))
            case Reduction():
                count = math.prod(sizes[v] for v in node.over)
                found[node] = reducer(node.op).repeated(found[node.body], count)
            case unknown:
                assert_never(unknown)
    return found


def annihilated_value(node: Operation, position: int, fill: Mapping[Tree, float]) -> float | None:
    """What an absent operand fixes the result to, or None if the other operands matter."""
    arg = node.args[position]
    if isinstance(arg, Constant):
        return None
    constants = tuple(a.value if isinstance(a, Constant) else None for a in node.args)
    return operator(node.name).annihilated(position, fill[arg], constants)
