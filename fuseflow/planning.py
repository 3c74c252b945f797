"""Sources whose operands are divided into parts as a plan says, and what blocks cost on a machine."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

from fuseflow.einsum.nodes import Program
from fuseflow.errors import PlanError
from fuseflow.frontend.source import Source
from fuseflow.lower.public import lower_for
from fuseflow.plan.form import Form
from fuseflow.plan.weights import Arrays, BlockWeights
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine
from fuseflow.tensors.array_files import pack_declared


def planned(source: Source, schedule: Schedule, machine: Machine) -> tuple[Source, Schedule]:
    """Return a source with its operands divided as the plan of a schedule says, and the schedule with the weights that the plan lacked,
    measured on the machine. What was divided before stays as it is.

    Raise `PlanError` if the plan does not fit the program, and for stand-ins in the place of intermediates, which say nothing of it.
    """
    plan = schedule.plan
    if not plan or source.plan == plan:
        return source, schedule
    if source.plan:
        raise PlanError("the operands of this program are divided by another plan", hint="load the model again")
    if schedule.intermediates == "dense":
        raise PlanError("a plan needs the real intermediates", hint="leave `--intermediates dense` or the plan out")
    weighed = plan.weighed(partial(block_weight, machine.model_dump_json()))
    program, tensors = weighed.apply(source.program, source.tensors)
    divided = replace(source, program=program, tensors=tensors, plan=weighed, original=source.original or source)
    return divided, replace(schedule, plan=weighed)


@cache
def block_weight(settings: str, form: Form) -> float:
    """Return what a block of a form costs on a machine, whose settings are given as JSON. Each is measured once in a process."""
    machine = Machine.model_validate_json(settings)
    weights: BlockWeights[str] = BlockWeights(lambda _, program, arrays: _cycles(program, arrays, machine))
    return weights.weight(settings, form)


def _cycles(program: Program, arrays: Arrays, machine: Machine) -> int:
    tensors = {tensor.name: pack_declared(arrays[tensor.name], tensor) for tensor in program.inputs}
    partitioned, lowered = lower_for(program, Schedule(), machine, tensors)
    source = Source(program.name, program, tensors)
    return Compiled(source, partitioned.program, Schedule(), tuple(lowered), machine, 0.0).run(check=False).cycles
