"""MLIR locations that carry the user's module path, operator and source line.

For example, in `loc("layer1.lin"("@linear"("model.py":12:0)))` the first name is the module path, and the name that starts with `@` is
the operator. An operator whose name prefixes the names of several Einsums ends with a dot, as in `@softmax.`. Locations survive every
pass that the front end runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch_mlir import ir

from fuseflow.einsum.nodes import Location
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
