"""Programs on an array of tiles: each region with the hops of its routes, and the cycles that loading it takes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fuseflow.array.artifact import load_placement
from fuseflow.array.capacity import require_fit, tile_use
from fuseflow.array.links import at_equal_slots, linked_graph
from fuseflow.array.netlist import netlist_of
from fuseflow.array.placed_region import PlacedRegion, PlacementSearch, place_region
from fuseflow.array.settings import ArraySettings
from fuseflow.errors import ArrayError, UsageError
from fuseflow.filesystem import read_json
from fuseflow.lower.regions import CompiledRegion
from fuseflow.machine.machine import Machine
from fuseflow.run.callback_types import GraphExecutor, ProgressCallback
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import RegionLoading, Result
from fuseflow.run.simulated_resources import simulated_resources
from fuseflow.samml.nodes import Graph
from fuseflow.sim import Engine, Simulation, simulate

MANIFEST = "placed.json"
"""The file that describes a directory of placements."""
HINT = "`fuseflow place MODEL --array FILE -o DIR` writes them, with the options of this run"


class _PlacedFile(BaseModel):
    """The placement of a region, in a directory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    file: Annotated[str, Field(pattern=r"^[^/\\]+\.place\.json$")]


class _Manifest(BaseModel):
    """What of `placed.json` is read."""

    regions: tuple[_PlacedFile, ...]


@dataclass(slots=True)
class RegionPlacing:
    """Places graphs on an array. Graphs that differ in names alone are placed once."""

    array: ArraySettings
    machine: Machine
    search: PlacementSearch
    _placed: dict[Hashable, PlacedRegion] = field(default_factory=dict)

    def placed(self, graph: Graph, beside: PlacedRegion | None = None) -> PlacedRegion:
        """Return a graph on the array, `beside` another one if there is room for both. Raises `ArrayError` if it cannot be placed."""
        key = graph.structure.key, beside and (beside.placement.sites, beside.routing.routes)
        if key not in self._placed:
            self._placed[key] = place_region(graph, self.array, self.machine, self.search, beside)
        known = self._placed[key]
        if known.graph == graph:
            return known
        placement = replace(known.placement, netlist=netlist_of(graph, self.array, self.machine))
        return replace(known, graph=graph, routing=replace(known.routing, placement=placement))

    def in_order(self, graphs: Iterable[Graph]) -> Iterator[PlacedRegion]:
        """Yield graphs that run one after the other on the array, each beside the one before if two may be there. One with the same graph
        as the one before lies where that does. Raises `ArrayError` for one that cannot be placed."""
        before: PlacedRegion | None = None
        beside: PlacedRegion | None = None
        for graph in graphs:
            if before is not None and self.array.resident > 1 and graph.structure.key != before.graph.structure.key:
                beside = before
            before = self.placed(graph, beside)
            yield before

    def linked(self, compiled: Compiled) -> Compiled:
        """Return a program with the links between the tiles of its regions. Raises `ArrayError` for a region that cannot be placed, and
        `UsageError` for one that runs in tiles."""
        return with_links(compiled, tuple(self.in_order(region.graph for region in compiled.regions)))

    def run(
        self,
        compiled: Compiled,
        progress: ProgressCallback | None = None,
        check: bool = False,
        engine: Engine = "auto",
        execute: GraphExecutor = simulate,
    ) -> Result:
        """Run a program with the links between the tiles of its regions. Its resources are those of graphs without links, which are the
        array's. Raises the errors of `linked`."""
        result = self.linked(compiled).run(progress, check, engine, execute=execute)
        graphs = {region.name: region.graph for region in compiled.regions}
        own = (simulated_resources(graphs[region.name], self.machine, region.simulation) for region in result.regions)
        return replace(
            result, regions=tuple(replace(region, resources=used) for region, used in zip(result.regions, own, strict=True))
        )


def place_regions(
    graphs: Mapping[str, Graph],
    array: ArraySettings,
    machine: Machine,
    search: PlacementSearch,
    progress: Callable[[int, int], None] = lambda done, count: None,
) -> tuple[PlacedRegion, ...]:
    """Place the graphs of regions, by name, as `RegionPlacing.in_order` does. `progress` is called with the number of those that are
    placed, and of all. Raises `ArrayError`, before the work, for a region that does not fit."""
    for name, graph in graphs.items():
        require_fit(tile_use(graph, array, machine), name)
    placed: list[PlacedRegion] = []
    for one in RegionPlacing(array, machine, search).in_order(graphs.values()):
        placed.append(one)
        progress(len(placed), len(graphs))
    return tuple(placed)


