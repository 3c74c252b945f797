"""MLIR locations that carry the user's module path, operator and source line.

`loc("layer1.lin"("@linear"("model.py":12:0)))`: a name is the module path, a name that starts with `@` the operator; `@softmax.` with a dot
is an operator whose name prefixes the names of its Einsums. Locations survive every pass that we run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch_mlir import ir

from fuseflow.einsum.nodes import Location
from fuseflow.errors import Span


@dataclass(frozen=True, slots=True)
class Origin:
    path: str = ""
    operator: str = ""
    span: Span | None = None

    @property
    def location(self) -> Location:
        return Location(self.path, self.span)


def to_location(origin: Origin, context: Any) -> Any:
    location = ir.Location.unknown(context)
    if origin.span is not None:
        location = ir.Location.file(origin.span.file, origin.span.line, origin.span.column or 0, context)
    for name in (f"@{origin.operator}" if origin.operator else "", origin.path):
        if name:
            location = ir.Location.name(name, location, context)
    return location


def from_location(location: Any, file: str = "") -> Origin:
    """Read a location, ours or anybody's; `file` is the name of the text that the module was parsed from."""
    path = operator = ""
    location = ir.Location.from_attr(location.attr, location.context)  # diagnostics give it without its class
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
        inner = Origin(span=_span(location, file))
    else:
        inner = Origin()
    return Origin(path or inner.path, operator or inner.operator, inner.span)


def _span(location: Any, file: str) -> Span:
    name = str(location.filename)
    column = int(location.start_col)
    return Span(file if name == "-" and file else name, int(location.start_line), column or None)
