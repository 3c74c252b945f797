"""Random programs in tiles and with tensors in the scratchpad: they mean the same."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
from memories import any_dram, random_fixed_memory
from program_levels import Difference, merged
from pydantic import ValidationError
from random_programs import Case
from scratchpads import random_scratchpad

import fuseflow as ff
from fuseflow.einsum.format_inference import fill_of, infer
from fuseflow.einsum.nodes import Program, Reduce, walk
from fuseflow.einsum.verify import shapes_and_extents
from fuseflow.errors import FuseFlowError, ScheduleError
from fuseflow.lower.tiles import is_cut, tile_refusal
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import Result
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine

Compile: TypeAlias = Callable[[Schedule], Compiled]
TILED = "tiles"
KINDS = (
    TILED,
    "tiles that do not divide",
    "tiles of several regions",
    "a sparse operand in tiles",
    "a sparse result in tiles",
    "tiles and places",
    "tiles at another memory",
)
"""What a program in tiles may have, and a long run counts."""


def machine(rng: random.Random) -> Machine:
    """A machine with a scratchpad in which everything finds room. Half of them are `rda`, and the others are at any DRAM, or at a memory
    of a fixed latency."""
    changed: dict[str, Any] = {"scratchpad": random_scratchpad(rng)}
    if rng.random() < 0.5:
        changed["memory"] = random_fixed_memory(rng) if rng.random() < 0.3 else any_dram(rng)
    plain = load_machine("rda").model_dump()
    try:
        return Machine.model_validate({**plain, **changed})
    except ValidationError:  # clocks in no ratio of small whole numbers
        return Machine.model_validate({**plain, "scratchpad": changed["scratchpad"]})


def check_tiled(case: Case, schedule: Schedule) -> tuple[str, ...]:
    """Compare a program with the same in tiles and with places, where there are any. One of three runs on both engines. Return what it has
    of `KINDS`, nothing if it has no tiles. Raises `Difference`, also for an error, since the program compiles and runs without tiles."""
    try:
        return tuple(_checked(case, schedule))
    except FuseFlowError as error:
        raise Difference(f"tiles: fails: {error}") from error


def _checked(case: Case, schedule: Schedule) -> Iterator[str]:
    rng = random.Random(zlib.crc32(f"tile {case!r}".encode()))
    at = machine(rng)

    def compiled(schedule: Schedule) -> Compiled:
        with merged(case):  # its lanes name the loops that are there then
            return ff.compile(case.program, tensors=case.tensors, schedule=schedule, machine=at)

    plain = compiled(schedule)
    tiled = in_tiles(plain, compiled, rng)
    if tiled is plain:
        return
    engines: list[Literal["fast", "reference"]] = ["fast", "reference"]
    rng.shuffle(engines)
    result = tiled.run(check=False, engine=engines[0])
    whole = plain.run(engine=engines[0])
    if whole.check is None or not whole.check.passed:
        raise Difference(f"tiles: without them, {whole.check}")
    compare(whole, result, adds_absent_terms(case.program))
    if rng.random() < 0.3:
        compare_cycles(result, tiled.run(check=False, engine=engines[1]))
    yield from kinds(tiled)


def kinds(compiled: Compiled) -> Iterator[str]:
    """What a compiled program has of `KINDS`."""
    regions = [region for region in compiled.regions if region.tiles]
    if not regions:
        return
    parts = [region.graph.declared[name] for region in regions for name in region.graph.declared if is_cut(region, name)]
    results = {name for region in regions for name in region.graph.outputs}
    holds = {
        TILED: True,
        "tiles that do not divide": any(region.tiles[-1].size < region.tiles[0].size for region in regions),
        "tiles of several regions": len(regions) > 1,
        "a sparse operand in tiles": any(not part.format.all_dense for part in parts if part.name not in results),
        "a sparse result in tiles": any(not part.format.all_dense for part in parts if part.name in results),
        "tiles and places": any(tensor.scratchpad for region in regions for tensor in region.tiles[0].graph.tensors),
        "tiles at another memory": compiled.machine.memory != load_machine("rda").memory,
    }
    yield from (kind for kind in KINDS if holds[kind])


def in_tiles(plain: Compiled, compiled: Compile, rng: random.Random) -> Compiled:
    """A compiled program with a tiled index in most regions that can have one, in tiles of any size, and some of its tensors in the
    scratchpad, as far as they can be. One of ten indices is any one, which may be refused."""
    changes = []
    for region in plain.regions:
        order = [index for index in region.fused.order if region.fused.sizes[index] > 2] if region.einsums else []
        legal = [index for index in order if rng.random() < 0.1 or tile_refusal(region, index) is None]
        if legal and rng.random() < 0.85:
            index = rng.choice(legal)
            sizes = range(2, region.fused.sizes[index])
            changes.append(Schedule().tile(**{f"{region.name}.{index}": rng.choice(sizes[-1:] if rng.random() < 0.2 else sizes)}))
    tensors = {t.name for t in plain.source.program.tensors} | {e.name for e in plain.source.program.einsums}
    share = rng.choice((0.0, 0.3, 0.9))
    changes += [Schedule().memory(name) for name in sorted(tensors) if rng.random() < share]
    return _with_all(plain, compiled, changes)


def _with_all(plain: Compiled, compiled: Compile, changes: Sequence[Schedule]) -> Compiled:
    """The program with all changes, or with those of each half that can be if not all can."""
    if not changes:
        return plain
    schedule = plain.schedule
    for change in changes:
        schedule = added(schedule, change)
    try:
        return compiled(schedule)
    except ScheduleError:
        half = len(changes) // 2
        return _with_all(_with_all(plain, compiled, changes[:half]), compiled, changes[half:]) if half else plain


def added(schedule: Schedule, change: Schedule) -> Schedule:
    return replace(schedule, tiles=schedule.tiles + change.tiles, memories=schedule.memories + change.memories)


def compare_cycles(found: Result, other: Result) -> None:
    """Compare the runs of both engines: values, cycles and statistics."""
    compare(found, other)
    compare(other, found)
    for region, twin in zip(found.regions, other.regions, strict=True):
        if (region.cycles, region.simulation.memory) != (twin.cycles, twin.simulation.memory):
            raise Difference(f"tiles: region `{region.name}` takes {region.cycles} cycles, on the other engine {twin.cycles}")


def equal_but_for_rounding(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether numbers are equal, floats up to some roundings of the largest."""
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    finite = np.isfinite(a)
    largest = float(np.abs(a[finite]).max(initial=0.0))
    return np.allclose(a, b, rtol=0.0, atol=16 * float(np.finfo(a.dtype).eps) * largest, equal_nan=True)


