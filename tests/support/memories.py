"""Random memories for the machines of random graphs, and what must be true of every run at them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import yaml
from engines import Found
from pydantic import ValidationError
from random_graphs.case import Case

from fuseflow.memory import table_files
from fuseflow.memory.mapping import CHANNEL_COUNTS, MAPPINGS
from fuseflow.memory.settings import LINES, RANKS, ComalFixedMemory, DramMemory, FixedMemory, MemorySettings
from fuseflow.memory.table_files import preset, preset_names
from fuseflow.sim import Machine, load_machine
from fuseflow.sim.outcome.statistics import Outcome

CLOCKS = ((1.0, 1.0), (1.0, 1.0), (1.0, 0.5), (1.0, 2.0), (2.0, 1.5), (1.5, 2.0), (1.6, 0.9), (0.1, 2.0), (1.0, 0.05))
"""Of the machine, and of its memory."""
TWO_PROCESSES = ("accumulate", "permute", "select")
"""Their cycles are those of both."""


def without_refresh(**settings: Any) -> Machine:
    """The machine `rda` at a memory that never pauses: replicates of a sample may be short there."""
    return Machine.model_validate({**load_machine("rda").model_dump(), "memory": {"model": "comal_fixed"}, **settings})


def random_memory(rng: random.Random, clock_ghz: float = 1.0) -> MemorySettings:
    """One of ten is the fixed pipe. Four of five of the others are HBM2 of that clock, and the fifth is another DRAM."""
    ports = {
        "line": rng.choice((32, 64, 64, 128, 256, 4096)),
        "prefetch": rng.choice((0, 1, 3, 8)),
        "outstanding": rng.choice((1, 2, 5, 32, 1 << 20)),
    }
    if rng.random() < 0.1:
        return ComalFixedMemory(**ports)
    channels, mapping = rng.choice(CHANNEL_COUNTS), rng.choice(list(MAPPINGS))
    if rng.random() < 0.2:
        return random_dram(rng, channels, mapping, {**ports, "line": max(64, ports["line"])})
    return DramMemory(channels=channels, mapping=mapping, clock_ghz=clock_ghz, **ports)


def random_dram(rng: random.Random, channels: int, mapping: str, ports: dict[str, int]) -> DramMemory:
    """A DRAM that is not HBM2, with any of the refreshes that it has."""
    name = rng.choice([name for name in preset_names() if name != "hbm2"])
    refresh = rng.choice([table.refresh for table in preset(name).tables])
    queue = rng.choice((None, None, 1, 8, 128))
    settings = {"model": name, "channels": channels, "mapping": mapping, "refresh": refresh, "queue": queue}
    return DramMemory.model_validate({**settings, **ports})


def any_dram(rng: random.Random) -> DramMemory:
    """A DRAM of any preset, HBM2 too, with any refresh, queues, ranks and mapping. One of four has a table of its own, which has other
    sizes, latencies and distances than the preset that is its base."""
    while True:
        try:
            return DramMemory.model_validate(_drawn_settings(rng, rng.choice(preset_names())))
        except ValidationError:  # such as ranks of a memory that has none, or a RD before its row is open
            continue


def _drawn_settings(rng: random.Random, name: str) -> dict[str, Any]:
    """Settings of a memory, which may be impossible."""
    table = preset(name).table()
    settings: dict[str, Any] = {
        "channels": rng.choice(CHANNEL_COUNTS),
        "refresh": rng.choice([table.refresh for table in preset(name).tables]),
        "queue": rng.choice(
            (None, None, None, 1, 8, 128, *({"read": rng.randint(1, 40), "write": rng.randint(1, 40)} for _ in range(2)))
        ),
        "ranks": rng.choice((None, *RANKS)) if "rank" in dict(table.levels) else None,
        "mapping": rng.choice([*MAPPINGS, *MAPPINGS, _drawn_mapping(rng, [name for name, _ in table.levels])]),
        "line": rng.choice([line for line in (*LINES, 64, 64, 128) if line >= table.transaction]),
        "prefetch": rng.choice((0, 1, 3, 8)),
        "outstanding": rng.choice((1, 2, 5, 32, 1 << 20)),
    }
    return settings | ({"table": _drawn_table(rng, name)} if rng.random() < 0.25 else {"model": name})


def _drawn_mapping(rng: random.Random, levels: list[str]) -> dict[str, Any]:
    """A mapping of one's own: fields in any order, the lowest bits of the column first, and one field xor-ed with another."""
    fields = [*levels, "channel", "column", "row"]
    target = rng.choice((*levels, "channel"))
    return {
        "bits": [f"column {rng.randint(0, 2)}", *rng.sample(fields, len(fields))],
        "xor": {target: rng.choice(("row", "row 4", "column 1"))} if rng.random() < 0.7 else {},
    }