def load_placements(
    directory: Path, graphs: Mapping[str, Graph], array: ArraySettings, machine: Machine
) -> tuple[PlacedRegion, ...]:
    """Return the placements of the graphs of regions, by name, in a directory that `fuseflow place -o` wrote. Raises `ArrayError` if one is
    missing, damaged, or of another array or graph, and `FileError` if there are none."""
    content = read_json(directory / MANIFEST, "the placements", hint=HINT)
    try:
        listed = {region.name: region.file for region in _Manifest.model_validate(content).regions}
    except ValidationError as error:
        raise ArrayError(f"`{directory / MANIFEST}` lists no placements of regions", hint=HINT) from error
    for name in graphs:
        if name not in listed:
            has = ", ".join(f"`{other}`" for other in listed) or "none"
            raise ArrayError(f"`{directory}` has no placement of region `{name}`; it has {has}", hint=HINT)
    return tuple(load_placement(directory / listed[name], graph, array, machine) for name, graph in graphs.items())


def with_links(compiled: Compiled, placed: Sequence[PlacedRegion]) -> Compiled:
    """Return a program whose regions have the hops of their placements, in order. Its runs count how long loading takes. Raises
    `UsageError` for a region that runs in tiles."""
    tiled = next((region.name for region in compiled.regions if region.tiles), None)
    if tiled is not None:
        raise UsageError(
            f"region `{tiled}` runs in tiles, whose graphs are others than the one that is placed", hint="leave `tile` out"
        )
    pairs = list(zip(compiled.regions, placed, strict=True))
    regions = tuple(replace(region, graph=linked_graph(its_place)) for region, its_place in pairs)
    return replace(compiled, regions=regions, loading=_loading(regions, placed))


@dataclass(frozen=True, slots=True)
class PlacedCycles:
    """The cycles of a placed region, and those at equal slots but without distances (`ideal`), and the share of the former in which each
    node works, by name."""

    cycles: int
    ideal: int
    busy: Mapping[str, float]


def placed_cycles(
    compiled: Compiled, placed: Sequence[PlacedRegion], engine: Engine = "auto", progress: ProgressCallback | None = None
) -> Mapping[str, PlacedCycles]:
    """Run a program with the hops of its placements, and without them at equal slots, and return the cycles of each region, by name."""
    linked = with_links(compiled, placed)
    pairs = zip(compiled.regions, placed, strict=True)
    near = [replace(region, graph=at_equal_slots(its_place, compiled.machine)) for region, its_place in pairs]
    runs = [one.run(progress, check=False, engine=engine) for one in (linked, replace(compiled, regions=tuple(near)))]
    far, ideal = ({name: region for region in run.regions for name in region.names} for run in runs)
    return {name: PlacedCycles(region.cycles, ideal[name].cycles, busy_shares(region.simulation)) for name, region in far.items()}


def busy_shares(simulation: Simulation) -> Mapping[str, float]:
    """Return the share of the cycles of a run in which each node works, by name."""
    return {node.name: min(1.0, node.occupied / max(simulation.cycles, 1)) for node in simulation.nodes}


def _loading(regions: Sequence[CompiledRegion], placed: Sequence[PlacedRegion]) -> Mapping[str, RegionLoading]:
    """Return how each region is loaded, by name: not at all where the one before has the same configuration, and while that one runs where
    both may lie on the array."""
    loads: dict[str, RegionLoading] = {}
    before: tuple[PlacedRegion, Hashable] | None = None
    for region, its_place in zip(regions, placed, strict=True):
        configuration = region.graph.structure.key, its_place.placement.sites, its_place.routing.routes
        if before is not None and before[1] == configuration:
            loads[region.name] = RegionLoading(0)
        else:
            early = its_place.array.resident > 1 and before is not None and before[0].leaves_room_for(its_place)
            loads[region.name] = RegionLoading(its_place.loading_cycles, early)
        before = its_place, configuration
    return loads
