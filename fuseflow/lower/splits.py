"""The splits that a schedule asks for: dimensions of inputs, which are two loops in all that shares them."""

from __future__ import annotations

from collections.abc import Collection

from fuseflow.einsum.dimensions import InputSplit
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.reshapes import ReshapeElimination, eliminate_reshapes
from fuseflow.errors import ProgramError, ScheduleError, did_you_mean
from fuseflow.schedule import Schedule


def without_reshapes(program: Program, kept: Collection[str], schedule: Schedule) -> ReshapeElimination:
    """Return the program without reshapes, in which the dimensions are split that the schedule says. The tensors in `kept` are stored as
    they are. Raises `ScheduleError` for a dimension that cannot be split.
    """
    splits: list[InputSplit] = []
    for name, sizes in schedule.splits:
        _check(name, sizes, program, schedule)
        for position in (position for position, size in enumerate(sizes) if size > 1):
            splits.append(InputSplit(name, position, sizes[position]))
            try:
                eliminate_reshapes(program, kept, splits)
            except ProgramError as error:
                message = f"dimension {position} of `{name}` cannot be split: {error.message}"
                raise ScheduleError(message, hint=error.hint, span=schedule.place("split", name)) from error
    return eliminate_reshapes(program, kept, splits)


def _check(name: str, sizes: tuple[int, ...], program: Program, schedule: Schedule) -> None:
    """Raise `ScheduleError` unless the tensor is an input that has as many dimensions."""
    span = schedule.place("split", name)
    inputs = {tensor.name: tensor for tensor in program.inputs}
    if name in program.defined:
        message, hint = "it is computed", "name an input that has the dimension: all that shares it is split, too"
    elif name not in inputs:
        message, hint = "there is no such tensor", did_you_mean(name, inputs)
    elif len(sizes) != (rank := len(inputs[name].shape)):
        message, hint = f"{len(sizes)} sizes for {rank} dimensions", "one for each dimension, which is 1 where it stays whole"
    else:
        return
    raise ScheduleError(f"split of `{name}`: {message}", hint=hint, span=span)
