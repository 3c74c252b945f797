"""MLIR locations that carry the user's module path, operator and source line.

For example, in `loc("layer1.lin"("@linear"("model.py":12:0)))` the first name is the module path, and the name that starts with `@` is
the operator. An operator whose name prefixes the names of several Einsums ends with a dot, as in `@softmax.`. Locations survive every
pass that the front end runs.

Einsums have stable names, which consist of the user's own module paths and operators.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from torch_mlir import ir

from fuseflow.einsum.nodes import Apply, Expr, Location, Reduce, walk
from fuseflow.errors import FuseFlowError, Span


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of an operation in the user's model: the module path, the operator, the place in a file, and the fused region."""

    path: str = ""
    operator: str = ""
    span: Span | None = None
    region: str = ""

    @property
    def location(self) -> Location:
        """The module path, the place and the region, as an Einsum has them."""
        return Location(self.path, self.span, self.region)


def to_location(origin: Origin, context: Any) -> Any:
    """Return the MLIR location of an origin."""
    location = ir.Location.unknown(context)
    if origin.span is not None:
        location = ir.Location.file(origin.span.file, origin.span.line, origin.span.column or 0, context)
    for name in (f"@{origin.operator}" if origin.operator else "", origin.path):
        if name:
            location = ir.Location.name(name, location, context)
    return location


def from_location(location: Any, file: str = "") -> Origin:
    """Return the origin of any MLIR location, also of one that another tool made. `file` is the text that the module was parsed from."""
    path = operator = ""
    location = ir.Location.from_attr(location.attr, location.context)  # Diagnostics give a location without its class.
    while isinstance(location, ir.NameLoc):
        name = str(location.name_str)
        if name.startswith("@"):
            operator = operator or name[1:]
        else:
            path = path or name
        location = location.child_loc
    if isinstance(location, ir.CallSiteLoc):
        inner = from_location(location.callee, file)
    elif isinstance(location, ir.FusedLoc):
        inner = from_location(location.locations[0], file) if location.locations else Origin()
    elif isinstance(location, ir.FileLineColLoc):
        name = str(location.filename)
        place = Span(file if name == "-" and file else name, int(location.start_line), int(location.start_col) or None)
        inner = Origin(span=place)
    else:
        inner = Origin()
    return Origin(path or inner.path, operator or inner.operator, inner.span)


@contextmanager
def at_line_of(op: Any, file: str) -> Iterator[None]:
    """Give an error inside the block the place of the operation `op` if it has none. `file` is the text of the module."""
    try:
        yield
    except FuseFlowError as error:
        error.span = error.span or from_location(op.location, file).span
        raise


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
