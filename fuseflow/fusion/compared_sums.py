"""The comparisons that no region may hold: of a sum with the same sum at other indices, each computed for itself.

    r[i] = sum(j) where(s[j] == s[i], 1, 0)        s[i] = sum(k, l) T[k, l, i]

A region that holds s has two loops of it here, and each may add its terms in another order. Then s[i] differs from itself by
rounding, and the count is wrong by one, not by a rounding error. A stored s is equal to itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FusionError
from fuseflow.float32.operator_precision import COMPARISONS
from fuseflow.fusion.tree import Operation, Reduction, Tree, nodes
from fuseflow.tensors import DTYPES

EXACT = frozenset(("max", "min"))
"""The reductions whose result does not depend on the order of their terms."""


def refuse_compared_sums(region: str, trees: Collection[Tree], declared: Mapping[str, TensorType]) -> None:
    """Raise `FusionError` if a comparison in the trees of a region reads two nodes of one sum of floats."""
    for node in nodes(*trees):
        if not isinstance(node, Operation) or node.name not in COMPARISONS:
            continue
        seen: dict[str, Tree] = {}
        for below in nodes(*node.args):
            if not isinstance(below, Reduction) or below.op in EXACT:
                continue
            if below.label in declared and DTYPES[declared[below.label].dtype].is_integer:
                continue
            if seen.setdefault(below.label, below) is not below:
                raise FusionError(
                    f"region `{region}` compares `{below.label}` with itself and would compute it twice: two sums of the same "
                    "numbers may differ in rounding",
                    hint=f"end a region at `{below.label}`, which then is stored",
                )
