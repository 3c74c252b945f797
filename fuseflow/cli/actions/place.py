"""The action of the command `fuseflow place`, which `cli/place.py` declares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fuseflow.array.artifact import placement_text
from fuseflow.array.capacity import require_fit, tile_use
from fuseflow.array.picture import picture
from fuseflow.array.placed_region import PlacedRegion, PlacementSearch, place_region
from fuseflow.array.settings import ArraySettings
from fuseflow.cli.common import console, print_lines, print_pieces, require_replaceable, say
from fuseflow.cli.progress import counting_bar
from fuseflow.cli.request import ProgramRequest
from fuseflow.cli.run_options import Target
from fuseflow.filesystem import json_text, list_files, replace_directory
from fuseflow.machine.machine import Machine
from fuseflow.report.array_tables import assumed_lines, place_table
from fuseflow.run.artifacts import file_name
from fuseflow.run.compiled import Compiled

MANIFEST = "placed.json"
"""The file that describes a directory of placements."""


def place(
    program: ProgramRequest,
    machine: Machine,
    array: ArraySettings,
    tracks: int | None,
    effort: float,
    seeds: int,
    exact: float | None,
    output: Path | None,
    quiet: bool,
) -> None:
    if output is not None:
        require_replaceable(output, MANIFEST)
    array = array if tracks is None else array.model_copy(update={"tracks": tracks})
    compiled = program.compile(Target(machine, array=array), quiet=quiet).compiled
    placed = _placed(compiled, array, machine, PlacementSearch(effort, seeds, exact or 0.0), quiet)
    if output is not None:
        _save(output, compiled, placed)
    if not quiet:
        rows = zip((region.name for region in compiled.regions), placed, strict=True)
        print_pieces(console(), [place_table(array, rows)])
        print_lines(console(), assumed_lines(array))
        if output is not None:
            say(f"written to {output}")


def _placed(
    compiled: Compiled, array: ArraySettings, machine: Machine, search: PlacementSearch, quiet: bool
) -> Sequence[PlacedRegion]:
    """Return the placed regions. Raises `ArrayError` before the work for a region that does not fit."""
    for region in compiled.regions:
        require_fit(tile_use(region.graph, array, machine), region.name)
    placed: list[PlacedRegion] = []
    with counting_bar("regions placed", quiet) as progress:
        for region in compiled.regions:
            placed.append(place_region(region.graph, array, machine, search))
            progress(len(placed), len(compiled.regions))
    return placed


def _save(directory: Path, compiled: Compiled, placed: Sequence[PlacedRegion]) -> None:
    """Write the placement and the picture of each region, in a directory that appears as a whole. Raises `FileError`."""
    names: list[str] = []
    with replace_directory(directory, MANIFEST) as folder:
        for region, its_place in zip(compiled.regions, placed, strict=True):
            name = file_name(region.name)
            name = name if name not in names else f"{name}-{len(names) + 1}"
            names.append(name)
            (folder / f"{name}.place.json").write_text(placement_text(its_place), encoding="utf-8")
            (folder / f"{name}.svg").write_text(picture(its_place), encoding="utf-8")
        regions = [
            {"name": region.name, "file": f"{name}.place.json"} for region, name in zip(compiled.regions, names, strict=True)
        ]
        about = {"schema": 1, "model": compiled.name, "regions": regions, "files": list_files(folder)}
        (folder / MANIFEST).write_text(json_text(about), encoding="utf-8")
