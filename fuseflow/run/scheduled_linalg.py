"""Writes a compiled program as a Linalg module that states its regions and loop orders, and is compiled to the same graphs when
it is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from fuseflow.einsum.constants import inline_constants
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.selections import replace_affine
from fuseflow.errors import FrontendError, FuseFlowError
from fuseflow.lower.partition import PartitionedProgram
from fuseflow.lower.primitive_choice import lower_for
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.schedule_annotations import unstated_schedule, with_stated_schedule
from fuseflow.machine.machine import Machine
from fuseflow.schedule import Schedule
from fuseflow.tensors import Tensor

HINT = "`fuseflow compile -o DIR` keeps the schedule in a file"


def scheduled_linalg(
    program: Program,
    schedule: Schedule,
    partitioned: PartitionedProgram,
    regions: Sequence[CompiledRegion],
    machine: Machine,
    tensors: Mapping[str, Tensor],
) -> str:
    """Return the Linalg text of a program that was cut into `partitioned` by a schedule. `regions` are its regions, lowered for
    this machine and these inputs.

    Raise `FrontendError`, with the location, for an Einsum or a region that would be read as another one. For example, loop
    orders do not say which tensor a region reads as a permuted copy, if several are possible.
    """
    from fuseflow.frontend import read_mlir
    from fuseflow.frontend.linalg.program_writer import write_program  # loads torch-mlir

    text = write_program(with_stated_schedule(program, partitioned, regions))
    selected, _ = replace_affine(read_mlir(text))
    try:
        _, again = lower_for(inline_constants(selected), unstated_schedule(schedule), machine, tensors)
        _refuse_difference(partitioned, regions, again)
    except FuseFlowError as error:
        if isinstance(error, FrontendError):
            raise
        raise FrontendError(f"the text of this program would not compile: {error.message}", hint=HINT, span=error.span) from error
    return text


def _refuse_difference(
    partitioned: PartitionedProgram, regions: Sequence[CompiledRegion], again: Iterable[CompiledRegion]
) -> None:
    pairs = enumerate(zip_longest(map(_graph_of, regions), map(_graph_of, again)))
    first = next((n for n, (written, read) in pairs if written != read), None)
    if first is None:
        return
    behind = regions[first:] or regions[-1:]
    einsum = next(name for region in behind for name in region.einsums)  # a copy is made for the region behind it
    raise FrontendError(
        f"region `{behind[0].name}` has no form in Linalg: what is read would be compiled to another graph",
        hint=HINT,
        span=partitioned.program.defined[einsum].location.span,
    )


def _graph_of(region: CompiledRegion) -> object:
    """Return what is compared of a region. Depths of FIFOs are left out: these are chosen when all is lowered, and again when the
    text is read."""
    return region.fused.order, replace(region.graph, depths=())
