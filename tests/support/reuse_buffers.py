"""Random reuse buffers of graphs and tensors, and a model of them that shares no code with the memory: an ordered dictionary."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from random_graphs.case import Case

from fuseflow.memory.memory_interface import Controller
from fuseflow.memory.settings import TimedMemory, controller
from fuseflow.sim.reference.execute import execute

Requests = list[tuple[int, int, int]]
"""The requests of a port in order: line, cycle of the request, cycle of the answer."""


def in_graph(case: Case, seed: int, share: float = 0.7) -> Case:
    """The case with buffers of one line to hundreds for some of its inputs, at a memory that takes time, with lines of 32 bytes."""
    rng, graph = random.Random(f"buffer {seed}"), case.graph
    assert isinstance(case.machine.memory, TimedMemory)
    memory = case.machine.memory.model_copy(update={"line": 32})
    case = replace(case, machine=case.machine.model_copy(update={"memory": memory}))
    sizes = {
        name: memory.line * rng.choice((1, 1, 2, 3, rng.randint(1, 16), rng.randint(1, 400)))
        + rng.choice((0, 0, rng.randrange(32)))
        for name in graph.inputs
        if rng.random() < share and not graph.declared[name].resident
    }
    return replace(case, graph=replace(graph, tensors=tuple(replace(t, buffer=sizes.get(t.name, 0)) for t in graph.tensors)))


def drawn(names: Sequence[str], seed: int) -> tuple[tuple[str, int], ...]:
    """Buffers of some of these tensors, one at least: of a line of the machine `rda` up to all that there is."""
    rng = random.Random(f"buffer {seed}")
    chosen = rng.sample(names, rng.randint(1, len(names)) if names else 0)
    return tuple((name, rng.choice((64, 128, 200, 64 * rng.randint(1, 60), 65536))) for name in sorted(chosen))


def hits(lines: Iterable[int], size: int) -> int:
    """How many requests ask for one of the `size` lines that were asked for last."""
    held: OrderedDict[int, None] = OrderedDict()
    count = 0
    for line in lines:
        if line in held:
            count += 1
            held.move_to_end(line)
            continue
        if len(held) == size:
            held.popitem(last=False)
        held[line] = None
    return count


def traced(case: Case) -> tuple[Any, Controller, dict[tuple[str, str], Requests]]:
    """A run on the reference: its outcome, its controller, and the requests of each port, which is named by its node and array."""
    made: list[Controller] = []
    issued: dict[int, Requests] = {}

    def attach() -> Controller:
        one = controller(case.machine.memory, case.machine.clock_ghz)
        assert one is not None
        make = one.make

        def noting(ports: int) -> Any:
            memory: Any = make(ports)
            issue = memory.issue

            def note(port: int, address: int, size: int, write: bool, cycle: int) -> int:
                number = issue(port, address, size, write, cycle)
                issued.setdefault(port, []).append((address // size, cycle, number))
                return int(number)

            memory.issue = note
            return memory

        one.make = noting
        made.append(one)
        return one

    outcome = execute(case.graph, case.tensors, case.machine, attach=attach)
    (one,) = made
    requests = {
        (port.node, port.kind): [(line, cycle, one.memory.answer_cycle(k, n)) for line, cycle, n in issued.get(k, [])]
        for k, port in enumerate(one.ports)
    }
    return outcome, one, requests
