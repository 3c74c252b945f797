"""Wirelengths beside those of a public placer of coarse-grained arrays: `placer` of the wheel `pythunder`, version 0.4.3.

It has wheels for Python up to 3.10 only: `python3.10 -m venv thunder; thunder/bin/pip install pythunder==0.4.3`, and then
`PATH=$PATH:$PWD/thunder/bin pytest tests/array/test_public_placer.py`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from arrays import SIZES, recorded_graph, with_footprint

from fuseflow.array.anneal import anneal
from fuseflow.array.grid import Grid, Placement, Site
from fuseflow.array.netlist import Netlist, netlist_of
from fuseflow.array.settings import load_array

pytestmark = pytest.mark.skipif(shutil.which("placer") is None, reason="the public placer is not on the path")
ONYX = load_array("onyx")
LETTERS = {"PE": ("p", 20), "MEM": ("m", 19), "IO": ("I", 2)}
"""The letter that a name of a cell begins with, by which the placer tells its kind, and the rank that the placer gives the kind."""
WAYS = {"its ports": (False, {}), "our ports": (True, {}), "our ports, flat": (True, {"SKIP_GP": "1"})}
"""Whether ports stay where ours are, and the environment: `SKIP_GP` turns clusters off."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("region", "lanes", "footprint"), [size[:3] for size in SIZES])
def test_the_public_placer_is_never_shorter(region: str, lanes: int, footprint: str, way: str, tmp_path: Path) -> None:
    array = with_footprint(ONYX, footprint)
    netlist, grid = netlist_of(recorded_graph(region, lanes), array), Grid.of(array)
    ours = anneal(netlist, grid, effort=10, seeds=4)
    with_our_ports, environment = WAYS[way]
    theirs = _placed(netlist, grid, ours if with_our_ports else None, environment, tmp_path)
    theirs.verify(grid)
    assert ours.wirelength <= theirs.wirelength


def _placed(netlist: Netlist, grid: Grid, ports: Placement | None, environment: dict[str, str], folder: Path) -> Placement:
    """Return the placement of the public placer, with the ports of another one if it is given."""
    names = [f"{LETTERS[cell.kind][0]}{k}" for k, cell in enumerate(netlist.cells)]
    layout, packed, placed = (folder / name for name in ("array.layout", "graph.packed", "graph.place"))
    layout.write_text(_layout(grid))
    nets = [
        f"e{k}: " + " ".join(f"({names[cell]}, x)" for cell in (net.source, *net.sinks)) for k, net in enumerate(netlist.nets)
    ]
    buses = [f"e{k}: 17" for k in range(len(nets))]
    ids = [f"{name}: {name}" for name in names]
    packed.write_text("\n".join(["Netlists:", *nets, "", "ID to Names:", *ids, "", "Netlist Bus:", *buses, ""]))
    if ports is not None:
        sites = [f"{name}\t\t{x}\t{y}\t\t#{name}" for name, (x, y) in zip(names, ports.sites, strict=True) if name[0] == "I"]
        placed.write_text("\n".join(["Block Name\t\tX\tY\t\t#Block ID", "-" * 30, *sites, ""]))
    fixed = ["-f"] if ports is not None else []
    command = ["placer", *fixed, str(layout), str(packed), str(placed)]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | environment, timeout=300)
    rows = [line.split() for line in placed.read_text().splitlines() if "#" in line and "Block" not in line]
    at: dict[str, Site] = {ident.removeprefix("#"): (int(x), int(y)) for _, x, y, ident in rows}
    return Placement(netlist, tuple(at[name] for name in names))


def _layout(grid: Grid) -> str:
    """Return the array in the text form of the placer: for each kind where it has sites, with its rank."""
    lines = []
    for kind, (letter, rank) in LETTERS.items():
        own = set(grid.sites[kind])
        rows = ["".join("01"[(x, y) in own] for x in range(grid.columns)) for y in range(grid.rows)]
        lines += [f"LAYOUT {letter} {rank} 0", "BEGIN", *rows, "END"]
    return "\n".join([*lines, ""])
