"""A program written as scheduled Linalg and read again: it must mean the same, and its regions, loop orders and graphs must be the same."""

from __future__ import annotations

from dataclasses import replace

from program_levels import Difference, agree, merged, selected
from random_programs import Case

from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.text import show
from fuseflow.frontend import read_mlir
from fuseflow.lower.primitive_choice import lower_for
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.schedule_annotations import unstated_schedule
from fuseflow.run.scheduled_linalg import scheduled_linalg
from fuseflow.samml import text as samml_text
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine


def check_written(case: Case, schedule: Schedule) -> None:
    """Write a case as it is compiled with a schedule, read it, and compile it with what the text does not say. Raises `Difference` if
    anything is another one, and `FuseFlowError` for a program that has no form in Linalg."""
    compiled, machine = selected(case), load_machine("ideal")
    with merged(case):
        partitioned, lowered = lower_for(compiled.program, schedule, machine, compiled.tensors)
        made = tuple(lowered)
        text = scheduled_linalg(case.program, schedule, partitioned, made, machine, compiled.tensors)
        program = read_mlir(text, "written.mlir")
        read = selected(replace(case, program=program)).program
        again = tuple(lower_for(read, unstated_schedule(schedule), machine, compiled.tensors)[1])
    for one, two in zip(_shown(made), _shown(again), strict=True):
        if one != two:
            raise Difference(f"written as Linalg: {two}\nnot\n{one}\n{text}")
    _refuse_other_values(case, program)


def _shown(regions: tuple[CompiledRegion, ...]) -> list[str]:
    return [
        f"region {region.name} in order {','.join(region.fused.order)}\n{samml_text.show(region.graph)}" for region in regions
    ]


def _refuse_other_values(case: Case, program: Program) -> None:
    """Raise `Difference` if the interpreter computes other outputs for what was read."""
    wanted, got = (evaluate(p, case.arrays) for p in (case.program, program))
    for name in case.program.outputs:
        agree(f"written as Linalg, in place of\n{show(case.program)}", name, got[name], wanted[name])
