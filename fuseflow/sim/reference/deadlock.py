"""Description of a stuck network: which process waits for which token or slot, and which depth of one FIFO would clear it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fuseflow.samml.nodes import Edge
from fuseflow.sim.outcome.deadlock import AwaitedResource, AwaitedSlot, AwaitedToken, AwaitedWorkspace, Deadlock, WaitingProcess
from fuseflow.sim.outcome.statistics import NodeStatistics
from fuseflow.sim.reference.build import Network
from fuseflow.sim.reference.memory_ports import Answer, PreloadAnswer, Touch
from fuseflow.sim.reference.timed_process import Fifo, Process, Slots


def describe_deadlock(
    network: Network,
    stuck: Sequence[Process],
    statistics: Callable[[Network], tuple[NodeStatistics, ...]],
    rebuild: Callable[[Mapping[Edge, int]], Network],
    run: Callable[..., list[Process]],
    depths: Mapping[Edge, int] | None = None,
) -> Deadlock:
    """Return the deadlock of a network. `stuck` are its processes that have not ended. `depths` are the depths of FIFOs that
    differ from the graph, `rebuild` makes a network with given depths anew, and `run` runs a network."""
    extra_depths = depths or {}

    def smallest(edges: Sequence[Edge]) -> int | None:
        return smallest_depth(edges, rebuild(extra_depths), run)

    def deepened(more: Mapping[Edge, int]) -> Deadlock | None:
        _forget_cycles(network)
        for edge, depth in more.items():
            slots = network.fifos[edge].slots
            while slots is not None and slots.depth < depth:
                slots.grow()
        still_stuck = run(network)
        return (
            describe_deadlock(network, still_stuck, statistics, rebuild, run, {**extra_depths, **more}) if still_stuck else None
        )

    return Deadlock(waiting_processes(stuck), () if extra_depths else statistics(network), smallest, deepened)


def waiting_processes(stuck: Sequence[Process]) -> tuple[WaitingProcess, ...]:
    """Return each process that cannot fire, with the resource that it waits for."""
    place = {id(process): k for k, process in enumerate(stuck)}
    return tuple(WaitingProcess(process.node.name, *_awaited(process, place)) for process in stuck)


def smallest_depth(edges: Sequence[Edge], network: Network, run: Callable[..., list[Process]]) -> int | None:
    """Return the smallest depth of FIFOs that are equally deep, others unchanged, with which the network runs to its end, or None if
    there is none.

    The network cannot be used afterwards. Its cycles have no meaning, because an added slot may be filled before the last event.
    """
    _forget_cycles(network)
    growing = [slots for edge in edges if (slots := network.fifos[edge].slots) is not None]
    return None if run(network, growing=growing) else max(slots.depth for slots in growing)


def _forget_cycles(network: Network) -> None:
    if network.controller is not None:
        network.controller.memory.forget_cycles()


def _awaited(process: Process, place: dict[int, int]) -> tuple[AwaitedResource, int | None]:
    waits = process.waits
    match waits:
        case Fifo(edge=Edge(input=k), writer=writer):
            return AwaitedToken(k, writer.node.name), place.get(id(writer))
        case Fifo(writer=writer):
            return AwaitedWorkspace(), place.get(id(writer))
        case Slots(edge=Edge() as edge, depth=depth, reader=reader):
            return AwaitedSlot(edge, depth), place.get(id(reader))
        case Slots(reader=reader):
            return AwaitedWorkspace(), place.get(id(reader))
        case Answer() | PreloadAnswer() | Touch():
            return AwaitedWorkspace(), place.get(id(waits.on))
    raise AssertionError(f"`{process.node.name}` waits for nothing of the model")
