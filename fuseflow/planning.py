"""Sources whose operands are divided into parts as a plan says, costs of blocks on a machine, and programs in narrower types."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import replace
from functools import cache, partial
from numbers import Real

from fuseflow.costs.narrow_types import WHY, gains
from fuseflow.einsum.nodes import Program
from fuseflow.errors import NarrowTypesWarning, PlanError, did_you_mean
from fuseflow.frontend.source import Source
from fuseflow.lower.exact_formats import with_exact_formats
from fuseflow.lower.public import lower_for
from fuseflow.plan.block_weights import Arrays, BlockWeights
from fuseflow.plan.form import Form
from fuseflow.plan.quantization import Metric, Quantization, QuantizationSearch
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine
from fuseflow.tensors.array_files import pack_declared


def planned(source: Source, schedule: Schedule, machine: Machine) -> tuple[Source, Schedule]:
    """Return a source with its operands divided as the plan of a schedule says, and the schedule with the weights that the plan lacked,
    measured on the machine, and with exact names in the place of patterns. Parts that were divided before stay as they are. An
    operand that is resident, or has a reuse buffer, is and has so in all its parts.

    Raise `PlanError` if the plan does not fit the program, and for stand-ins in the place of intermediates, which say nothing of it, and
    `ScheduleError` for a pattern that matches nothing.
    """
    source, schedule = _divided(source, schedule, machine)
    schedule, notices = with_exact_formats(source.program, schedule)
    return (replace(source, notices=(*source.notices, *notices)) if notices else source), schedule


def _divided(source: Source, schedule: Schedule, machine: Machine) -> tuple[Source, Schedule]:
    plan = schedule.plan
    if not plan or source.plan == plan:
        return source, schedule
    if source.plan:
        raise PlanError("the operands of this program are divided by another plan", hint="load the model again")
    if schedule.intermediates == "dense":
        raise PlanError("a plan needs the real intermediates", hint="leave `--intermediates dense` or the plan out")
    weighed = plan.weighed(partial(block_weight, machine.model_dump_json()))
    decomposed = weighed.decomposed(source.program, source.tensors)
    divided = replace(
        source, program=decomposed.program, tensors=decomposed.tensors, plan=weighed, original=source.original or source
    )
    resident = dict.fromkeys(part for name in schedule.resident for part in decomposed.inputs_of(name) or (name,))
    buffers = {part: size for name, size in schedule.buffers for part in decomposed.inputs_of(name) or (name,)}
    preloads = {part: ports for name, ports in schedule.preloads for part in decomposed.inputs_of(name) or (name,)}
    return divided, replace(
        schedule, plan=weighed, resident=tuple(resident), buffers=tuple(buffers.items()), preloads=tuple(preloads.items())
    )


@cache
def block_weight(settings: str, form: Form) -> float:
    """Return the cycles that a block of a form costs on a machine, whose settings are given as JSON. Each is measured once in a process."""
    machine = Machine.model_validate_json(settings)
    weights: BlockWeights[str] = BlockWeights(lambda _, program, arrays: _cycles(program, arrays, machine))
    return weights.weight(settings, form)


def _cycles(program: Program, arrays: Arrays, machine: Machine) -> int:
    schedule = Schedule.fuse("full")
    tensors = {tensor.name: pack_declared(arrays[tensor.name], tensor) for tensor in program.inputs}
    partitioned, lowered = lower_for(program, schedule, machine, tensors)
    source = Source(program.name, program, tensors)
    return Compiled(source, partitioned.program, schedule, tuple(lowered), machine, 0.0).run(check=False).cycles


def quantize(
    compiled: Compiled, tolerance: float = 1e-3, metric: Metric | None = None, constants: Collection[str] = ()
) -> Quantization:
    """Choose narrower types for the factors of the products of a compiled program, calibrated on the tensors that it was compiled with.

    In order of the program, the types i16, i8 and i4 are tried for each factor, and kept while the mean squared error of every output, in
    parts of its mean square, and the loss of the `metric` are at most the `tolerance`. `constants` are inputs that are stored in the
    narrower type, beside the weights of a PyTorch model; other tensors are rounded where they are computed or read.

    Where no operator of the program would take fewer cycles, a `NarrowTypesWarning` says so first. Raise `PlanError` for a tolerance that
    is no number of at least 0, for a constant that is no input, and for numbers or a metric that are not finite.

    >>> import fuseflow as ff
    >>> narrow = ff.quantize(ff.compile(mlp, (x,)), tolerance=1e-3)         # doctest: +SKIP
    >>> print(narrow)                                                        # doctest: +SKIP
    >>> ff.compile(narrow.program, tensors=narrow.tensors).run().cycles      # doctest: +SKIP
    """
    if not isinstance(tolerance, Real) or not tolerance >= 0:
        raise PlanError(f"a tolerance of {tolerance!r}", hint="0 or more, such as 0.001")
    if isinstance(constants, str):
        raise PlanError(f"`constants` is the text `{constants}`", hint=f'a list of names: `constants=["{constants}"]`')
    source = compiled.source
    names = [tensor.name for tensor in source.program.inputs]
    for name in names:
        if name not in source.tensors:
            raise PlanError(f"the input `{name}` has no data", hint="types are calibrated on real numbers")
    for name in constants:
        if name not in names:
            raise PlanError(f"the program has no input `{name}`", hint=did_you_mean(name, names))
    if not any(gains(region.graph, compiled.machine, bits=4) for region in compiled.regions):
        message = (
            f"narrower types will save bytes and no cycles of units: {WHY}; compile with blocks, such as 32x32, to gain cycles"
        )
        warnings.warn(message, NarrowTypesWarning, stacklevel=2)
    every = frozenset((*source.constants, *constants))
    return QuantizationSearch(source.program, source.tensors, every, tolerance, metric).choose()
