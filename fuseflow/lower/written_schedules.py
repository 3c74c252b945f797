"""Notices of the regions and loop orders in an MLIR text that are not used, since the schedule of the user overrules them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fuseflow.einsum.nodes import Einsum, Program
from fuseflow.einsum.text import places_of
from fuseflow.fusion import FusedRegion
from fuseflow.lower.regions import CompiledRegion
from fuseflow.schedule import Schedule
from fuseflow.schedule.named_regions import has_regions


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
