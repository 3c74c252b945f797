"""The recompute mode of the generators: a program that was drawn, with some of what later regions read computed again there."""

from __future__ import annotations

import random
import zlib
from dataclasses import replace

from random_programs import Case

from fuseflow.errors import FuseFlowError
from fuseflow.lower.program import lower
from fuseflow.schedule import Schedule

SHARE = 0.6
"""Of the Einsums, those that are tried."""


def in_program(case: Case) -> Case:
    """The case with as many Einsums computed again as are accepted. A program that is one region runs Einsum by Einsum."""
    rng = random.Random(zlib.crc32(f"recompute {case!r}".encode()))
    apart = case.schedule.fuse("none")
    if case.schedule.fuse_regions in (("full",), ("best",), ("layerwise",)) and _lowers(case, apart):
        case = replace(case, schedule=apart)
    for einsum in case.program.einsums:
        trial = case.schedule.recompute(einsum.name)
        if rng.random() < SHARE and _lowers(case, trial):
            case = replace(case, schedule=trial)
    return case


def _lowers(case: Case, schedule: Schedule) -> bool:
    try:
        lower(case.program, schedule, case.tensors)
    except FuseFlowError:
        return False
    return True
