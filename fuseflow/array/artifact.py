"""Files of placements: where the cells of a graph lie on an array, and its routes.

    {"version": 1, "array": {"grid": hash, ...}, "graph": hash, "cells": {"A_i": ["MEM", 3, 1], ...},
     "routes": {"A_i.1": [[[3, 1], [2, 1]]], ...}, "wirelength": 241, "bound": null, "proven": false,
     "seeds": 4, "effort": 10.0, "digest": hash}

A file that is read is checked, not trusted: everything that follows from the graph, the array and the sites is computed again. Its digest
is for what does not, such as the bound.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fuseflow.array.grid import Grid, Placement, Site
from fuseflow.array.netlist import Netlist, netlist_of
from fuseflow.array.placed_region import PlacedRegion
from fuseflow.array.routing import Route, Routing
from fuseflow.array.settings import ArraySettings
from fuseflow.errors import ArrayError
from fuseflow.filesystem import read_json, write_text
from fuseflow.machine.machine import Machine
from fuseflow.samml import nodes as n

VERSION = 1
"""The version of the format."""
DIGITS = 16
"""The hexadecimal digits of hashes."""
KEYS = ("grid", "tiles", "ports", "footprint", "memory", "fifo_depth")
"""The keys of an array that say which cells a graph has, and where they may lie."""
_HINT = "`fuseflow place MODEL --array FILE -o DIR` writes a new one"

_Number = Annotated[int, Field(ge=0, strict=True)]
_Hash = Annotated[str, Field(pattern=rf"^[0-9a-f]{{{DIGITS}}}$")]
_Branches = tuple[tuple[tuple[_Number, _Number], ...], ...]


class _PlacementFile(BaseModel):
    """The keys of a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: _Number
    array: dict[str, _Hash]
    graph: _Hash
    cells: dict[str, tuple[str, _Number, _Number]]
    routes: dict[str, _Branches]
    wirelength: _Number
    bound: _Number | None
    proven: Annotated[bool, Field(strict=True)]
    seeds: Annotated[int, Field(ge=1, strict=True)]
    effort: Annotated[float, Field(gt=0, strict=True, allow_inf_nan=False)]
    digest: _Hash


def placement_text(placed: PlacedRegion) -> str:
    """Return the text of the file of a placed region: the same for equal regions, a line for each cell and each route."""
    netlist, sites = placed.netlist, placed.placement.sites
    values = {
        "version": VERSION,
        "array": array_hashes(placed.array),
        "graph": graph_hash(placed.graph),
        "cells": {cell.name: [cell.kind, *site] for cell, site in zip(netlist.cells, sites, strict=True)},
        "routes": dict(zip(net_names(netlist), (r.branches for r in placed.routing.routes), strict=True)),
        "wirelength": placed.placement.wirelength,
        "bound": placed.bound,
        "proven": placed.proven,
        "seeds": placed.seeds,
        "effort": float(placed.effort),
    }
    return _lines({**values, "digest": content_digest(values)})


