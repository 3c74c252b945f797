"""The middle of the pipeline, top to bottom: a program and a schedule become regions, each with its fused form, table and graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from fuseflow.compiler.blocks import scheduled_blocks
from fuseflow.compiler.lanes import refuse_missing
from fuseflow.compiler.regions import CompiledRegion, Lowering
from fuseflow.compiler.stored import in_blocks
from fuseflow.einsum.formats import infer
from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.einsum.padding import guarded
from fuseflow.einsum.splits import Refined, is_reshape, refine
from fuseflow.errors import ScheduleError, TensorError, did_you_mean
from fuseflow.estimate import statistics
from fuseflow.schedule import Region, Schedule, form_regions, region_results
from fuseflow.tensors import Format, Tensor


def lower(
    program: Program,
    schedule: Schedule,
    tensors: Mapping[str, Tensor],
    observe: Callable[[Program | CompiledRegion], None] = lambda stage: None,
    regions: tuple[Region, ...] | None = None,
) -> tuple[Program, tuple[CompiledRegion, ...]]:
    """Compile every region, in the order in which they run; also returns the program with all formats inferred.

    `tensors` may be empty: their statistics only rank loop orders. `observe` is called with the program and with every region as
    soon as it is there, so that what came before an error can be seen. `regions` are those of the schedule unless they are given.
    """
    formed = form(program, schedule, regions)
    program, regions = formed.program, formed.regions
    observe(program)
    results, orders = region_results(program, regions), chains(formed, schedule)
    refuse_unread(schedule, regions, results, orders)
    refuse_unwritten(program, schedule, {name for names in results.values() for name in names})
    lowering = begin(formed, schedule, tensors)
    compiled = []
    for region in regions:
        if not results[region.name]:
            continue  # nothing that it computes is ever read
        for made in lowering.region(region, results[region.name], orders.get(region.name, ())):
            compiled.append(made)
            observe(made)
    refuse_missing(schedule, (made.fused for made in compiled if made.einsums))
    return program, tuple(compiled)


def begin(formed: Formed, schedule: Schedule, tensors: Mapping[str, Tensor]) -> Lowering:
    """What is known before the first region is lowered."""
    program = formed.program
    stored = {t.name: t for t in program.inputs}
    views = {e.name: e for e in program.einsums if e.name in formed.refined.views}
    called = {ours: name for name, ours in formed.refined.named.items()}
    return Lowering(program, schedule, formed.declared, stored, statistics(stored, in_blocks(stored, tensors)), views, called)


@dataclass(frozen=True, slots=True)
class Formed:
    """A program cut into regions: as it was `given`, and how it was `refined` to have no reshapes; `program` is that, with all formats
    inferred. `declared` are the tensors whose format the user chose."""

    given: Program
    refined: Refined
    program: Program
    regions: tuple[Region, ...]
    declared: frozenset[str]


def form(program: Program, schedule: Schedule, regions: tuple[Region, ...] | None = None) -> Formed:
    """Cut a program into the regions of the schedule, unless they are given; its reshapes end regions, and vanish."""
    refuse_open(schedule)
    program = with_formats(program, schedule)
    declared = frozenset(t.name for t in program.tensors if t.format is not None)
    given = infer(program)
    regions = form_regions(given, schedule) if regions is None else regions
    if schedule.intermediates == "dense":
        program = with_dense(program, given, regions)
        given = infer(program)
    stated = {e.name for e in program.einsums if e.name in declared and is_reshape(e)}
    refined = refine(program, {*schedule.drop_zeros, *stated})
    program = guarded(scheduled_blocks(infer(refined.program), refined.vanished, schedule))
    declared |= {refined.named.get(name, name) for name in declared}
    return Formed(given, refined, program, _refined_regions(program, refined, regions), declared)


def _refined_regions(program: Program, refined: Refined, regions: tuple[Region, ...]) -> tuple[Region, ...]:
    """The regions of the program without reshapes. A reshape that only names an output again runs where its operand is computed."""
    found: dict[str, tuple[str, ...]] = {}
    home: dict[str, str] = {}
    for region in regions:
        members = refined.members(region.einsums)
        first = program.defined[members[0]] if len(members) == 1 else None
        at = region.name
        if first is not None and first.name in refined.renames and first.operands[0] in home:
            at = home[first.operands[0]]
        found[at] = (*found.get(at, ()), *members)
        home |= dict.fromkeys(members, at)
    return tuple(Region(name, einsums) for name, einsums in found.items() if einsums)


def refuse_open(schedule: Schedule) -> None:
    """What is left to choose is chosen before a program is compiled, from estimates and runs."""
    if schedule.open:
        section = "fuse" if schedule.fuse_regions == ("auto",) else "order_policy"
        raise ScheduleError(
            f"`{section}: auto` is still to be chosen",
            hint="`fuseflow.autoschedule` takes the same arguments, chooses, and compiles",
            span=schedule.place("fuse", "auto"),
        )


def refuse_unread(
    schedule: Schedule, regions: tuple[Region, ...], results: Mapping[str, tuple[str, ...]], orders: Mapping[str, tuple[str, ...]]
) -> None:
    """A region of which nothing is read is not compiled: an order of it would be silently ignored."""
    for region in regions:
        if region.name in orders and not results[region.name]:
            raise ScheduleError(
                f"order of `{region.name}`: nothing that it computes is read, so that it never runs",
                hint="leave the order out, or make a result of it an output of the program",
                span=schedule.place("order", region.name) or schedule.place("order", region.einsums[0]),
            )


def refuse_unwritten(program: Program, schedule: Schedule, written: set[str]) -> None:
    """Zeros are dropped where a result is written."""
    for name in schedule.drop_zeros:
        if name not in written:
            inside = name in program.defined
            message = "it is fused into its consumers and never written" if inside else "the program computes no such tensor"
            hint = "fuse it apart from them (`--fuse`)" if inside else did_you_mean(name, program.defined)
            raise ScheduleError(
                f"zeros of `{name}` cannot be dropped: {message}", hint=hint, span=schedule.place("drop_zeros", name)
            )


def with_formats(program: Program, schedule: Schedule) -> Program:
    """The program with the schedule's formats declared. Raises `ScheduleError` for a tensor that is not there."""
    inferred = infer(program).declared if schedule.formats else {}  # an intermediate keeps the dtype that it would have
    declared = dict(program.declared)
    for name, text in schedule.formats:
        place = schedule.place("format", name)
        if name not in inferred:
            raise ScheduleError(f"format of `{name}`: there is no such tensor", hint=did_you_mean(name, inferred), span=place)
        shape, dtype = inferred[name].shape, inferred[name].dtype
        before = declared.get(name, TensorType(name, shape, dtype=dtype))
        try:
            declared[name] = replace(before, format=Format.parse(text, len(shape)))
        except TensorError as error:
            raise ScheduleError(f"format of `{name}`: {error.message}", hint=error.hint, span=place) from error
    return replace(program, tensors=tuple(declared.values()))


