"""The fused tree: the expression of a result with every producer of its region inlined.

A tree is a DAG with one node for each view. It is kept small by interning: a `TreeTable` makes every node, and equal nodes are
one object. So identity is equality, and reuse of a producer never makes the tree larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias, assert_never

from fuseflow.einsum.nodes import TensorType
from fuseflow.float32.operator_precision import computing_precision, precision_of_number, result_precision
from fuseflow.float32.words import rounded
from fuseflow.keep_rules import Largest, Rule
from fuseflow.ops import Precision, operator, reducer
from fuseflow.tensors import DTYPES


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A view is a stored tensor read at an index tuple. A view of its `places` has the value 1 wherever the tensor stores an entry."""

    tensor: str
    indices: tuple[str, ...]
    places: bool = False
    operands: ClassVar[tuple[Tree, ...]] = ()
    """The nodes directly below it."""

    def __str__(self) -> str:
        return f"{self.tensor}{'.places' * self.places}[{', '.join(self.indices)}]"


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A constant is a number in a tree."""

    value: float
    operands: ClassVar[tuple[Tree, ...]] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """An operation is a pointwise operator with its operands."""

    name: str
    args: tuple[Tree, ...]

    @property
    def operands(self) -> tuple[Tree, ...]:
        return self.args

    @property
    def is_placed(self) -> bool:
        """Whether it gives its second operand at the places of a tensor, and 0 elsewhere: `where(W.places[i, j], x, 0)`."""
        return self.name == "where" and isinstance(self.args[0], View) and self.args[0].places


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A reduction of `body` over the indices `over`. It is a view of the Einsum (or part of one) called `label`, at the indices
    `free` that it keeps."""

    op: str
    over: tuple[str, ...]
    free: tuple[str, ...]
    body: Tree
    label: str

    @property
    def operands(self) -> tuple[Tree, ...]:
        return (self.body,)

    def __str__(self) -> str:
        return f"{self.label}[{', '.join(self.free)}]"


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The entries that a rule keeps of `body`, whose indices are `free`. The rule compares the entries along `over`, the
    outermost first. It is a view of the Einsum called `label`."""

    rule: Rule
    over: tuple[str, ...]
    free: tuple[str, ...]
    body: Tree
    label: str

    @property
    def operands(self) -> tuple[Tree, ...]:
        return (self.body,)

    @property
    def keeps_zeros(self) -> bool:
        """Whether an element that is not stored, a 0, may be kept and be told from one that is not."""
        return isinstance(self.rule, Largest) and self.rule.keeps_zeros

    def __str__(self) -> str:
        return f"{self.label}[{', '.join(self.free)}]"


Producer: TypeAlias = Reduction | Selection
"""A node that is computed in a nest of loops for itself."""
Tree: TypeAlias = View | Constant | Operation | Producer
NOTHING: Mapping[Any, str] = MappingProxyType({})
"""The renaming that changes no name."""


@dataclass(slots=True)
class TreeTable:
    """The table of the nodes of one region. It makes each node once. `_names` has, by node, the indices and tensors that are
    named in it or below it: a bit for each index (its name) and each tensor (a tuple of its name), which `_bits` has."""

    _nodes: dict[tuple[object, ...], Tree] = field(default_factory=dict)
    _names: dict[Tree, int] = field(default_factory=dict)
    _bits: dict[str | tuple[str], int] = field(default_factory=dict)

    def view(self, tensor: str, indices: tuple[str, ...], places: bool = False) -> Tree:
        """Return the node that reads a tensor, or its places, at these indices."""
        key = View, tensor, indices, places
        return self._nodes.get(key) or self._added(key, View(tensor, indices, places), (tensor,), *indices)

    def number(self, value: float) -> Tree:
        """Return the node of a number; 0 and -0 have different nodes."""
        key = Constant, value, math.copysign(1, value)
        return self._nodes.get(key) or self._added(key, Constant(value))

    def op(self, name: str, args: tuple[Tree, ...]) -> Tree:
        """Return the node of an operator. An operator on constants is folded to a constant."""
        key = Operation, name, args
        node = self._nodes.get(key)
        if node is not None:
            return node
        constants = [a.value for a in args if isinstance(a, Constant)]
        if len(constants) == len(args):
            return self.number(float(operator(name)(*constants)))
        return self._added(key, Operation(name, args))

    def reduction(self, op: str, over: tuple[str, ...], free: tuple[str, ...], body: Tree, label: str) -> Tree:
        """Return the node of a reduction."""
        key = Reduction, op, over, free, body, label
        return self._nodes.get(key) or self._added(key, Reduction(op, over, free, body, label), *over, *free)

    def selection(self, rule: Rule, over: tuple[str, ...], free: tuple[str, ...], body: Tree, label: str) -> Tree:
        """Return the node of the entries that a rule keeps."""
        key = Selection, rule, over, free, body, label
        return self._nodes.get(key) or self._added(key, Selection(rule, over, free, body, label), *over, *free)

    def _added(self, key: tuple[object, ...], node: Tree, *names: str | tuple[str]) -> Tree:
        bits = 0
        for name in names:
            bits |= self._bits.setdefault(name, 1 << len(self._bits))
        for operand in node.operands:
            bits |= self._names.get(operand, 0)
        self._nodes[key], self._names[node] = node, bits
        return node

    def rename(
        self,
        tree: Tree,
        table: Mapping[str, str],
        memo: dict[Tree, Tree],
        tensors: Mapping[View, str] = NOTHING,
        replaced: str = "",
    ) -> Tree:
        """Return `tree` with its indices renamed by `table`, and with some views reading other `tensors`. `memo` maps old nodes
        to new ones, and has the nodes of a tensor that is `replaced` from the start. Nodes below a node of the memo are not
        visited. A node of this table that has none of these names stays, and nodes below it are not visited."""
        names, changing = self._names, self._bits_of(*table, *((view.tensor,) for view in tensors), (replaced,))
        waiting = [tree]
        while waiting:
            node = waiting[-1]
            if node not in memo:
                if node in names and not names[node] & changing:
                    memo[node] = node
                elif below := [operand for operand in node.operands if operand not in memo]:
                    waiting += below
                    continue
                else:
                    memo[node] = self.rebuilt(node, memo, table, tensors)
            waiting.pop()
        return memo[tree]

    def rename_all(self, nodes: Iterable[Tree], table: Mapping[str, str], memo: dict[Tree, Tree], replaced: str = "") -> None:
        """Add to the `memo` the result of `rename` for each of some nodes of this table, which are ordered producers first."""
        names, changing = self._names, self._bits_of(*table, (replaced,))
        for node in nodes:
            if not names[node] & changing:
                memo[node] = node
            elif node not in memo:
                memo[node] = self.rebuilt(node, memo, table)

    def _bits_of(self, *names: str | tuple[str]) -> int:
        """Return the bits of some indices and tensors."""
        bits = 0
        for name in names:
            bits |= self._bits.get(name, 0)
        return bits

    def rebuilt(
        self, node: Tree, memo: Mapping[Tree, Tree], table: Mapping[str, str] = NOTHING, tensors: Mapping[View, str] = NOTHING
    ) -> Tree:
        """Return a node with new operands, which `memo` has, and its indices and tensors renamed as by `rename`."""
        match node:
            case View():
                return self.view(tensors.get(node, node.tensor), rename_indices(node.indices, table), node.places)
            case Constant():
                return node
            case Operation():
                args = tuple([memo[a] for a in node.args])
                return node if args == node.args else self.op(node.name, args)
            case Reduction():
                over, free = rename_indices(node.over, table), rename_indices(node.free, table)
                return self.reduction(node.op, over, free, memo[node.body], node.label)
            case Selection():
                over, free = rename_indices(node.over, table), rename_indices(node.free, table)
                return self.selection(node.rule, over, free, memo[node.body], node.label)
            case unknown:
                assert_never(unknown)

    def mentions(self, tree: Tree, index: str) -> bool:
        """Return whether a node of this table, or a node below it, names an index."""
        return self._names[tree] & self._bits.get(index, 0) != 0


def rename_indices(indices: tuple[str, ...], table: Mapping[str, str]) -> tuple[str, ...]:
    """Return the indices under their new names; an index that is not in the table keeps its name."""
    return indices if table.keys().isdisjoint(indices) else tuple([table.get(v, v) for v in indices])


def nodes(*trees: Tree, below: Callable[[Tree], tuple[Tree, ...]] | None = None) -> tuple[Tree, ...]:
    """Return all nodes of the trees, producers first, each once. `below` returns the operands of a node that are to be
    visited."""
    visited: dict[Tree, None] = {}
    stack: list[Tree | None] = list(reversed(trees))
    pop = stack.pop
    while stack:
        node = pop()
        if node is None:  # all operands of the node below it are visited
            visited[pop()] = None  # type: ignore[index]
        elif node not in visited:
            if operands := node.operands if below is None else below(node):
                stack += (node, None, *operands[::-1])
            else:
                visited[node] = None
    return tuple(visited)


def views(*trees: Tree) -> tuple[View, ...]:
    """Return the views in the trees."""
    return tuple(n for n in nodes(*trees) if isinstance(n, View))


def reductions(*trees: Tree) -> tuple[Reduction, ...]:
    """Return the reductions in the trees, producers first."""
    return tuple(n for n in nodes(*trees) if isinstance(n, Reduction))


def selections(*trees: Tree) -> tuple[Selection, ...]:
    """Return the selections in the trees, producers first."""
    return tuple(n for n in nodes(*trees) if isinstance(n, Selection))


def loops(results: Iterable[tuple[str, ...]], below: tuple[Tree, ...]) -> tuple[str, ...]:
    """Return every index of trees with the nodes `below`: those of the `results`, then the others, consumers first."""
    names = dict.fromkeys(v for indices in results for v in indices)
    for node in reversed(below):
        for v in _own_indices(node):
            names[v] = None
    return tuple(names)


def all_indices(*trees: Tree) -> set[str]:
    """Return every index in the trees, also the indices that reductions reduce."""
    names: set[str] = set()
    for node in nodes(*trees):
        names.update(_own_indices(node))
    return names


def _own_indices(node: Tree) -> tuple[str, ...]:
    """Return the indices that a node itself names."""
    if isinstance(node, View):
        return node.indices
    if isinstance(node, Reduction):
        return (*node.free, *node.over)
    return node.free if isinstance(node, Selection) else ()


def free_indices(*trees: Tree) -> dict[Tree, tuple[str, ...]]:
    """Return, for every node of the trees, the indices on which its value depends, in order of appearance."""
    indices_by_node: dict[Tree, tuple[str, ...]] = {}
    for node in nodes(*trees):
        if isinstance(node, View):
            indices_by_node[node] = node.indices
        elif isinstance(node, Producer):
            indices_by_node[node] = node.free
        else:
            indices_by_node[node] = tuple(dict.fromkeys(v for operand in node.operands for v in indices_by_node[operand]))
    return indices_by_node


def implicit_values(trees: tuple[Tree, ...], tensors: Mapping[str, TensorType], sizes: Mapping[str, int]) -> dict[Tree, float]:
    """Return the implicit value of every node. For a view it is its tensor's; for an operator it is f(implicit values), or the value that
    an annihilator fixes; for a reduction it is the fold of as many equal values as it reduces. 32-bit floats are rounded as in a run.
    """
    values: dict[Tree, float] = {}
    precisions: dict[Tree, Precision] = {}
    for node in nodes(*trees):
        match node:
            case View(places=True):
                values[node], precisions[node] = 0.0, "integer"
            case View():
                values[node], precisions[node] = tensors[node.tensor].fill, DTYPES[tensors[node.tensor].dtype].precision
            case Constant():
                values[node], precisions[node] = node.value, precision_of_number(node.value)
            case Operation():
                values[node], precisions[node] = _implicit_result(node, values, precisions)
            case Reduction():
                count = math.prod(sizes[v] for v in node.over)
                value = reducer(node.op).repeated(values[node.body], count)
                precisions[node] = precisions[node.body]
                values[node] = rounded(value) if precisions[node] == "f32" and reducer(node.op).rounds else value
            case Selection():
                marks = isinstance(node.rule, Largest) and node.rule.marks
                values[node], precisions[node] = 0.0, "integer" if marks else precisions[node.body]
            case unknown:
                assert_never(unknown)
    return values


def _implicit_result(
    node: Operation, values: Mapping[Tree, float], precisions: Mapping[Tree, Precision]
) -> tuple[float, Precision]:
    """Return the implicit value of an operator, and its precision."""
    constants = [a.value if isinstance(a, Constant) else None for a in node.args]
    operands = [precisions[a] for a in node.args]
    result = result_precision(node.name, operands, constants)
    fixed = [f for k in range(len(node.args)) if (f := annihilated_value(node, k, values)) is not None]
    if fixed:
        return fixed[0], result
    row, is_f32 = operator(node.name), computing_precision(node.name, operands, constants) == "f32"
    value = float(row(*(rounded(values[a]) if is_f32 and isinstance(a, Constant) else values[a] for a in node.args)))
    return rounded(value) if is_f32 and row.rounds else value, result


def annihilated_value(node: Operation, position: int, fill: Mapping[Tree, float]) -> float | None:
    """Return the value that the operand at `position` fixes if it is absent, given implicit values; None if others matter."""
    arg = node.args[position]
    if isinstance(arg, Constant):
        return None
    constants = tuple(a.value if isinstance(a, Constant) else None for a in node.args)
    return operator(node.name).annihilated(position, fill[arg], constants)
