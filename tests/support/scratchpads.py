"""Random places of tensors in a scratchpad."""

from __future__ import annotations

import random
from dataclasses import replace

from random_graphs.case import Case

from fuseflow.memory.scratchpad_settings import Scratchpad
from fuseflow.samml.nodes import Transfer


def random_scratchpad(rng: random.Random) -> Scratchpad:
    """A scratchpad in which everything finds room, with one bank to sixteen of one port to three."""
    return Scratchpad(
        bytes=1 << 22,
        banks=rng.choice((1, 1, 2, 3, 16)),
        ports=rng.choice((1, 1, 2, 3)),
        latency=rng.choice((1, 1, 2, 4, 17, 40)),
        bytes_a_cycle=rng.choice((4, 8, 16, 64, 256)),
    )


def in_graph(case: Case, seed: int, share: float = 0.6) -> Case:
    """The case with some of its tensors in a scratchpad, some of which are moved."""
    rng, graph = random.Random(f"scratchpad {seed}"), case.graph
    places: dict[str, Transfer] = {
        tensor.name: rng.choice(("kept", "moved", "moved"))
        for tensor in graph.tensors
        if not tensor.resident and rng.random() < share
    }
    tensors = [
        replace(tensor, scratchpad=places[tensor.name], buffer=0, preload=0) if tensor.name in places else tensor
        for tensor in graph.tensors
    ]
    given = dict(case.tensors)
    for tensor in graph.tensors:  # which are moved while the graph runs, for others before it and behind it
        if tensor.name in case.tensors and "@" not in tensor.name and tensor.outer is None and rng.random() < 0.3:
            transfer: Transfer = rng.choice(("ahead", "behind"))
            other = replace(tensor, name=f"{tensor.name}.{transfer}", scratchpad=transfer, buffer=0, preload=0, resident=False)
            tensors.append(other)
            given[other.name] = case.tensors[tensor.name]
    machine = case.machine.model_copy(update={"scratchpad": random_scratchpad(rng)})
    return replace(case, machine=machine, tensors=given, graph=replace(graph, tensors=tuple(tensors)))
