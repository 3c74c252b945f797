"""Replaces patterns of names in the formats of a schedule by the names of the tensors that they match."""

from __future__ import annotations

from dataclasses import replace

from fuseflow.einsum.format_inference import TypedProgram
from fuseflow.einsum.nodes import Program
from fuseflow.errors import ScheduleError, TensorError
from fuseflow.schedule import Schedule
from fuseflow.tensors.format_patterns import Ranks, exact_formats, is_pattern


def with_exact_formats(program: Program, schedule: Schedule) -> tuple[Schedule, tuple[str, ...]]:
    """Return a schedule whose formats name tensors of the program exactly, and notices of tensors that its patterns leave out.
    Raises `ScheduleError` for a pattern that matches no tensor, or no tensor that its format fits."""
    if not any(is_pattern(name) for name, _ in schedule.formats):
        return schedule, ()

    def computed() -> Ranks:
        declared = TypedProgram.of(program).program.declared
        return {name: (len(declared[name].shape),) for name in program.defined}

    def refusal(pattern: str, error: TensorError) -> ScheduleError:
        span = schedule.place("format", pattern)
        return ScheduleError(f"format of `{pattern}`: {error.message}", hint=error.hint, span=span)

    exact = exact_formats(schedule.formats, {t.name: (len(t.shape),) for t in program.inputs}, computed, refusal)
    return replace(schedule, formats=tuple(exact.formats.items())), exact.notices
