"""Names of Einsums, which are stable and consist of the user's own module paths and operators."""

from __future__ import annotations

import re
from itertools import chain, count

from fuseflow.einsum.nodes import Apply, Expr, Reduce, walk
from fuseflow.frontend.linalg.locations import Origin

SPARSE_OPERATORS = ("keep", "masked")
"""The operators of `fuseflow` itself that are replaced by one product on their way through torch-mlir."""


class NameAllocator:
    """An allocator that gives out each name once. A second use of a name gets the suffix `_2`, a third one `_3`, and so on."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def unique(self, name: str) -> str:
        """Return the name, with a suffix if it is taken already, and take it."""
        plain = _program_name(name)
        unique_name = next(n for n in chain([plain], (f"{plain}_{n}" for n in count(2))) if n not in self._taken)
        self._taken.add(unique_name)
        return unique_name


def _program_name(name: str) -> str:
    """Return a name that program text can hold, which is one or more words joined by dots.

    >>> _program_name("my-layer.0")
    'my_layer.0'
    >>> _program_name("0"), _program_name("_0")
    ('_0', '_0')
    """
    words = [re.sub(r"\W", "_", word) for word in name.split(".") if word]
    joined = ".".join(words)
    return f"_{joined}" if re.fullmatch(r"(\d[\d._eE]*)?", joined) else joined


def einsum_name(body: Expr, origin: Origin) -> str:
    """Return the name of an Einsum: its module path and its operator, as in `layer1.matmul` or `log_softmax.max`. A body of
    several operators has the name of the operator that the user called, and so has a product that replaces an operator of
    fuseflow itself."""
    prefix = origin.operator if origin.operator.endswith(".") else ""
    name = _operator_name(body)
    if not prefix and origin.operator and (_is_compound(body) or origin.operator in SPARSE_OPERATORS):
        name = origin.operator.lstrip("_")
    return qualified_name(origin, prefix + name)


def qualified_name(origin: Origin, name: str) -> str:
    """Return a name with the module path of its origin in front of it."""
    return f"{origin.path}.{name}" if origin.path else name


def _operator_name(body: Expr) -> str:
    reductions = [node for node in walk(body) if isinstance(node, Reduce)]
    if reductions:
        inner = reductions[0]
        product = inner.op == "sum" and isinstance(inner.body, Apply) and inner.body.op == "mul"
        return "matmul" if product else inner.op
    return body.op if isinstance(body, Apply) else "copy"


def _is_compound(body: Expr) -> bool:
    """Return whether an expression has more than one operator and no reduction."""
    nodes = list(walk(body))
    return sum(isinstance(node, Apply) for node in nodes) > 1 and not any(isinstance(node, Reduce) for node in nodes)
