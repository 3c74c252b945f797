"""The `keep` mode of the generator of programs: a case that was drawn, in which some statements keep a part of their result, and zeros of
some intermediates are dropped. Some of the results of which every group is kept are stored n:m.

What a seed draws stays as it is without this mode. A statement keeps what it was where rounding would decide what is kept.
"""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Collection
from dataclasses import replace

import torch_oracle
from random_programs import Case

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.nodes import Einsum, Keep, Program, Split, free_indices
from fuseflow.einsum.verify import extents
from fuseflow.errors import FuseFlowError
from fuseflow.keep_rules import MAX_GROUP, NONZERO, By, Largest, Rule, Threshold
from fuseflow.lower.partition import partition_program
from fuseflow.schedule import Schedule
from fuseflow.tensors import Format

SHARE = 0.5
"""Of the statements, those that are tried with a `keep`."""
DROPPED = 0.2
"""Of the statements, those whose zeros are dropped."""
STORED = 0.8
"""Of the results of which every group is kept, those that are stored n:m."""
ORDERS: tuple[By, ...] = ("magnitude", "magnitude", "greatest", "least")
MARKED = 0.3
"""Of the results of which the first entries are kept, those that are marks."""
SURE = 1e-11


def in_program(case: Case) -> Case:
    """The case with some `keep`s, where the program then still has one meaning."""
    rng = random.Random(zlib.crc32(repr(case).encode()))
    program, together = case.program, _fused_together(case)
    for einsum in case.program.einsums:
        keep = _keep(program, einsum, rng, einsum.name in together) if rng.random() < SHARE else None
        if keep is not None:
            trial = _with(program, replace(einsum, body=keep))
            program = trial if _is_fair(trial, case) else program
    program = _stored_in_groups(program, {name for name, _ in case.schedule.formats}, rng)
    kept = any(isinstance(e.body, Keep) for e in program.einsums)
    dropped = tuple(e.name for e in program.einsums if rng.random() < DROPPED)
    wanted = tuple(dict.fromkeys((*case.schedule.drop_zeros, *dropped)))  # what was drawn before may be stored dense now
    schedule = replace(case.schedule, drop_zeros=tuple(_with_zeros(program, case.schedule, wanted)))
    if kept or schedule.drop_zeros != case.schedule.drop_zeros:
        schedule = replace(schedule, vector=1, blocks=())  # what is kept is compared element by element
    return replace(case, program=program, schedule=schedule)


def _keep(program: Program, einsum: Einsum, rng: random.Random, together: bool) -> Keep | None:
    """A `keep` of the result of a statement, of any kind; of the whole result only where the statement runs alone."""
    indices = [v for v in free_indices(einsum.body) if v in einsum.indices]
    kinds = ["threshold", *(["fiber", "group"] if indices else []), *(["whole"] * 2 if len(indices) > 1 and not together else [])]
    kind = rng.choice(kinds)
    sizes = extents(program)[einsum.name]
    over = tuple(rng.sample(indices, rng.randint(2, len(indices)) if kind == "whole" else 1)) if kind != "threshold" else ()
    extent = math.prod(sizes[v] for v in over)
    if extent == 0:
        return None
    rule: Rule = Largest(rng.randint(1, extent))
    if kind == "threshold":
        rule = rng.choice((NONZERO, Threshold(0.0), Threshold(0.5), Threshold(1.0), Threshold(2.0)))
    elif kind == "group":
        every = rng.randint(1, extent + 1)
        rule = Largest(rng.randint(1, every), every)
    if isinstance(rule, Largest):
        later = random.Random(f"{einsum.name} {rule}")  # what was drawn before this stays as it was
        rule = replace(rule, by=later.choice(ORDERS), marks=later.random() < MARKED)
    return Keep(rule, over, einsum.body)


def _with(program: Program, einsum: Einsum) -> Program:
    return replace(program, einsums=tuple(einsum if e.name == einsum.name else e for e in program.einsums))


def _is_fair(program: Program, case: Case) -> bool:
    """Whether the program has a meaning, and every entry of it is determined."""
    try:
        infer(program)
    except FuseFlowError:
        return False
    for evaluated in torch_oracle.evaluate(program, case.arrays).values():
        values, error = evaluated.value.values, evaluated.value.error
        finite = values[values.isfinite()].abs()
        scale = max(1.0, float(finite.max()) if finite.numel() else 0.0)
        if bool((error > SURE * scale).any()):
            return False
    return True


def _stored_in_groups(program: Program, formatted: Collection[str], rng: random.Random) -> Program:
    """The program with some results stored n:m, the index that is kept innermost, where the schedule does not say how they are stored."""
    inferred, declared = infer(program).declared, dict(program.declared)
    for einsum in program.einsums:
        keep = einsum.body
        if not isinstance(keep, Keep) or not isinstance(keep.rule, Largest) or not keep.rule.every or einsum.name in formatted:
            continue
        if keep.rule.every > MAX_GROUP or keep.over[0] not in einsum.indices or rng.random() >= STORED:
            continue
        last = einsum.indices.index(keep.over[0])
        outer = [d for d in range(len(einsum.indices)) if d != last]
        rng.shuffle(outer)
        levels = (*(rng.choice(("dense", "compressed")) for _ in outer), f"nm({keep.rule.count}:{keep.rule.every})")
        declared[einsum.name] = replace(inferred[einsum.name], format=Format.of(*levels, order=(*outer, last)))
    return replace(program, tensors=tuple(declared.values()))


def _fused_together(case: Case) -> Collection[str]:
    """The Einsums that are in a region with others."""
    if case.schedule.fuse_regions == ("none",):
        return ()
    named = [einsums for name, einsums in case.schedule.regions if name in case.schedule.fuse_regions and len(einsums) > 1]
    return {name for einsums in named for name in einsums}


def _with_zeros(program: Program, schedule: Schedule, names: tuple[str, ...]) -> list[str]:
    """Those of the results that are computed from single elements, are 0 where nothing is stored, and are fused or stored sparse."""
    try:
        partitioned = partition_program(program, replace(schedule, vector=1, blocks=(), drop_zeros=()))
    except FuseFlowError:
        return []
    written = {name for results in partitioned.results.values() for name in results}
    split = {a.tensor for e in program.einsums for a in e.accesses if any(isinstance(i, Split) for i in a.indices)}
    types, needed = partitioned.original.declared, _needed(program)
    written &= types.keys()  # a copy that a reshape needs has no name in the program of the user
    dense = {name for name in written if (format := types[name].format) is None or format.all_dense}
    return [n for n in names if types[n].fill == 0 and n in needed and n not in dense | split]


def _needed(program: Program) -> set[str]:
    """What the outputs are computed from."""
    needed = set(program.outputs)
    for einsum in reversed(program.einsums):
        needed |= set(einsum.operands) if einsum.name in needed else set()
    return needed
