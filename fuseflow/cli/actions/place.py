"""The action of the command `fuseflow place`, which `cli/place.py` declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fuseflow.array.artifact import placement_text
from fuseflow.array.picture import picture
from fuseflow.array.placed_region import PlacedRegion, PlacementSearch
from fuseflow.array.settings import ArraySettings
from fuseflow.cli.common import JsonFile, print_lines, print_pieces, require_replaceable, say
from fuseflow.cli.progress import counting_bar, firings_bar
from fuseflow.cli.request import ProgramRequest
from fuseflow.cli.run_options import Target
from fuseflow.filesystem import json_text, list_files, replace_directory
from fuseflow.machine.machine import Machine
from fuseflow.report.array_tables import assumed_lines, place_table, placed_json
from fuseflow.run.artifacts import file_name
from fuseflow.run.compiled import Compiled
from fuseflow.run.placed import MANIFEST, PlacedCycles, place_regions, placed_cycles

BOUND_SECONDS = 0.5
"""The work for a lower bound of the wirelength of a region, where no exact search has one."""


def place(
    program: ProgramRequest,
    machine: Machine,
    array: ArraySettings,
    tracks: int | None,
    effort: float,
    seeds: int,
    exact: float | None,
    runs: bool,
    json_file: JsonFile,
    output: Path | None,
    quiet: bool,
) -> None:
    if output is not None:
        require_replaceable(output, MANIFEST)
    array = array if tracks is None else array.model_copy(update={"tracks": tracks})
    compiled = program.compile(Target(machine), quiet=quiet).compiled
    graphs = {region.name: region.graph for region in compiled.regions}
    with counting_bar("regions placed", quiet) as progress:
        placed = place_regions(graphs, array, machine, PlacementSearch(effort, seeds, exact or 0.0, BOUND_SECONDS), progress)
    cycles: Mapping[str, PlacedCycles] = {}
    if runs:
        with firings_bar(quiet, compiled) as counting:
            cycles = placed_cycles(compiled, placed, progress=counting)
    if output is not None:
        _save(output, compiled, placed, cycles)
    by_name = dict(zip(graphs, placed, strict=True))
    json_file.write(lambda: {"schema": 1, "model": compiled.name, "array": array.name, "regions": placed_json(by_name, cycles)})
    if not quiet:
        out = json_file.console()
        print_pieces(out, [place_table(array, by_name, cycles)])
        print_lines(out, assumed_lines(array))
        if output is not None:
            say(f"written to {output}")


def _save(directory: Path, compiled: Compiled, placed: Sequence[PlacedRegion], cycles: Mapping[str, PlacedCycles]) -> None:
    """Write the placement and the picture of each region, in a directory that appears as a whole. Raises `FileError`."""
    names: list[str] = []
    with replace_directory(directory, MANIFEST) as folder:
        for region, its_place in zip(compiled.regions, placed, strict=True):
            name = file_name(region.name)
            name = name if name not in names else f"{name}-{len(names) + 1}"
            names.append(name)
            busy = cycles[region.name].busy if cycles else None
            (folder / f"{name}.place.json").write_text(placement_text(its_place), encoding="utf-8")
            (folder / f"{name}.svg").write_text(picture(its_place, busy), encoding="utf-8")
        regions = [
            {"name": region.name, "file": f"{name}.place.json"} for region, name in zip(compiled.regions, names, strict=True)
        ]
        about = {"schema": 1, "model": compiled.name, "regions": regions, "files": list_files(folder)}
        (folder / MANIFEST).write_text(json_text(about), encoding="utf-8")