def with_dense(given: Program, inferred: Program, regions: tuple[Region, ...]) -> Program:
    """The program with what goes from region to region stored dense, unless the user declared a format for it."""
    between = {name for names in region_results(given, regions).values() for name in names} - {*given.declared, *given.outputs}
    dense = (t for t in inferred.tensors if t.name in between)
    stored = tuple(replace(t, format=Format.dense(len(t.shape))) for t in dense)
    return replace(given, tensors=(*given.tensors, *stored))


def chains(formed: Formed, schedule: Schedule) -> dict[str, tuple[str, ...]]:
    """The order that the user asked for, by region. An Einsum's order counts for its region if it is alone there."""
    regions = formed.regions
    alone = {r.einsums[0]: r.name for r in regions if len(r.einsums) == 1}
    names = {r.name for r in regions}
    found: dict[str, tuple[str, ...]] = {}
    for target, order in schedule.orders:
        region = target if target in names else alone.get(target)
        place = schedule.place("order", target)
        if target in formed.refined.vanished:
            raise ScheduleError(
                f"order of `{target}`: it has no loops, it is `{formed.refined.vanished[target]}` seen in other dimensions",
                hint=f"order the region that computes `{formed.refined.vanished[target]}`",
                span=place,
            )
        if region is None:
            inside = next((r for r in regions if target in r.einsums), None)
            if inside is not None:
                raise ScheduleError(
                    f"order of `{target}`: it is fused into region `{inside.name}` with {len(inside.einsums) - 1} other Einsums",
                    hint=f"order the region: `--order {inside.name}=...`",
                    span=place,
                )
            raise ScheduleError(
                f"order of `{target}`: no region or Einsum has this name",
                hint=did_you_mean(target, names | alone.keys()),
                span=place,
            )
        if region in found:
            raise ScheduleError(
                f"region `{region}` is ordered twice, as {','.join(found[region])} and as {','.join(order)}", span=place
            )
        found[region] = order
    return found
