"""The formats that the inputs of a program may have, each as a program of its own to cut.

Formats change what a program computes in no way, but which zeros it multiplies: they are a lever that the user allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod

import numpy as np

from fuseflow.autoscheduler.budget.cut_graph import MAX_ORDERS, CutGraph
from fuseflow.autoscheduler.budget.deadline import Deadline
from fuseflow.autoscheduler.budget.search import SearchProgress, Variant
from fuseflow.autoscheduler.costs import prepare_costs
from fuseflow.einsum.nodes import Program
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.source import Source
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine

MATRIX_FORMATS = ("dense", "csr", "csc", "dcsr")
"""The formats that an input of two dimensions may have."""
SPARSE_SHARE, DENSE_SHARE = 0.9, 0.1
"""An input of which more than the first share is not zero is not tried compressed, and one of which less than the second is, not dense."""
MAX_COMBINED = 64
"""Up to so many combinations of formats, all are tried; beyond that, one input after the other."""
MAX_EINSUMS = 1_200
"""The most Einsums of all ranges together. Where single operators make more, the program is cut between products or layers."""

Bound = Callable[[Variant], float]
"""The cycles that no program of a variant takes less than."""


def variant_of(
    source: Source,
    schedule: Schedule,
    machine: Machine,
    estimator: Estimator,
    is_published: bool = False,
    orders: int = MAX_ORDERS,
    deadline: Deadline | None = None,
) -> Variant | None:
    """Return a program in the formats of a schedule, to cut. None if one of its operators cannot run alone, or if it has too many."""
    costs = prepare_costs(source, schedule, machine, estimator)
    if costs is None or not costs.refine(MAX_EINSUMS):
        return None
    return Variant(schedule, CutGraph.of(costs.ranges, source.tensors, machine, estimator, orders, deadline), is_published)


def format_variants(
    source: Source,
    published: Variant,
    bound: Bound,
    build: Callable[[Schedule], Variant | None],
    deadline: Deadline,
    progress: SearchProgress,
) -> tuple[Variant, ...]:
    """Return the program in the formats of the user and in others: in all that matrices may have, or, where these are too many, with one
    input after the other in its best format, the largest first."""
    choices = {name: _formats(source, name, published.base) for name in _matrices(source)}
    variants = {published.base: published}

    def tried(schedule: Schedule) -> Variant | None:
        if schedule not in variants and not deadline.passed:
            progress(", ".join(f"{name} {format}" for name, format in schedule.formats))
            try:
                variant = build(schedule)
            except FuseFlowError:  # the operators do not run in these formats
                variant = None
            if variant is not None:
                variants[schedule] = variant
        return variants.get(schedule)

    if prod(map(len, choices.values())) <= MAX_COMBINED and len(published.graph.ranges.units) <= 4:
        for schedule in _combinations(published.base, choices):
            tried(schedule)
        return tuple(variants.values())
    best = published
    for name, formats in choices.items():
        others = (tried(best.base.format(name, format)) for format in formats if format)
        best = min((v for v in (best, *others) if v is not None), key=bound)
    return tuple(variants.values())


def _combinations(base: Schedule, choices: dict[str, tuple[str, ...]]) -> Iterator[Schedule]:
    for formats in product(*choices.values()):
        schedule = base
        for name, format in zip(choices, formats, strict=True):
            schedule = schedule.format(name, format) if format else schedule
        yield schedule


def _matrices(source: Source) -> list[str]:
    """Return the inputs of two dimensions that are factors or terms, the largest first."""
    program: Program = source.program
    names = [t.name for t in program.inputs if len(t.shape) == 2 and not t.block]
    return sorted(names, key=lambda name: (-prod(program.declared[name].shape), name))


def _formats(source: Source, name: str, base: Schedule) -> tuple[str, ...]:
    """Return the formats of an input, first "" for that which it has."""
    if name in dict(base.formats) or name in dict(base.blocks):
        return ("",)
    tensor = source.tensors[name]
    share = np.count_nonzero(tensor.values) / max(1, prod(source.program.declared[name].shape))
    dense, compressed = MATRIX_FORMATS[:1], MATRIX_FORMATS[1:]
    return ("", *(dense if share >= DENSE_SHARE else ()), *(compressed if share <= SPARSE_SHARE else ()))
