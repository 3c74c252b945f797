"""Several steps of a compiled program, from the tensors of its source on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fuseflow.einsum.blocks import guard_data, tensors_to_blocks, tensors_to_elements
from fuseflow.einsum.nodes import Program
from fuseflow.frontend.imported_program import Source
from fuseflow.frontend.source_values import holding, packed_values
from fuseflow.lower.regions import CompiledRegion
from fuseflow.machine.machine import Machine
from fuseflow.run.input_tensors import inputs_of, user_inputs
from fuseflow.run.result import Result
from fuseflow.run.training.step_values import StepInterpreter
from fuseflow.run.training.steps import StepPlan, StepRunner
from fuseflow.run.training.training_run import TrainingRun
from fuseflow.tensors import Tensor


def run_steps(
    source: Source,
    program: Program,
    regions: tuple[CompiledRegion, ...],
    machine: Machine,
    plan: StepPlan,
    simulate: Callable[[Source], Result],
) -> TrainingRun:
    """Run several steps. `simulate` runs the program on a source that holds the inputs of one step. Raise `UsageError` for a program whose
    outputs are no inputs of the next step, and for too few batches."""
    declared = program.declared

    def in_elements(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return tensors with all elements of the blocks that they store something of, as an output in blocks has them."""
        return tensors_to_elements(declared, tensors_to_blocks(declared, tensors))

    def packed(values: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return values of some inputs as the program stores them, but in single elements."""
        tensors = packed_values(source, values, declared)
        types = [t for t in user_inputs(source, program) if t.name in tensors]
        return in_elements(inputs_of(holding(source, tensors), types))

    available = [t for t in user_inputs(source, program) if t.name in source.tensors]
    guards = {t.name: guard_data(t) for t in program.inputs if t.name not in source.program.declared}
    return StepRunner(
        program,
        regions,
        in_elements(inputs_of(source, available)),
        packed,
        lambda tensors: simulate(holding(source, tensors)),
        StepInterpreter(program, machine.is_wide, tensors_to_elements(declared, guards)),
        plan,
    ).run()
