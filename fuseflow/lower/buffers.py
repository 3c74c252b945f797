"""The reuse buffers and the preloads that a schedule states for ports that read a tensor, or a view or a permuted copy of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fuseflow.errors import ScheduleError, did_you_mean
from fuseflow.fusion import FusedRegion
from fuseflow.lower.partition import PartitionedProgram
from fuseflow.lower.views import source_of
from fuseflow.machine.machine import Machine
from fuseflow.memory.buffered_ports import buffered_ports, preloaded_readers
from fuseflow.memory.settings import TimedMemory
from fuseflow.samml.nodes import Graph, Load, TensorDecl
from fuseflow.samml.verify import PRELOAD_HINT
from fuseflow.schedule import Schedule


def with_buffers(graph: Graph, partitioned: PartitionedProgram, fused: FusedRegion) -> Graph:
    """Return the graph of a region with the reuse buffers and the preloads of its inputs that the schedule states."""
    sizes, ports = dict(partitioned.schedule.buffers), dict(partitioned.schedule.preloads)
    if not (sizes or ports):
        return graph

    def buffered(tensor: TensorDecl) -> TensorDecl:
        if tensor.name in graph.outputs or tensor.resident:
            return tensor
        names = tuple(buffer_names(tensor.name, partitioned, fused))
        preload = next((ports[name] for name in names if name in ports), 0)
        size = next((sizes[name] for name in names if name in sizes), 0)
        return replace(tensor, preload=preload, buffer=0 if preload else size)

    return replace(graph, tensors=tuple(map(buffered, graph.tensors)))


def without_buffers(graph: Graph) -> Graph:
    """Return the graph without reuse buffers and preloads: they are added at the end of lowering, and public primitives cannot
    have them."""
    return replace(graph, tensors=tuple(replace(tensor, buffer=0, preload=0) for tensor in graph.tensors))


def refuse_preloads(partitioned: PartitionedProgram, graphs: Sequence[Graph]) -> None:
    """Raise `ScheduleError` for a preload of a tensor that cannot be preloaded, or that no region reads from memory."""
    schedule, program = partitioned.schedule, partitioned.original
    if not schedule.preloads:
        return
    read = read_tensors(partitioned, graphs)
    buffers = dict(schedule.buffers)
    for name, _ in schedule.preloads:
        if name in schedule.resident or name in buffers:
            message = "it is resident" if name in schedule.resident else "it has a reuse buffer"
            hint = "leave one of them out"
        elif name not in read:
            known = name in program.declared or name in program.defined
            message = "no region reads it from memory" if known else "the program has no such tensor"
            hint = "only what a region reads can be read ahead" if known else did_you_mean(name, program.declared)
        else:
            continue
        raise ScheduleError(f"`{name}` cannot be preloaded: {message}", hint=hint, span=schedule.place("preload", name))
    for tensor in (tensor for graph in graphs for tensor in graph.tensors if tensor.preload):
        if any(tensor.stored_arrays(level) for level in range(len(tensor.format.levels))):
            raise ScheduleError(
                f"`{tensor.name}` cannot be preloaded: it is stored as {tensor.format.short()}", hint=PRELOAD_HINT
            )


def buffer_names(tensor: str, partitioned: PartitionedProgram, fused: FusedRegion) -> Iterator[str]:
    """Yield the names by which a schedule may state the buffer of a tensor that a region reads: its name, then, if it is a view
    or a permuted copy, the names of its source, of the source of that, and so on."""
    sources = {copy.name: copy.source for copy in fused.copies} | {
        name: source_of(view).tensor for name, view in partitioned.views.items()
    }
    while True:
        yield from dict.fromkeys((tensor, partitioned.user_names.get(tensor, tensor)))
        if tensor not in sources:
            return
        tensor = sources[tensor]


def refuse_unknown_buffers(partitioned: PartitionedProgram, graphs: Iterable[Graph]) -> None:
    """Raise `ScheduleError` for a buffer of a tensor that no region reads from memory, whose entry would be silently ignored."""
    schedule = partitioned.schedule
    if not schedule.buffers:
        return
    program = partitioned.original
    read = read_tensors(partitioned, graphs)
    for name, _ in schedule.buffers:
        if name in schedule.resident:
            message, hint = "it is resident, and never asked of the memory", "leave one of them out"
        elif name in read:
            continue
        elif name not in program.declared:
            message, hint = "the program has no such tensor", did_you_mean(name, program.declared)
        elif name in program.outputs:
            message, hint = "it is an output, and no region reads it", "only what is read can be read again"
        elif name in program.defined:
            message, hint = "no region reads it from memory", "it is passed on inside of a region; cut it there (`--fuse`)"
        else:
            message, hint = "nothing reads it", "leave it out"
        raise ScheduleError(f"`{name}` cannot have a reuse buffer: {message}", hint=hint, span=schedule.place("buffer", name))


def preload_notices(schedule: Schedule, graphs: Sequence[Graph], machine: Machine) -> tuple[str, ...]:
    """Return sentences about preloads without effect: on a machine whose memory answers at once, and of tensors that are only
    read in order."""
    if not schedule.preloads:
        return ()
    names = dict.fromkeys(tensor.name for graph in graphs for tensor in graph.tensors if tensor.preload)
    if not isinstance(machine.memory, TimedMemory):
        stated = ", ".join(f"`{name}`" for name, _ in schedule.preloads)
        return (f"the memory of {machine.name} answers at once, so it has no effect that {stated} is preloaded",)
    read = {
        node.tensor
        for graph in graphs
        for node in graph.nodes
        if isinstance(node, Load) and node.name in preloaded_readers(graph)
    }
    return tuple(f"it has no effect that `{name}` is preloaded: it is read once, in order" for name in names if name not in read)


def buffer_notices(schedule: Schedule, graphs: Iterable[Graph], machine: Machine) -> tuple[str, ...]:
    """Return sentences about buffers without effect: on a machine whose memory answers at once, and of tensors that are only read
    in order."""
    if not schedule.buffers:
        return ()
    if not isinstance(machine.memory, TimedMemory):
        names = ", ".join(f"`{name}`" for name, _ in schedule.buffers)
        return (f"the memory of {machine.name} answers at once, so the reuse buffers of {names} have no effect",)
    used: set[str] = set()
    idle: dict[str, None] = {}
    for graph in graphs:
        ports = {array[0] for _, array in buffered_ports(graph, machine.memory.line)}
        used |= ports
        idle |= dict.fromkeys(tensor.name for tensor in graph.tensors if tensor.buffer and tensor.name not in ports)
    return tuple(
        f"the reuse buffer of `{name}` has no effect: every line of it is asked for once, in order"
        for name in idle
        if name not in used
    )


def read_tensors(partitioned: PartitionedProgram, graphs: Iterable[Graph]) -> set[str]:
    """Return the tensors that regions read, by the names of the user, and the tensors of which they read views."""
    read = {name for graph in graphs for name in graph.inputs}
    sources = {name: source_of(view).tensor for name, view in partitioned.views.items()}
    for name in [*read]:
        while name in sources:
            name = sources[name]
            read.add(name)
    return read | {partitioned.user_names.get(name, name) for name in read}
