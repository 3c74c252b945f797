"""Names of Einsums: stable, and made of the user's own module paths and operators."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

from fuseflow.einsum.nodes import Access, Apply, Expr, Reduce, walk
from fuseflow.frontend.mlir_locations import Origin


class NameAllocator:
    """Hands out each name once; a second use gets `_2`, a third `_3`."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def unique(self, name: str) -> str:
        chosen = next(n for n in self._candidates(_word(name)) if n not in self._taken)
        self._taken.add(chosen)
        return chosen

    @staticmethod
    def _candidates(name: str) -> Iterator[str]:
        yield name
        yield from (f"{name}_{n}" for n in count(2))


def _word(name: str) -> str:
    """A name that program text can hold: words joined by dots.

    >>> _word("my-layer.0")
    'my_layer.0'
    >>> _word("0"), _word("_0")
    ('_0', '_0')
    """
    words = [re.sub(r"\W", "_", word) for word in name.split(".") if word]
    joined = ".".join(words)
    return f"_{joined}" if re.fullmatch(r"(\d[\d._eE]*)?", joined) else joined


def einsum_name(body: Expr, origin: Origin) -> str:
    """Module path and operator: `layer1.matmul`, `log_softmax.max`. A body of several operators takes the name of the user's operator."""
    prefix = origin.operator if origin.operator.endswith(".") else ""
    kind = _kind(body)
    if not prefix and origin.operator and _compound(body):
        kind = origin.operator.lstrip("_")
    return qualified_name(origin, prefix + kind)


def qualified_name(origin: Origin, name: str) -> str:
    return f"{origin.path}.{name}" if origin.path else name


def _kind(body: Expr) -> str:
    reductions = [node for node in walk(body) if isinstance(node, Reduce)]
    if reductions:
        inner = reductions[0]
        product = inner.op == "sum" and isinstance(inner.body, Apply) and inner.body.op == "mul"
        return "matmul" if product else inner.op
    return body.op if isinstance(body, Apply) else "copy"


def _compound(body: Expr) -> bool:
    """More than one operator, and no reduction."""
    operators = [node for node in walk(body) if not isinstance(node, Access)]
    return sum(isinstance(node, Apply) for node in operators) > 1 and not any(isinstance(node, Reduce) for node in operators)