def adds_absent_terms(program: Program) -> bool:
    """Whether a sum of a program has terms of entries that are not stored, as `sum(i) cos(A[i, l])` has."""
    fills, (_, extents) = {name: type.fill for name, type in infer(program).declared.items()}, shapes_and_extents(program)
    sums = ((e, node) for e in program.einsums for node in walk(e.body) if isinstance(node, Reduce) and node.op == "sum")
    return any(fill_of(node.body, fills, extents[einsum.name]) != 0 for einsum, node in sums)


def compare(plain: Result, tiled: Result, rounds: bool = False) -> None:
    """Compare the values, what is stored, and the cycles with their bound.

    Values are equal to the last bit, or, where it `rounds`, but for roundings: a tile may lack a whole row, and a sum then adds the terms
    of its entries, which are not stored, last.
    A run in tiles stores nothing that the other one does not, but may store fewer zeros. Example: the whole of A has a row that the tile
    lacks, and the product of that row with another one is stored as zeros.
    """
    for name, expected in plain.tensors.items():
        found = tiled.tensors[name]
        stored = {*zip(*expected.coordinates().tolist(), strict=True)}
        same = expected.shape == found.shape and stored.issuperset(zip(*found.coordinates().tolist(), strict=True))
        values = expected.to_dense(), found.to_dense()
        equal = equal_but_for_rounding(*values) if rounds else np.array_equal(*values, equal_nan=values[0].dtype.kind == "f")
        if not same or not equal:
            raise Difference(f"tiles: `{name}` is {values[1].tolist()}, not {values[0].tolist()}")
    for region in tiled.regions:
        memory = region.simulation.memory
        if memory is not None and region.cycles < region.simulation.bound:
            raise Difference(f"tiles: region `{region.name}` takes {region.cycles} cycles, at least {region.simulation.bound}")
