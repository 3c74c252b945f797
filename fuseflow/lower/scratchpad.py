"""The tensors that a schedule places in the scratchpad, as the graphs of all regions state them.

    place: {W: scratchpad, T: scratchpad}          A[i, k] W[k, j] -> T[i, j]  @first        A[i, k] T[k, j] -> Y[i, j]  @second

`W` is loaded before `first` begins, and `T` is written into the scratchpad and stays there for `second`. A region that reads a tensor
of which the region before it did not use the place loads it again. A result is stored when its region has ended, if it is an output
of the program, or if a later region finds it in the scratchpad no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fuseflow.errors import ScheduleError, did_you_mean
from fuseflow.lower.buffers import buffer_names, read_tensors
from fuseflow.lower.partition import PartitionedProgram
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.tiles import is_cut, place_tiles
from fuseflow.samml.nodes import TensorDecl, Transfer


def with_places(regions: Sequence[CompiledRegion], partitioned: PartitionedProgram) -> list[CompiledRegion]:
    """Return the regions of a program, in order, with the tensors in the scratchpad that the schedule places there. Raises
    `ScheduleError` for a tensor that cannot lie there."""
    placed = frozenset(name for name, _ in partitioned.schedule.memories)
    if not placed:
        return list(regions)
    refuse_places(partitioned, regions)
    uses = _Uses.of(regions, partitioned, placed)
    graphs = (
        replace(region.graph, tensors=tuple(uses.declared(number, t) for t in region.graph.tensors))
        for number, region in enumerate(regions)
    )
    return [place_tiles(replace(region, graph=graph)) for region, graph in zip(regions, graphs, strict=True)]


@dataclass(frozen=True, slots=True)
class _Uses:
    """The uses of the scratchpad. `read` and `written` have for each region the tensors in the scratchpad that it reads and writes, by
    the name in its graph: each with the name of the tensor of which it may be a view. `from_memory` has for each region the tensors
    that it reads from the memory, and `outputs` has those that are in the memory at the end. `cut` has for each region the tensors of
    which a tile has a part: these are in the memory before and after it."""

    read: tuple[Mapping[str, str], ...]
    written: tuple[Mapping[str, str], ...]
    from_memory: tuple[frozenset[str], ...]
    outputs: frozenset[str]
    cut: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, regions: Sequence[CompiledRegion], partitioned: PartitionedProgram, placed: frozenset[str]) -> _Uses:
        def there(region: CompiledRegion, names: Iterable[str]) -> dict[str, str]:
            chains = {name: buffer_names(name, partitioned, region.fused) for name in names}
            return {name: partitioned.shown(name) for name, chain in chains.items() if not placed.isdisjoint(chain)}

        # a copy reads its source once, in order, and its readers find the copy in the scratchpad
        readers = {copy.name: region for region in regions for copy in region.fused.copies}
        read = tuple(there(region, region.graph.inputs) if region.einsums else {} for region in regions)
        written = tuple(there(readers.get(region.name, region), region.graph.outputs) for region in regions)
        from_memory = tuple(
            frozenset(partitioned.shown(name) for name in region.graph.inputs if name not in own)
            for region, own in zip(regions, read, strict=True)
        )
        cut = tuple(
            frozenset(partitioned.shown(name) for name in region.graph.declared if is_cut(region, name)) for region in regions
        )
        return cls(read, written, from_memory, frozenset(partitioned.shown(name) for name in partitioned.program.outputs), cut)

    def declared(self, number: int, tensor: TensorDecl) -> TensorDecl:
        """Return the declaration of a tensor in a region with its place in the scratchpad, if it has one."""
        transfer: Transfer = ""
        if tensor.name in self.written[number]:
            transfer = "moved" if self._is_stored(number, self.written[number][tensor.name]) else "kept"
        elif tensor.name in self.read[number]:
            there = (
                self._has(number - 1, self.read[number][tensor.name]) and self.read[number][tensor.name] not in self.cut[number]
            )
            transfer = "kept" if there else "moved"
        return replace(tensor, scratchpad=transfer) if transfer else tensor

    def _has(self, number: int, tensor: str) -> bool:
        """Return whether a region, if there is one, has a tensor in the scratchpad."""
        return number >= 0 and tensor in {*self.read[number].values(), *self.written[number].values()} - self.cut[number]

    def _is_stored(self, number: int, tensor: str) -> bool:
        """Return whether a result of a region must be in the memory, too."""
        if tensor in self.cut[number]:
            return True
        last = number
        while last + 1 < len(self.read) and tensor in {*self.read[last + 1].values()} - self.cut[last + 1]:
            last += 1
        later = (tensor in self.read[k].values() for k in range(last + 1, len(self.read)))
        return tensor in self.outputs or any(tensor in names for names in self.from_memory) or any(later)


def refuse_places(partitioned: PartitionedProgram, regions: Sequence[CompiledRegion]) -> None:
    """Raise `ScheduleError` for a tensor in the scratchpad that is resident, preloaded or has a buffer, or that is in no memory."""
    schedule, program = partitioned.schedule, partitioned.original
    graphs = [region.graph for region in regions]
    written = {name for graph in graphs for name in graph.outputs}
    known = read_tensors(partitioned, graphs) | written | {partitioned.shown(name) for name in written}
    others = {
        "is resident": schedule.resident,
        "has a reuse buffer": dict(schedule.buffers),
        "is preloaded": dict(schedule.preloads),
    }
    for name, _ in schedule.memories:
        also = next((what for what, names in others.items() if name in names), None)
        if also is not None:
            message, hint = f"it {also}", "leave one of them out"
        elif name in known:
            continue
        elif name in program.defined:
            message, hint = "it is passed on inside of a region, and is in no memory", "cut the program there (`--fuse`)"
        elif name in program.declared:
            message, hint = "nothing reads it", "leave it out"
        else:
            message, hint = "the program has no such tensor", did_you_mean(name, known)
        raise ScheduleError(f"`{name}` cannot be placed: {message}", hint=hint, span=schedule.place("place", name))
