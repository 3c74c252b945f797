"""A program written as scheduled Linalg and read again: it must mean the same, and its regions, loop orders and graphs must be the same."""

from __future__ import annotations

from dataclasses import replace

from program_levels import Difference, agree, merged, selected
from random_programs import Case

from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.text import show
from fuseflow.errors import FuseFlowError
from fuseflow.frontend import read_mlir
from fuseflow.frontend.linalg_writer import write_program
from fuseflow.lower.partition import partition_program
from fuseflow.lower.program import lower_regions
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.stated_schedule import with_stated_schedule
from fuseflow.samml import text as samml_text
from fuseflow.schedule import Schedule


def check_written(case: Case, schedule: Schedule) -> None:
    """Write a case as it is compiled with a schedule, read it, and compile it with what the text does not say. Raises `Difference` if
    anything is another one, and `FuseFlowError` for a program that has no form in Linalg."""
    compiled = selected(case)
    with merged(case):
        partitioned = partition_program(compiled.program, schedule)
        made = tuple(lower_regions(partitioned, compiled.tensors))
        text = write_program(with_stated_schedule(case.program, partitioned, made))
        program = read_mlir(text, "written.mlir")
        rest = replace(schedule, fuse_regions=("layerwise",), regions=(), orders=(), formats=(), associations=())
        try:
            again = tuple(
                lower_regions(partition_program(selected(replace(case, program=program)).program, rest), compiled.tensors)
            )
        except FuseFlowError as error:
            raise Difference(f"written as Linalg: what is read does not compile: {error}\n{text}") from error
    for one, two in zip(_shown(made), _shown(again), strict=False):
        if one != two:
            raise Difference(f"written as Linalg: {two}\nnot\n{one}\n{text}")
    if len(made) != len(again):
        raise Difference(f"written as Linalg: {len(again)} regions, not {len(made)}\n{text}")
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
