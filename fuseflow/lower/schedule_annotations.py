"""Schedules in the text of a program: a schedule is written into it, which `--emit linalg` prints, and notices say what of it is overruled.

Written are the region of each Einsum, and the loop orders of Einsums and regions. Everything else that a schedule states (lanes, depths,
settings of lowering) is no part of a program, and is passed again with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

from fuseflow.einsum.format_inference import TypedProgram
from fuseflow.einsum.nodes import Einsum, Program, accesses, index_names
from fuseflow.einsum.text import places_of
from fuseflow.fusion import FusedRegion
from fuseflow.lower.partition import PartitionedProgram, declare_formats, with_associations
from fuseflow.lower.regions import CompiledRegion
from fuseflow.schedule import Schedule
from fuseflow.schedule.regions import has_regions


def with_stated_schedule(program: Program, partitioned: PartitionedProgram, regions: Iterable[CompiledRegion]) -> Program:
    """Return a program with the formats and associations of a schedule, the `regions` as lowered, and their loop orders."""
    schedule = partitioned.schedule
    stated = declare_formats(TypedProgram.of(with_associations(program, schedule)), schedule).source
    fused = {region.name: region.fused for region in regions if region.einsums}
    home = {einsum: region.name for region in partitioned.formed for einsum in region.einsums}
    einsums = list[Einsum]()
    for einsum in stated.einsums:
        region = home[einsum.name]
        order = _order_in(einsum, fused.get(region), partitioned.reshapes.statements)
        einsums.append(replace(einsum, location=replace(einsum.location, region=region), order=order))
    asked = dict((*schedule.orders, *program.region_orders))
    orders = tuple((r.name, r.order) for r in fused.values() if r.name in asked or not _is_determined(r, einsums))
    return replace(stated, einsums=tuple(einsums), region_orders=orders)


def unstated_schedule(schedule: Schedule) -> Schedule:
    """Return a schedule without its regions, orders, formats and associations, which a program can state."""
    return replace(schedule, fuse_regions=("layerwise",), regions=(), orders=(), formats=(), associations=(), order_policy="best")


def unstated_sections(schedule: Schedule) -> tuple[str, ...]:
    """Return the names of the sections of a schedule that a program cannot state."""
    lines = unstated_schedule(schedule).to_yaml().splitlines()
    return tuple(line.partition(":")[0] for line in lines if line[:1].isalpha() and not line.startswith("fuse:"))


def _order_in(einsum: Einsum, region: FusedRegion | None, statements: Mapping[str, str]) -> tuple[str, ...]:
    """Return the loops of an Einsum in the order in which they run in its region; () if they are not all loops there."""
    if region is None:
        return ()
    names = region.local_names.get(statements.get(einsum.name, einsum.name), {})
    own = dict.fromkeys((*index_names(einsum.indices), *(v for access in accesses(einsum.body) for v in access.names)))
    places = {v: region.order.index(names[v]) for v in own if names.get(v) in region.order}
    return tuple(sorted(own, key=places.__getitem__)) if places.keys() == own.keys() else ()


def _is_determined(region: FusedRegion, einsums: Iterable[Einsum]) -> bool:
    """Return whether the orders of its Einsums allow only one order of a region."""
    orders = [[region.local_names[e.name][v] for v in e.order] for e in einsums if e.name in region.local_names]
    pairs = {pair for order in orders for pair in combinations(order, 2)}
    apart = all(len(set(order)) == len(order) for order in orders)  # no two loops of an Einsum are one in the region
    return apart and not region.repeated and set(pairwise(region.order)) <= pairs


def overruled_notices(program: Program, schedule: Schedule, regions: Sequence[CompiledRegion]) -> Iterator[str]:
    """Yield a sentence for the regions of the text, and for the loop orders of each region, that the schedule overrules."""
    if has_regions(program) and schedule.fuse_regions != ("layerwise",):
        fused, name = ", ".join(schedule.fuse_regions), _file(program.einsums)
        yield f"`fuse: {fused}` says which regions there are, and not the functions of {name}"
    if notice := policy_notice(program, schedule.order_policy):
        yield notice
        return
    for region in regions:
        overruled = [
            e for name in region.einsums if (e := program.defined.get(name)) is not None and _is_overruled(e, region.fused)
        ]
        if overruled:
            yield f"region `{region.name}` runs in the order of the schedule, and not in that of {places_of(overruled)}"


def policy_notice(program: Program, policy: str) -> str:
    """Return a sentence that the order policy of the user overrules the orders in the text. It is empty if these stay."""
    written = [e for e in program.einsums if e.order]
    return f"`order: {policy}` orders the loops, and not {_file(written)}" if written and policy != "best" else ""


def _is_overruled(einsum: Einsum, region: FusedRegion) -> bool:
    """Return whether the loops of an Einsum run in another order than its text states."""
    names = region.local_names.get(einsum.name, {})
    places = [region.order.index(names[v]) for v in einsum.order if names.get(v) in region.order]
    return places != sorted(places)


def _file(einsums: Iterable[Einsum]) -> str:
    """Return the file that the Einsums were read from, or `the program`."""
    return next((e.location.span.file for e in einsums if e.location.span is not None), "the program")
