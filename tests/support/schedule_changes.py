"""The split and the recompute mode of the generators: a program that was drawn, with some of its tensors dense and some of its indices in
two loops in their region, or with some of what later regions read computed again there."""

from __future__ import annotations

import random
import zlib
from dataclasses import replace

from random_programs import Case

from fuseflow.einsum.nodes import TensorType
from fuseflow.einsum.verify import shapes_and_extents
from fuseflow.errors import FuseFlowError
from fuseflow.lower.program import lower
from fuseflow.schedule import Schedule
from fuseflow.tensors import Format, repack

SIZES = ((4, 6), (6, 4), (4, 2), (8, 3), (4, 4))
"""Dimensions of which most have divisors."""
SPLIT = 0.8
"""Of the tensors, those that are dense; and of the indices whose extent has divisors, those that are tried."""
RECOMPUTED = 0.6
"""Of the Einsums, those that are tried."""


def with_splits(case: Case) -> Case:
    """The case with as many splits as are accepted, of indices that the generator drew an extent with divisors for."""
    rng = random.Random(zlib.crc32(f"split {case!r}".encode()))
    for tensor in case.program.tensors:
        if rng.random() < SPLIT and tensor.format != Format.dense(len(tensor.shape)):
            trial = _with_dense(case, tensor)
            case = trial if _lowers(trial, trial.schedule) else case
    for einsum, extents in shapes_and_extents(case.program)[1].items():
        for index, size in extents.items():
            divisors = [n for n in range(2, size) if size % n == 0]
            if divisors and rng.random() < SPLIT:
                trial = case.schedule.split(f"{einsum}.{index}", rng.choice(divisors))
                case = replace(case, schedule=trial) if _lowers(case, trial) else case
    return case


def with_recomputes(case: Case) -> Case:
    """The case with as many Einsums computed again as are accepted. A program that is one region runs Einsum by Einsum."""
    rng = random.Random(zlib.crc32(f"recompute {case!r}".encode()))
    apart = case.schedule.fuse("none")
    if case.schedule.fuse_regions in (("full",), ("best",), ("layerwise",)) and _lowers(case, apart):
        case = replace(case, schedule=apart)
    for einsum in case.program.einsums:
        trial = case.schedule.recompute(einsum.name)
        if rng.random() < RECOMPUTED and _lowers(case, trial):
            case = replace(case, schedule=trial)
    return case


def _with_dense(case: Case, tensor: TensorType) -> Case:
    dense = replace(tensor, format=Format.dense(len(tensor.shape)))
    program = replace(case.program, tensors=tuple(dense if t is tensor else t for t in case.program.tensors))
    tensors = {name: repack(t, dense.format) if name == tensor.name else t for name, t in case.tensors.items()}
    return replace(case, program=program, tensors=tensors)


def _lowers(case: Case, schedule: Schedule) -> bool:
    try:
        lower(case.program, schedule, case.tensors)
    except FuseFlowError:
        return False
    return True