def _lines(values: Mapping[str, Any]) -> str:
    """Return an object as JSON, with a line for each key, and for each key of an object in it."""
    lines = []
    for key, value in values.items():
        text = _json(value)
        if isinstance(value, Mapping) and value:
            text = "{\n  " + ",\n  ".join(f"{_json(name)}: {_json(inner)}" for name, inner in value.items()) + "\n }"
        lines.append(f" {_json(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def save_placement(placed: PlacedRegion, path: Path) -> None:
    """Write the file of a placed region, in one step. Raises `FileError`."""
    write_text(path, placement_text(placed))


def load_placement(path: Path, graph: n.Graph, array: ArraySettings, machine: Machine | None = None) -> PlacedRegion:
    """Return the placed region that a file describes. Raises `ArrayError` if it is damaged, or of another array or graph, with what
    differs, and `FileError` if it is no JSON."""
    values = read_json(path, "the placement", hint=_HINT)
    with _blamed(path):
        file = _parsed(values)
        _require_array(file, array)
        netlist = netlist_of(graph, array, machine)
        _require_graph(file, graph, netlist)
        routing = _checked_routing(file, netlist, array)
        placed = PlacedRegion(graph, array, routing, file.effort, file.seeds, file.bound)
        _require_lengths(file, placed)
        if file.digest != content_digest({key: value for key, value in values.items() if key != "digest"}):
            raise ArrayError("the file was changed: its `digest` is of other content")
        return placed


@contextmanager
def _blamed(path: Path) -> Iterator[None]:
    """Name a file in the message of an `ArrayError` that the block raises."""
    try:
        yield
    except ArrayError as error:
        raise ArrayError(f"the placement `{path}`: {error.message}", hint=_HINT) from error


def _parsed(values: Any) -> _PlacementFile:
    if isinstance(values, Mapping) and values.get("version") not in (VERSION, None):
        raise ArrayError(f"its version is {values['version']!r:.20}, and this one reads {VERSION}")
    try:
        return _PlacementFile.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise ArrayError(f"`{place}`: {first['msg']}" if place else "it is no object of JSON") from error


def _require_array(file: _PlacementFile, array: ArraySettings) -> None:
    hashes = array_hashes(array)
    differing = [key for key in dict.fromkeys((*hashes, *file.array)) if file.array.get(key) != hashes.get(key)]
    if differing:
        names = ", ".join(f"`{key}`" for key in differing)
        raise ArrayError(f"it is for another array than `{array.name}`: {names} {'differ' if len(differing) > 1 else 'differs'}")


def _require_graph(file: _PlacementFile, graph: n.Graph, netlist: Netlist) -> None:
    """Raise `ArrayError` if the cells or the nets are those of another graph, or nodes have other operators or inputs."""
    for what, known, named in (
        ("cell", [cell.name for cell in netlist.cells], file.cells),
        ("net", net_names(netlist), file.routes),
    ):
        lacking, more = [name for name in known if name not in named], sorted(set(named).difference(known))
        if lacking or more:
            lacks = [f"it lacks the {what} `{lacking[0]}`"] if lacking else []
            has = [f"it has the {what} `{more[0]}`"] if more else []
            raise ArrayError(f"it is of another graph than `{graph.name}`: {', and '.join((*lacks, *has))}")
    for cell in netlist.cells:
        if file.cells[cell.name][0] != cell.kind:
            kind = file.cells[cell.name][0]
            raise ArrayError(f"it is of another graph than `{graph.name}`: cell `{cell.name}` is {kind}, and not {cell.kind}")
    if file.graph != graph_hash(graph):
        raise ArrayError(f"it is of another graph than `{graph.name}`: nodes have other operators or inputs")


def _checked_routing(file: _PlacementFile, netlist: Netlist, array: ArraySettings) -> Routing:
    """Return the routes of a file. Raises `ArrayError` where a cell or a route is at a wrong place."""
    grid = Grid.of(array)
    sites: tuple[Site, ...] = tuple(file.cells[cell.name][1:] for cell in netlist.cells)
    placement = Placement(netlist, sites)
    placement.verify(grid)
    routing = Routing(placement, tuple(Route(file.routes[name]) for name in net_names(netlist)))
    routing.verify(grid, array.tracks, array.ports.kind)
    return routing


def _require_lengths(file: _PlacementFile, placed: PlacedRegion) -> None:
    """Raise `ArrayError` if the lengths are not those of the sites, or cannot be."""
    length, bound = placed.placement.wirelength, file.bound
    if file.wirelength != length:
        raise ArrayError(f"its wirelength is {file.wirelength:,}, and that of its sites is {length:,}")
    if bound is not None and bound > length:
        raise ArrayError(f"its bound of {bound:,} is above its wirelength of {length:,}")
    if file.proven != placed.proven:
        raise ArrayError(
            f"it is {'' if file.proven else 'not '}proven to be shortest, at a wirelength of {length:,} and bound {bound}"
        )


def net_names(netlist: Netlist) -> list[str]:
    """Return the names of nets. Raises `ArrayError` if two have one name."""
    names = [net.name(netlist.cells) for net in netlist.nets]
    if len(set(names)) < len(names):
        raise ArrayError("two nets of a graph have one name")
    return names


def array_hashes(array: ArraySettings) -> dict[str, str]:
    """Return a hash of the content of each of `KEYS`. A footprint counts by its rows, not by its name."""
    content = array.model_dump(mode="json", include=set(KEYS))
    rows = array.rows.rows.items()
    content["footprint"] = {row: [[kind, number.variable, number.offset] for kind, number in tiles] for row, tiles in rows}
    return {key: content_digest(content[key]) for key in KEYS}


def graph_hash(graph: n.Graph) -> str:
    """Return a hash of the structure of a graph: operators and inputs of its nodes, without names and sizes."""
    key = graph.structure.key
    assert isinstance(key, tuple)  # the text of the nodes, tensors, outputs and depths
    return content_digest(key[0])


def content_digest(values: Any) -> str:
    """Return a hash of plain values, whatever the order of keys."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:DIGITS]
