"""A program is cut into the regions of its schedule: its formats are inferred, its reshapes taken out, its blocks carried through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fuseflow.einsum.format_inference import TypedProgram
from fuseflow.einsum.nodes import Einsum, Program, TensorType
from fuseflow.einsum.padding import guard_padding
from fuseflow.einsum.reshapes import ReshapeElimination, eliminate_reshapes, is_reshape
from fuseflow.errors import ScheduleError, TensorError, did_you_mean
from fuseflow.lower.blocks import apply_blocks
from fuseflow.schedule import Region, Schedule, form_regions, region_results
from fuseflow.tensors import Format


@dataclass(frozen=True, slots=True)
class PartitionedProgram:
    """A program cut into the `regions` of a `schedule`.

    `written` is the program of the user with the formats of the schedule, `original` the same with all formats inferred. `refined` is it
    without reshapes, and `program` what is lowered: without reshapes, with all formats inferred and in its blocks. `user_formats` names
    the tensors whose format the user chose. `views` are the statements that only see a tensor in other dimensions, by name; `called`
    says how the user calls a tensor to which refining gave a name.
    """

    schedule: Schedule
    source: Program
    original: Program
    reshapes: ReshapeElimination
    program: Program
    regions: tuple[Region, ...]
    user_formats: frozenset[str]
    views: Mapping[str, Einsum]
    user_names: Mapping[str, str]

    @property
    def results(self) -> dict[str, tuple[str, ...]]:
        """By region, the results that it must write."""
        return region_results(self.program, self.regions)


def partition_program(program: Program, schedule: Schedule, regions: tuple[Region, ...] | None = None) -> PartitionedProgram:
    """Cut a program into the regions of the schedule, unless they are given. Its reshapes end regions, and vanish.

    Formats are inferred once; after a rewriting, only those of what it changed. Raises `ProgramError` for a program without a meaning,
    and `ScheduleError` for a schedule that does not fit it.
    """
    refuse_auto(schedule)
    typed = declare_formats(TypedProgram.of(program), schedule)
    written = typed.source
    declared = frozenset(t.name for t in written.tensors if t.format is not None)
    regions = form_regions(typed.program, schedule) if regions is None else regions
    if schedule.intermediates == "dense":
        typed = declare_dense_intermediates(typed, regions)
    stated = {e.name for e in written.einsums if e.name in declared and is_reshape(e)}
    refined = eliminate_reshapes(typed.source, {*schedule.drop_zeros, *stated})
    flat = typed.rewritten(refined.program).program
    blocked = guard_padding(apply_blocks(flat, refined.aliases, schedule))
    return PartitionedProgram(
        schedule=schedule,
        source=written,
        original=typed.program,
        reshapes=refined,
        program=blocked,
        regions=_refined_regions(blocked, refined, regions),
        user_formats=declared | {refined.statements.get(name, name) for name in declared},
        views={e.name: e for e in blocked.einsums if e.name in refined.views},
        user_names={ours: name for name, ours in refined.statements.items()},
    )


def refuse_auto(schedule: Schedule) -> None:
    """Raise `ScheduleError` for a schedule that leaves a choice to `auto`: it is made before a program is compiled, from estimates and
    runs."""
    if schedule.open:
        section = "fuse" if schedule.fuse_regions == ("auto",) else "order_policy"
        raise ScheduleError(
            f"`{section}: auto` is still to be chosen",
            hint="`fuseflow.autoschedule` takes the same arguments, chooses, and compiles",
            span=schedule.place("fuse", "auto"),
        )


def declare_formats(typed: TypedProgram, schedule: Schedule) -> TypedProgram:
    """The program with the schedule's formats declared. Raises `ScheduleError` for a tensor that is not there."""
    if not schedule.formats:
        return typed
    inferred, declared = typed.program.declared, dict(typed.source.declared)
    for name, text in schedule.formats:
        place = schedule.place("format", name)
        if name not in inferred:
            raise ScheduleError(f"format of `{name}`: there is no such tensor", hint=did_you_mean(name, inferred), span=place)
        shape, dtype = inferred[name].shape, inferred[name].dtype  # an intermediate keeps the dtype that it would have
        before = declared.get(name, TensorType(name, shape, dtype=dtype))
        try:
            declared[name] = replace(before, format=Format.parse(text, len(shape)))
        except TensorError as error:
            raise ScheduleError(f"format of `{name}`: {error.message}", hint=error.hint, span=place) from error
    return typed.rewritten(replace(typed.source, tensors=tuple(declared.values())))


def declare_dense_intermediates(typed: TypedProgram, regions: tuple[Region, ...]) -> TypedProgram:
    """The program with what goes from region to region stored dense, unless the user declared a format for it."""
    program = typed.source
    between = {name for names in region_results(program, regions).values() for name in names}
    between -= {*program.declared, *program.outputs}
    dense = (t for t in typed.program.tensors if t.name in between)
    stored = tuple(replace(t, format=Format.dense(len(t.shape))) for t in dense)
    return typed.rewritten(replace(program, tensors=(*program.tensors, *stored)))


def _refined_regions(program: Program, refined: ReshapeElimination, regions: tuple[Region, ...]) -> tuple[Region, ...]:
    """The regions of the program without reshapes. A reshape that only names an output again runs where its operand is computed."""
    defined = program.defined
    members: dict[str, tuple[str, ...]] = {}
    home: dict[str, str] = {}
    for region in regions:
        statements = refined.members(region.einsums)
        only = defined[statements[0]] if len(statements) == 1 else None
        at = region.name
        if only is not None and only.name in refined.renames and only.operands[0] in home:
            at = home[only.operands[0]]
        members[at] = (*members.get(at, ()), *statements)
        home |= dict.fromkeys(statements, at)
    return tuple(Region(name, einsums) for name, einsums in members.items() if einsums)
