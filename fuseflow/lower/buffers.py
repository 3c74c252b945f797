"""The memory that a schedule states for tensors: resident ones, and the reuse buffers and the preloads of ports that read a tensor, or a
view or a permuted copy of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fuseflow.errors import ScheduleError, did_you_mean
from fuseflow.fusion import FusedRegion
from fuseflow.lower.partition import PartitionedProgram
from fuseflow.machine.machine import Machine
from fuseflow.memory.buffer_assignment import buffered_ports, preloaded_readers
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
    """Return the graph without buffers and preloads: they are added last, and public primitives cannot have them."""
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
        raise _refusal(schedule, "preload", name, message, hint)
    for tensor in (tensor for graph in graphs for tensor in graph.tensors if tensor.preload):
        if any(tensor.stored_arrays(level) for level in range(len(tensor.format.levels))):
            raise ScheduleError(
                f"`{tensor.name}` cannot be preloaded: it is stored as {tensor.format.short()}", hint=PRELOAD_HINT
            )


def buffer_names(tensor: str, partitioned: PartitionedProgram, fused: FusedRegion) -> Iterator[str]:
    """Yield the names by which a schedule may state the buffer of a tensor that a region reads: its name, then, if it is a view
    or a permuted copy, the names of its source, of the source of that, and so on."""
    sources = {copy.name: copy.source for copy in fused.copies} | partitioned.sources
    while True:
        yield from dict.fromkeys((tensor, partitioned.user_names.get(tensor, tensor)))
        if tensor not in sources:
            return
        tensor = sources[tensor]


def refuse_unknown_buffers(partitioned: PartitionedProgram, graphs: Iterable[Graph]) -> None:
    """Raise `ScheduleError` for a buffer of a tensor that no region reads from memory, whose entry would be silently ignored."""
    schedule, program = partitioned.schedule, partitioned.original
    read = read_tensors(partitioned, graphs) if schedule.buffers else set()
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
        raise _refusal(schedule, "buffer", name, message, hint)


def preload_notices(schedule: Schedule, graphs: Sequence[Graph], machine: Machine) -> tuple[str, ...]:
    """Return sentences about preloads without effect: where the memory answers at once, and of tensors read in order alone."""
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


def place_notices(schedule: Schedule, machine: Machine) -> tuple[str, ...]:
    """Return a sentence about places without effect, where the memory answers at once."""
    if not schedule.memories or isinstance(machine.memory, TimedMemory):
        return ()
    names = ", ".join(f"`{name}`" for name, _ in schedule.memories)
    return (f"the memory of {machine.name} answers at once, so it has no effect that {names} is placed in the scratchpad",)


def buffer_notices(schedule: Schedule, graphs: Iterable[Graph], machine: Machine) -> tuple[str, ...]:
    """Return sentences about buffers without effect: where the memory answers at once, and of tensors read in order alone."""
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
    for view, source in reversed(partitioned.sources.items()):
        if view in read:
            read.add(source)
    return read | {partitioned.user_names.get(name, name) for name in read}


def resident_tensors(partitioned: PartitionedProgram) -> frozenset[str]:
    """Return the names of the resident tensors, and of their views, which are the same memory."""
    names = set(partitioned.schedule.resident)
    for view, source in partitioned.sources.items():
        if source in names:
            names.add(view)
    return frozenset(names)


def refuse_computed_residents(partitioned: PartitionedProgram) -> None:
    """Raise `ScheduleError` if a resident tensor of the schedule is no input of the program."""
    program, schedule = partitioned.original, partitioned.schedule
    inputs = [tensor.name for tensor in program.inputs]
    for name in schedule.resident:
        if name in inputs:
            continue
        message, hint = "the program has no such input", did_you_mean(name, inputs)
        if name in program.defined:
            message, hint = "it is computed, and the configuration is loaded before anything is", "only inputs can be resident"
        raise _refusal(schedule, "resident", name, message, hint)


def refuse_resident_copy(partitioned: PartitionedProgram, region: FusedRegion) -> None:
    """Raise `ScheduleError` if a region permutes a resident tensor: other regions would read the copy from memory."""
    for name in sorted(resident_tensors(partitioned) & region.stored.keys()):
        message = f"it is not read as it is stored, but from the permuted copy `{region.name}`, which lies in memory"
        hint = "store it in the order of the loops (`--format`), or order these (`--order`)"
        raise _refusal(partitioned.schedule, "resident", name, message, hint)


def refuse_unread_residents(partitioned: PartitionedProgram, graphs: Iterable[Graph]) -> None:
    """Raise `ScheduleError` for a resident tensor that no region reads, whose entry would be silently ignored."""
    read = read_tensors(partitioned, graphs)
    for name in partitioned.schedule.resident:
        if name not in read:
            raise _refusal(partitioned.schedule, "resident", name, "nothing reads it", "leave it out")


def _refusal(schedule: Schedule, section: str, name: str, message: str, hint: str) -> ScheduleError:
    """Return the error for the entry of a tensor in a section of the schedule."""
    place = {"resident": "be resident", "buffer": "have a reuse buffer", "preload": "be preloaded"}[section]
    return ScheduleError(f"`{name}` cannot {place}: {message}", hint=hint, span=schedule.place(section, name))
