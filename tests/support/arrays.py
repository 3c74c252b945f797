"""Netlists on arrays that were recorded, with placements and wirelengths, and graphs of whole regions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zipfile import ZipFile

from fuseflow.array.netlist import Cell, Net, Netlist
from fuseflow.array.settings import ArraySettings, load_array
from fuseflow.samml import nodes as n
from fuseflow.samml.text import parse

DATA = Path(__file__).parents[1] / "data" / "array"
LANES = (1, 2, 4, 8)
CAPACITY = {
    "gcn": ((57, 26, 18), (118, 48, 32), (240, 92, 60), (484, 180, 116)),
    "graphsage": ((106, 47, 31), (216, 90, 58), (436, 176, 112), (876, 348, 220)),
    "sae": ((21, 13, 13), (46, 22, 22), (96, 40, 40), (196, 76, 76)),
    "attention": ((43, 15, 13), (91, 25, 21), (187, 45, 37), (379, 85, 69)),
    "decoder": ((84, 44, 35), (179, 75, 57), (369, 137, 101), (749, 261, 189)),
    "decoder-2": ((42, 15, 12), (88, 25, 20), (180, 45, 36), (364, 85, 68)),
    "decoder-3": ((91, 32, 24), (186, 60, 44), (376, 116, 84), (756, 228, 164)),
}
"""The tiles PE and MEM and the ports that fused regions take on Onyx, in 1, 2, 4 and 8 lanes. They were counted by a prototype that is not
part of this project, on graphs of 2026-11-28, which are recorded, too."""
SIZES = [
    ("sae", 1, "simple", 42, 45),
    ("attention", 1, "simple", 55, 57),
    ("gcn", 1, "simple", 70, 83),
    ("gcn", 1, "onyx", 101, 118),
    ("graphsage", 1, "simple", 123, 154),
    ("decoder-3", 1, "onyx", 147, 168),
    ("gcn", 2, "simple", 136, 166),
    ("attention", 2, "onyx", 137, 148),
]
"""Regions, lanes and footprints with the cells and nets of their netlists."""


@dataclass(frozen=True)
class RecordedNetlist:
    """A netlist with a placement, its wirelength, and the least that one can have as far as it is known."""

    name: str
    array: ArraySettings
    netlist: Netlist
    sites: tuple[tuple[int, int], ...]
    wirelength: int
    bound: int
    proven: bool


@cache
def recorded_netlists() -> tuple[RecordedNetlist, ...]:
    """Return all recorded netlists, by name."""
    return tuple(_recorded(path) for path in sorted(DATA.glob("*.json")))


def _recorded(path: Path) -> RecordedNetlist:
    content = json.loads(path.read_text())
    cells = tuple(Cell(name, kind) for name, kind in content["cells"])
    nets = tuple(Net(source, tuple(sinks)) for source, *sinks in content["nets"])
    sites = tuple((x, y) for x, y in content["placement"])
    array = load_array(content["array"])
    length, bound = content["half_perimeter"], content["lower_bound"]
    return RecordedNetlist(path.stem, array, Netlist(cells, nets), sites, length, bound, content["proven"])


@cache
def recorded_graph(region: str, lanes: int) -> n.Graph:
    """Return the graph of a region of `CAPACITY` in lanes."""
    with ZipFile(DATA / "capacity_graphs.zip") as file:
        return parse(file.read(f"{region}_{lanes}.samml").decode())


def with_footprint(array: ArraySettings, footprint: str) -> ArraySettings:
    """Return an array with another footprint."""
    return ArraySettings.model_validate({**array.model_dump(), "footprint": footprint})
