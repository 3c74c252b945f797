"""The middle of the pipeline, top to bottom: a program and a schedule become regions, each with its fused form, table and graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from fuseflow.einsum.formats import infer
from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.errors import FusionError, ScheduleError, TensorError, did_you_mean
from fuseflow.estimate import Estimate, TensorStatistics, estimate, statistics
from fuseflow.fusion import FusedRegion, choose_order, fuse
from fuseflow.fusion.verify import verify as verify_region
from fuseflow.samml.nodes import Graph
from fuseflow.samml.verify import verify as verify_graph
from fuseflow.schedule import Region, Schedule, form_regions, region_results
from fuseflow.table import FusionTable, build_table, emit
from fuseflow.tensors import Format, Tensor
from fuseflow.transform import fifos


@dataclass(frozen=True, slots=True)
class CompiledRegion:
    """One region at every stage, with what it is expected to cost."""

    name: str
    einsums: tuple[str, ...]
    fused: FusedRegion
    table: FusionTable
    graph: Graph
    estimate: Estimate


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
    refuse_parallel(schedule)
    declared = {t.name for t in program.tensors if t.format is not None} | dict(schedule.formats).keys()
    program = infer(with_formats(program, schedule))
    observe(program)
    regions = form_regions(program, schedule) if regions is None else regions
    results, orders = region_results(program, regions), chains(program, regions, schedule)
    stored = {t.name: t for t in program.inputs}
    known = statistics(stored, tensors)
    compiled = []
    for region in regions:
        if not results[region.name]:
            continue  # nothing that it computes is ever read
        fused = _fuse(program, region, results[region.name], stored, known, orders.get(region.name, ()), declared)
        table, graph, cost, written = _lower_region(fused, known)
        verify_region(fused)
        verify_graph(graph)
        known |= written
        stored |= {
            t.name: TensorType(t.name, t.shape, t.format, t.dtype, t.fill) for t in graph.tensors if t.name in graph.outputs
        }
        compiled.append(CompiledRegion(region.name, region.einsums, fused, table, graph, cost))
        observe(compiled[-1])
    return program, tuple(compiled)


def _fuse(
    program: Program,
    region: Region,
    results: tuple[str, ...],
    stored: Mapping[str, TensorType],
    known: Mapping[str, TensorStatistics],
    chain: tuple[str, ...],
    declared: set[str],
) -> FusedRegion:
    """The region in its best order. Results that later regions scan keep their declared mode order if any order allows it."""
    fixed = {r for r in results if r in declared}
    formats = {r: program.declared[r].format for r in results}
    scanned = {r for r, f in formats.items() if f is not None and not f.all_dense and r not in program.outputs}
    attempts = dict.fromkeys(
        (pinned, merge) for merge in (True, False) for pinned in (frozenset(fixed | scanned), frozenset(fixed))
    )
    refusals: list[FusionError] = []
    for pinned, merge in attempts:
        try:
            fused = fuse(program, region.name, region.einsums, results, stored, chain=chain, pinned=pinned, merge=merge)
            return choose_order(fused, lambda r: _lower_region(r, known)[2].rank)
        except FusionError as error:
            refusals.append(error)
    raise refusals[len(attempts) // 4]  # that of the fewest wishes, views merged


def _lower_region(
    fused: FusedRegion, known: Mapping[str, TensorStatistics]
) -> tuple[FusionTable, Graph, Estimate, dict[str, TensorStatistics]]:
    table = build_table(fused)
    graph = fifos(emit(table))
    cost, written = estimate(graph, known)
    return table, graph, cost, written


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


def chains(program: Program, regions: tuple[Region, ...], schedule: Schedule) -> dict[str, tuple[str, ...]]:
    """The order that the user asked for, by region. An Einsum's order counts for its region if it is alone there."""
    alone = {r.einsums[0]: r.name for r in regions if len(r.einsums) == 1}
    names = {r.name for r in regions}
    found: dict[str, tuple[str, ...]] = {}
    for target, order in schedule.orders:
        region = target if target in names else alone.get(target)
        place = schedule.place("order", target)
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


def refuse_parallel(schedule: Schedule) -> None:
    """Lanes are part of a schedule, but no pass makes them yet."""
    if schedule.parallel:
        asked = ", ".join(f"{index}={lanes}" for index, lanes in schedule.parallel)
        raise ScheduleError(
            f"parallel lanes ({asked}) are not executed by this version",
            hint="leave `--par` (or `par:`) out; the schedule keeps the key",
            span=schedule.place("par", schedule.parallel[0][0]),
        )