def _drawn_table(rng: random.Random, name: str) -> dict[str, Any]:
    """A table on the base of a preset, with other clocks, latencies, sizes and some distances of half to twice the cycles."""
    base = yaml.safe_load(table_files._preset_text(name))
    smaller = rng.random() < 0.3
    table: dict[str, Any] = {
        "base": name,
        "cycle_ps": rng.choice((base["cycle_ps"], 250, 625, 1000, 2500, 7000)),
        "read_latency": rng.choice((base["read_latency"], rng.randint(1, 60))),
        "levels": {level: rng.choice((1, 2)) if smaller else size for level, size in base["levels"].items()},
    }
    for _ in range(rng.randint(0, 6)):
        scope = rng.choice(list(base["distances"]))
        pair, cycles = rng.choice(list(base["distances"][scope].items()))
        table.setdefault("distances", {}).setdefault(scope, {})[pair] = rng.randint(cycles // 2, 2 * cycles)
    return table


def random_fixed_memory(rng: random.Random) -> FixedMemory:
    """A memory that answers 1 to 200 cycles later, for ports with 1 to 64 lines on their way."""
    return FixedMemory(
        latency=rng.choice((1, 2, 3, rng.randint(1, 200), rng.randint(1, 200))),
        outstanding=rng.choice((1, 2, rng.randint(1, 64), rng.randint(1, 64))),
        line=rng.choice((32, 64, 64, 256)),
        prefetch=rng.choice((0, 1, 3, 8)),
    )


def at_memory(case: Case, seed: int) -> Case:
    """The case on a machine whose memory takes time; the same graph and tensors."""
    rng = random.Random(f"memory {seed}")
    machine_ghz, memory_ghz = rng.choice(CLOCKS)
    changed = {"clock_ghz": machine_ghz, "memory": random_memory(rng, memory_ghz)}
    return replace(case, machine=Machine.model_validate({**case.machine.model_dump(), **changed}))


def at_dram(case: Case, seed: int) -> Case:
    """The case on a machine at any DRAM (`any_dram`); the same graph and tensors."""
    rng = random.Random(f"dram {seed}")
    while True:
        changed = {"clock_ghz": rng.choice(CLOCKS)[0], "memory": any_dram(rng)}
        try:
            return replace(case, machine=Machine.model_validate({**case.machine.model_dump(), **changed}))
        except ValidationError:  # its clock is in no ratio of small whole numbers to that of the machine
            continue


def contradictions(found: Found) -> Iterator[str]:
    """What cannot be true of a run that ended: less time than its bounds, cycles of a node that do not add up."""
    if not isinstance(found, Outcome):
        return
    memory = found.memory
    bound = max(0 if memory is None else memory.bound, *(node.occupied for node in found.nodes))
    if found.cycles < bound:
        yield f"{found.cycles} cycles, at least {bound} are needed"
    for node in found.nodes:
        if min(node.starved, node.waited, node.blocked) < 0:
            yield f"negative: {node}"
        if node.op not in TWO_PROCESSES and node.busy + node.starved + node.waited + node.blocked != node.last + 1:
            yield f"does not add up: {node}"
