"""Sources whose operands are divided into parts as a plan says, and the costs of blocks on a machine."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

from fuseflow.einsum.blocks import tensors_to_blocks
from fuseflow.einsum.nodes import Program
from fuseflow.errors import PlanError
from fuseflow.frontend.imported_program import Source
from fuseflow.lower.partition import with_exact_formats
from fuseflow.lower.primitive_choice import lower_for
from fuseflow.lower.reshape_views import add_views
from fuseflow.machine.machine import Machine
from fuseflow.plan.block_costs import Arrays, BlockWeights
from fuseflow.plan.partition import Form
from fuseflow.samml.auxiliary_tensors import auxiliary_tensors
from fuseflow.schedule import Schedule
from fuseflow.sim import simulate
from fuseflow.tensors.array_files import pack_declared


def planned(source: Source, schedule: Schedule, machine: Machine) -> tuple[Source, Schedule]:
    """Return a source with its operands divided as the plan of a schedule says, and the schedule with the missing weights of the
    plan, measured on the machine, and with exact names instead of patterns. Parts that were divided before stay as they are. If
    an operand is resident or has a reuse buffer, so do all its parts.

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
    memories = {part: memory for name, memory in schedule.memories for part in decomposed.inputs_of(name) or (name,)}
    return divided, replace(
        schedule,
        plan=weighed,
        resident=tuple(resident),
        buffers=tuple(buffers.items()),
        preloads=tuple(preloads.items()),
        memories=tuple(memories.items()),
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
    [region] = lowered
    memory = tensors_to_blocks(partitioned.program.declared, tensors) | auxiliary_tensors(region.graph)
    add_views(memory, region.views_before)
    read = {name: memory[name] for name in region.graph.inputs}
    return simulate(region.graph, read, machine, expected=region.estimate.firings).cycles
