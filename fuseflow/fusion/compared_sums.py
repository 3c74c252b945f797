"""The comparisons that no region may hold: of a sum with the same sum at other indices, each computed for itself.

    r[i] = sum(j) where(s[j] == s[i], 1, 0)        s[i] = sum(k, l) T[k, l, i]

A region that holds s has two loops of it here, and each may add its terms in another order. Then s[i] differs from itself by
rounding, and the count is wrong by one, not by a rounding error. A stored s is equal to itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product

from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FusionError
from fuseflow.float32.operator_precision import COMPARISONS
from fuseflow.fusion.tree import Constant, Operation, Reduction, Selection, Tree, View, nodes
from fuseflow.tensors import DTYPES

EXACT = frozenset(("max", "min"))
"""The reductions and operators whose result is one of their operands."""


def refuse_compared_sums(region: str, trees: Collection[Tree], declared: Mapping[str, TensorType]) -> None:
    """Raise `FusionError` if a comparison in the trees of a region compares what it makes of a sum of floats with what it makes in the same
    way of that sum at other indices."""
    for node in nodes(*trees):
        if not isinstance(node, Operation) or node.name not in COMPARISONS:
            continue
        left, right = node.args
        if isinstance(left, Operation) and left.name == "sub" and isinstance(right, Constant):
            left, right = left.args
        for one, other in product(_selected(left), _selected(right)):
            label = _rounded_sum(one, declared) if one is not other and _alike(one, other) else ""
            if label:
                error = FusionError(
                    f"region `{region}` compares `{label}` with itself and would compute it twice: two sums of the same numbers may "
                    "differ in rounding",
                    hint=f"end a region at `{label}`, which then is stored",
                )
                error.producer = label
                raise error


def _selected(tree: Tree) -> Iterator[Tree]:
    """Yield a node and the nodes below it that its value may be an element of."""
    yield tree
    if isinstance(tree, Selection) or (isinstance(tree, Reduction) and tree.op in EXACT):
        yield from _selected(tree.body)
    if isinstance(tree, Operation) and (tree.name == "where" or tree.name in EXACT):
        for arg in tree.args[tree.name == "where" :]:
            yield from _selected(arg)


def _alike(one: Tree, other: Tree) -> bool:
    """Return whether two nodes are the same expression at some indices."""
    if one is other:
        return True
    match one, other:
        case View(), View():
            return one.tensor == other.tensor
        case Operation(), Operation():
            return one.name == other.name and all(map(_alike, one.args, other.args))
        case Reduction(), Reduction():
            return one.label == other.label
        case Selection(), Selection():
            return one.label == other.label
        case _:
            return False


def _rounded_sum(tree: Tree, declared: Mapping[str, TensorType]) -> str:
    """Return the label of the last reduction in a tree whose result may depend on the order of its terms, empty if there is none."""
    exact = {name for name, tensor in declared.items() if DTYPES[tensor.dtype].is_integer}
    rounded = (n.label for n in reversed(nodes(tree)) if isinstance(n, Reduction) and n.op not in EXACT and n.label not in exact)
    return next(rounded, "")
