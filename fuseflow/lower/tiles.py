"""Regions that run tile by tile: an outer loop over runs of coordinates of one index.

    tile: {j: 16}     Y[i, j] = sum(k) A[i, k] * X[k, j]     for each 16 columns: Y[:, 0:16] = A X[:, 0:16], then Y[:, 16:32], ...

Each tile is the region with fewer coordinates, so what lacks the index is read again for every tile. Tensors with the index lie in
memory tile by tile. Those of them that are placed in the scratchpad have two parts there: the next tile is loaded while this one
runs, and the results of the last one are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fuseflow.errors import ScheduleError, did_you_mean
from fuseflow.fusion.tree import reductions, selections
from fuseflow.lower.region_tile import RegionTile
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.restriction import graph_of, restricted, structure
from fuseflow.samml.nodes import TensorDecl, Transfer
from fuseflow.schedule import Schedule


def with_tiles(regions: Sequence[CompiledRegion], schedule: Schedule) -> list[CompiledRegion]:
    """Return the regions with the tiles that the schedule states. Raises `ScheduleError` for an index that no region has, for two
    indices of one region, and for an index that is reduced."""
    if not schedule.tiles:
        return list(regions)
    indices = {index for region in regions if region.einsums for index in region.fused.order}
    stated = {*indices, *(f"{region.name}.{index}" for region in regions if region.einsums for index in region.fused.order)}
    for name, _ in schedule.tiles:
        if name not in stated:
            raise ScheduleError(
                f"tiles of `{name}`: no region has this index", hint=did_you_mean(name, stated), span=schedule.place("tile", name)
            )
    return [replace(region, tiles=_tiles(region, schedule)) if region.einsums else region for region in regions]


def _tiles(region: CompiledRegion, schedule: Schedule) -> tuple[RegionTile, ...]:
    """Return the tiles of a region; none if the schedule states none, or if all coordinates are one tile."""
    sizes = dict(schedule.tiles)
    own = [index for index in region.fused.order if f"{region.name}.{index}" in sizes]
    named = own or [index for index in region.fused.order if index in sizes]
    if not named:
        return ()
    index, *others = named
    name = f"{region.name}.{index}" if own else index
    why = f"so are those of `{others[0]}`, and a region has one loop over tiles" if others else tile_refusal(region, index)
    if why is not None:
        raise ScheduleError(
            f"tiles of `{index}` in region `{region.name}`: {why}",
            hint=_possible(region, index, sizes[name]),
            span=schedule.place("tile", name),
        )
    extent, size = region.fused.sizes[index], sizes[name]
    if size >= extent:
        return ()
    tiles: dict[int, RegionTile] = {}
    for first in range(0, extent, size):
        length = min(size, extent - first)
        if first == 0 or length < size:
            part = restricted(region.fused, index, length)
            graph = graph_of(region, part, schedule)
        tiles[first] = RegionTile(index, first, length, part, graph, {}, {})
    if structure(tiles[0].graph) != structure(region.graph):
        raise ScheduleError(
            f"tiles of `{index}` in region `{region.name}`: its graph is another one for {size} coordinates",
            hint="take larger tiles",
            span=schedule.place("tile", name),
        )
    return tuple(replace(tile, graph=replace(tile.graph, tensors=tuple(_as_whole(region, tile)))) for tile in tiles.values())


def _possible(region: CompiledRegion, index: str, size: int) -> str:
    """Return a hint with the indices over which a region can be tiled, where `index` is refused."""
    possible = [other for other in region.fused.order if tile_refusal(region, other) is None]
    if not possible:
        return f"`{region.name}` can be tiled over no index; other regions are named as `--tile REGION.{index}={size}`"
    others = " or ".join(f"`{index}`" for index in possible)
    return f"`{region.name}` can be tiled over {others}: `--tile {region.name}.{possible[0]}={size}`"


def fitting_tiles(region: CompiledRegion, name: str, size: int, room: int, word: int) -> str:
    """Return a hint with the tiles with which a tensor of a graph of a region fits into a scratchpad, '' if none does. It has `size`
    bytes, and is to lie in `room` bytes in words of `word`. If the region runs in tiles, the tensor is one of a tile."""
    fused, sizes = region.fused, dict(region.fused.sizes)
    indices = [index for index in fused.order if tile_refusal(region, index) is None]
    if region.tiles:
        tile = region.tiles[0]
        moved = next((each[name] for part in region.tiles for each in (part.ahead, part.behind) if name in each), "")
        name, room, indices = tile.region.source(moved or name), room + (size if moved else 0), [tile.index]
        sizes[tile.index] = tile.size
    own = {*(index for view in fused.views if view.tensor == name for index in view.indices)}
    own |= {index for result in fused.results if result.name == name for index in result.indices}
    fitting = [(index, room // 2 // word * word * sizes[index] // size) for index in indices if index in own and size]
    tiles = [
        f"{most:,} of {sizes[index]:,} coordinates of `{index}` fit: `--tile {region.name}.{index}={most}`"
        for index, most in fitting
        if 0 < most < sizes[index]
    ]
    return f"two tiles of {', or of '.join(tiles)}" if tiles else ""


def tile_refusal(region: CompiledRegion, index: str) -> str | None:
    """Return why a region cannot run in tiles of an index, None if it can."""
    fused = region.fused
    if any(type.like for type in (*fused.stored.values(), *(result.tensor for result in fused.results))):
        return "it has tensors that share the places of another one, and a part of one has other places"
    if any(index in node.over for node in reductions(*fused.trees)):
        return "it is reduced, so that a tile has a part of each sum"
    if any(index in node.over for node in selections(*fused.trees)):
        return "a `keep` compares along it"
    if index in fused.blocks:
        return "it runs over blocks"
    lacking = next((result.name for result in fused.results if index not in result.indices), None)
    return None if lacking is None else f"the result `{lacking}` lacks it"


def _as_whole(region: CompiledRegion, tile: RegionTile) -> Iterator[TensorDecl]:
    """Yield the declarations of a tile, with the reuse buffers and the preloads of those of the whole region."""
    whole = region.graph.declared
    for tensor in tile.graph.tensors:
        of = whole.get(tile.region.source(tensor.name), tensor)  # a dimension of another size is there in the tile alone
        yield replace(tensor, resident=of.resident, buffer=of.buffer, preload=of.preload)


def place_tiles(region: CompiledRegion) -> CompiledRegion:
    """Return a region with the places of its tensors in its tiles, too."""
    tiles = region.tiles
    return replace(region, tiles=tuple(_placed(region, tiles, number) for number in range(len(tiles))))


def is_cut(region: CompiledRegion, name: str) -> bool:
    """Return whether a tensor of a region has the index of its tiles, so that a tile has a part of it."""
    parts = region.tiles[0].region.tensors if region.tiles else {}
    return bool(region.tiles) and (name in region.graph.outputs or any(part.source == name for part in parts.values()))


def _placed(region: CompiledRegion, tiles: Sequence[RegionTile], number: int) -> RegionTile:
    """Return a tile whose tensors lie where those of the whole region do."""
    tile, last = tiles[number], len(tiles) - 1
    places: dict[str, Transfer] = {name: of.scratchpad for name, of in region.graph.declared.items() if of.scratchpad}
    tensors = list[TensorDecl]()
    for tensor in tile.graph.tensors:
        transfer: Transfer = places.get(tile.region.source(tensor.name), "")
        at_end = last if tensor.name in region.graph.outputs else 0
        if transfer and number != at_end:
            transfer = "kept"
        tensors.append(replace(tensor, scratchpad=transfer))
    ahead, behind = dict[str, str](), dict[str, str]()
    if number < last:
        for tensor in tiles[number + 1].graph.tensors:
            if tensor.name in tile.region.tensors and tile.region.source(tensor.name) in places:
                ahead[f"{tensor.name}.next"] = tensor.name
                tensors.append(replace(tensor, name=f"{tensor.name}.next", scratchpad="ahead", outer=None))
    if number > 0:
        for tensor in tiles[number - 1].graph.tensors:
            if tensor.name in region.graph.outputs and tensor.name in places:
                behind[f"{tensor.name}.last"] = tensor.name
                tensors.append(replace(tensor, name=f"{tensor.name}.last", scratchpad="behind", outer=None))
    return replace(tile, graph=replace(tile.graph, tensors=tuple(tensors)), ahead=ahead, behind=behind)
