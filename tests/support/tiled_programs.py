"""Random programs in tiles and with tensors in the scratchpad: they mean the same to the last bit."""

from __future__ import annotations

import random
import zlib
from dataclasses import replace

import numpy as np
import scratchpads
from program_levels import Difference
from random_programs import Case

import fuseflow as ff
from fuseflow.errors import ScheduleError
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import Result
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine


def machine(rng: random.Random) -> Machine:
    """A machine with a scratchpad in which everything finds room."""
    return load_machine("rda").model_copy(update={"scratchpad": scratchpads.random_scratchpad(rng)})


def check_tiled(case: Case, schedule: Schedule) -> bool:
    """Compare a program with the same in tiles and with places, where there are any. Return whether it has tiles. Raises
    `Difference`."""
    rng = random.Random(zlib.crc32(f"tile {case!r}".encode()))
    at = machine(rng)
    plain = ff.compile(case.program, tensors=case.tensors, schedule=schedule, machine=at)
    tiled = in_tiles(case, plain, rng)
    if tiled is plain:
        return False
    engine = rng.choice(("reference", "fast"))
    compare(plain.run(check=False, engine=engine), tiled.run(check=False, engine=engine))
    return any(region.tiles for region in tiled.regions)


def in_tiles(case: Case, plain: Compiled, rng: random.Random) -> Compiled:
    """The program with a tiled index in some of its regions, and some of its tensors in the scratchpad, as far as they can be."""
    best = plain
    trials = [(region.name, index) for region in plain.regions if region.einsums for index in region.fused.order]
    rng.shuffle(trials)
    tensors = {t.name for t in case.program.tensors} | {e.name for e in case.program.einsums}
    changes = [Schedule().tile(**{f"{name}.{index}": rng.choice((2, 2, 3, 4))}) for name, index in trials[:4]]
    changes += [Schedule().memory(name) for name in sorted(tensors) if rng.random() < 0.6]
    for change in changes:
        try:
            trial = ff.compile(case.program, tensors=case.tensors, schedule=added(best.schedule, change), machine=plain.machine)
        except ScheduleError:
            continue
        best = trial
    return best


def added(schedule: Schedule, change: Schedule) -> Schedule:
    return replace(schedule, tiles=schedule.tiles + change.tiles, memories=schedule.memories + change.memories)


def compare(plain: Result, tiled: Result) -> None:
    """Compare what is stored, to the last bit, and the bytes that lie in no memory twice."""
    for name, expected in plain.tensors.items():
        found = tiled.tensors[name]
        same = expected.shape == found.shape and np.array_equal(expected.coordinates(), found.coordinates())
        if not same or not np.array_equal(expected.values, found.values, equal_nan=expected.values.dtype.kind == "f"):
            raise Difference(f"tiles: `{name}` is {found.to_dense().tolist()}, not {expected.to_dense().tolist()}")
    for region in tiled.regions:
        memory = region.simulation.memory
        if memory is not None and region.cycles < region.simulation.bound:
            raise Difference(f"tiles: region `{region.name}` takes {region.cycles} cycles, at least {region.simulation.bound}")
