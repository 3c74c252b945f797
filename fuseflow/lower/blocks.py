"""The blocks that a schedule states: of tensors, by name or by a pattern of names, and as vectors along dense dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from fuseflow.einsum.blocks import propagate_blocks, vectorize
from fuseflow.einsum.nodes import Keep, Program
from fuseflow.errors import ProgramError, ScheduleError, TensorError, did_you_mean
from fuseflow.schedule import Schedule
from fuseflow.tensors.blocks import Block, block_text, check_block


def apply_blocks(program: Program, aliases: Mapping[str, str], schedule: Schedule) -> Program:
    """Return the program in the blocks that the schedule states. `aliases` maps names that only show a tensor in other dimensions
    to the tensor.

    Raises `ScheduleError` for a tensor that does not exist, and `ProgramError` for blocks that do not fit together.
    """
    requests = _asked(program, aliases, schedule)
    try:
        program = propagate_blocks(program, requests)
    except ProgramError as error:
        error.span = error.span or next((schedule.place("block", name) for name, _ in schedule.blocks), None)
        raise
    if schedule.vector == 1:
        return program
    vectorized = vectorize(program, schedule.vector)
    if vectorized == program:
        raise ScheduleError(
            f"vectors of {schedule.vector}: every dimension is in blocks, or stored sparse by some tensor, or a part of another dimension "
            "that such vectors would cross",
            hint="store tensors dense (`--format W=dense`), or leave `vector` out",
            span=schedule.place("vector", ""),
        )
    _refuse_kept_vectors(program, vectorized, schedule)
    return vectorized


def _refuse_kept_vectors(program: Program, vectorized: Program, schedule: Schedule) -> None:
    """Raise `ScheduleError` if a `keep` compares a tensor that has vectors in `vectorized`, and none in `program`, by element."""
    before, after = program.declared, vectorized.declared
    for einsum in vectorized.einsums:
        changed = [name for name in (einsum.name, *einsum.operands) if after[name].block != before[name].block]
        if isinstance(einsum.body, Keep) and changed:
            raise ScheduleError(
                f"vectors of {schedule.vector}: `{changed[0]}` would be stored in blocks, and `{einsum.body}` of `{einsum.name}` compares "
                "single elements",
                hint=f"leave `--vector` out, or `vector` of a schedule file; or store `{changed[0]}` sparse (`--format`)",
                span=schedule.place("vector", ""),
            )


def _asked(program: Program, aliases: Mapping[str, str], schedule: Schedule) -> dict[str, Block]:
    """Return the stated blocks, by tensor. A name takes precedence over a pattern, and a later pattern over an earlier one."""
    patterns = [(name, sizes) for name, sizes in schedule.blocks if is_pattern(name)]
    blocks: dict[str, Block] = {}
    for pattern, sizes in patterns:
        fitting = (t.name for t in program.inputs if fnmatchcase(t.name, pattern) and len(t.shape) == len(sizes))
        matches = dict.fromkeys(fitting, sizes)
        if not matches:
            raise ScheduleError(
                f"block of `{pattern}`: no input of {len(sizes)} dimensions has such a name",
                hint=f"inputs: {', '.join(f'`{t.name}`' for t in program.inputs[:8])}",
                span=schedule.place("block", pattern),
            )
        blocks |= matches
    for name, sizes in (pair for pair in schedule.blocks if pair not in patterns):
        _check(name, sizes, program, aliases, schedule)
        blocks[name] = sizes
    return blocks


def is_pattern(name: str) -> bool:
    """Return whether a name in a schedule is a pattern that matches several tensors, as `layer*.weight` is."""
    return any(character in name for character in "*?[")


def _check(name: str, sizes: Block, program: Program, aliases: Mapping[str, str], schedule: Schedule) -> None:
    """Raise `ScheduleError` unless the tensor exists and has as many dimensions as the block has sizes."""
    declared, span = program.declared, schedule.place("block", name)
    if name in aliases:
        message = f"block of `{name}`: it is `{aliases[name]}` seen in other dimensions"
        raise ScheduleError(message, hint=f"block `{aliases[name]}`", span=span)
    if name not in declared:
        raise ScheduleError(f"block of `{name}`: there is no such tensor", hint=did_you_mean(name, declared), span=span)
    try:
        check_block(sizes, len(declared[name].shape))
    except TensorError as error:
        shape = "x".join(map(str, declared[name].shape))
        hint = error.hint or f"`{name}` is {shape}, as in `{block_text((16,) * len(declared[name].shape))}`"
        raise ScheduleError(f"block of `{name}`: {error.message}", hint=hint, span=span) from error
