"""The options of an array of tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fuseflow.cli.command import Command, options_of
from fuseflow.cli.common import FILE, bundled, completed
from fuseflow.errors import UsageError

if TYPE_CHECKING:
    from fuseflow.array.placed_region import PlacedRegion
    from fuseflow.array.settings import ArraySettings
    from fuseflow.machine.machine import Machine
    from fuseflow.run.compiled import Compiled
    from fuseflow.samml.nodes import Graph

array_setting = options_of("Array")


def _names() -> Iterable[str]:
    from fuseflow.array.settings import array_names  # completion alone needs it

    return array_names()


def _array(array_file: str | None) -> ArraySettings | None:
    if array_file is None:
        return None
    from fuseflow.array.settings import load_array  # `--help` does without

    return load_array(array_file)


def array_option(help: str, required: bool = False) -> Callable[[Command], Command]:
    """Return a decorator that adds `--array`, and passes it on as `array`: `ArraySettings`, or None if it is not given."""
    return bundled("array", _array, _array_option(help, required))


def _array_option(help: str, required: bool = False) -> Callable[[Command], Command]:
    return array_setting(
        "--array",
        "array_file",
        metavar="NAME",
        required=required,
        shell_complete=completed(_names),
        help=help,
    )


@dataclass(frozen=True, slots=True)
class ArrayRequest:
    """An array to run on, and the `directory` of placements on it, if there is one."""

    array: ArraySettings
    directory: Path | None

    def placed(self, graphs: Mapping[str, Graph], machine: Machine, quiet: bool) -> tuple[PlacedRegion, ...]:
        """Return the placements of the graphs of regions, by name: those in the directory, or new ones. Raises `ArrayError` for a region
        that does not fit, and for a placement of another graph or array."""
        from fuseflow.array.placed_region import PlacementSearch
        from fuseflow.cli.progress import counting_bar
        from fuseflow.run.placed import load_placements, place_regions

        if self.directory is not None:
            return load_placements(self.directory, graphs, self.array, machine)
        with counting_bar("regions placed", quiet) as progress:
            return place_regions(graphs, self.array, machine, PlacementSearch(), progress)

    def linked(self, compiled: Compiled, quiet: bool) -> tuple[Compiled, Mapping[str, PlacedRegion]]:
        """Return a program with the links between the tiles of its regions, and the placements of these, by name. Raises the errors of
        `placed`."""
        from fuseflow.run.placed import with_links

        graphs = {region.name: region.graph for region in compiled.regions}
        placed = self.placed(graphs, compiled.machine, quiet)
        return with_links(compiled, placed), dict(zip(graphs, placed, strict=True))


def array_of(on_array: ArrayRequest | None) -> ArraySettings | None:
    """Return the array of a request, None without one: what the default cut is to fit."""
    return None if on_array is None else on_array.array


def _request(array_file: str | None, placement: Path | None) -> ArrayRequest | None:
    array = _array(array_file)
    if array is None and placement is not None:
        raise UsageError("`--placement` without `--array`", hint="say which array it is for: `--array onyx`")
    return None if array is None else ArrayRequest(array, placement)


def _placement_options(
    help: str, placement: str = "take the placements that `place -o` wrote here.  [default: new ones, as `place` makes them]"
) -> Callable[[Command], Command]:
    """Return a decorator that adds `--array` and `--placement`, and passes them on as `on_array`, an `ArrayRequest` or None."""
    return bundled(
        "on_array",
        _request,
        _array_option(help),
        array_setting(
            "--placement",
            metavar="DIR",
            type=FILE,
            help=f"Of --array: {placement}",
        ),
    )


placement_options = _placement_options("Run on this array of tiles (a name, or a YAML file): with its links, and with loading.")
circuit_placement_options = _placement_options("Circuits with the hops between the tiles of this array (a name, or a YAML file).")
estimated_placement_options = _placement_options(
    "Print the tiles that each region takes on this array (a name, or a YAML file), and those that are missing.",
    "count the links of the placements that `place -o` wrote here.",
)
