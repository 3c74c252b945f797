"""Cuts a program as its schedule says, or as the best cut (`best`), which is kept for the next time."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.text import show
from fuseflow.frontend.imported_program import Source
from fuseflow.lower.partition import PartitionedProgram, with_associations, with_later_readers
from fuseflow.lower.primitive_choice import lower_for
from fuseflow.lower.regions import CompiledRegion
from fuseflow.machine.machine import Machine
from fuseflow.package_digest import package_digest
from fuseflow.private_store import PrivateStore
from fuseflow.schedule import Schedule
from fuseflow.schedule.regions import grown_regions, has_regions
from fuseflow.schedule.section_names import is_part, names_in_sections, section_regions

if TYPE_CHECKING:
    from fuseflow.array.settings import ArraySettings

_log = logging.getLogger(__name__)


def lower_cut(
    source: Source, schedule: Schedule, machine: Machine, array: ArraySettings | None = None
) -> tuple[Schedule, PartitionedProgram, Iterable[CompiledRegion]]:
    """Return the schedule, the program in its regions, and these regions, lowered one by one as `lower_for` does. If the schedule
    leaves the regions to the compiler (`fuse: best`), the cut with the fewest expected cycles is taken, on an array of those that fit, and
    the returned schedule names its regions. The regions of `layerwise` are taken instead if the program states its regions itself, or if
    the schedule has splits, stand-ins for intermediates, or names of regions of `layerwise`.

    A cut that cannot be lowered is skipped. If none can be lowered, the error of lowering the operators one by one is raised.
    """
    program, tensors = source.program, source.tensors
    if schedule.leaves_cut and _has_regions_of_layers(program, schedule):
        schedule = replace(schedule, fuse_regions=("layerwise",))
    if not schedule.leaves_cut:
        return schedule, *lower_for(program, schedule, machine, tensors)
    whole = with_associations(program, schedule)
    if len(whole.einsums) == 1:  # there is nothing to cut
        alone = with_later_readers(program, replace(schedule, fuse_regions=section_regions(whole, schedule) or ("none",)))
        return alone, *lower_for(program, alone, machine, tensors)
    store = PrivateStore.open("cuts", ".json")  # to choose takes ten times as long as to compile
    digest = "" if store is None else cut_digest(source, schedule, machine, array)
    known = None if store is None else recall_cut(store, digest, schedule)
    if known is not None:
        _log.debug("the cut of the program is read from the cache: nothing that decides it changed")
        known = with_later_readers(program, known)
        return known, *lower_for(program, known, machine, tensors)
    _log.debug("the cut of the program is chosen anew: no cut of this program, schedule, machine and data is kept")
    from fuseflow.cut.best import lower_best  # takes long to load, and a cut that is kept does without

    lowered = lower_best(source, schedule, machine, array)
    if store is not None:
        store.write(digest, json.dumps([lowered[0].fuse_regions, lowered[0].regions]).encode())
    return lowered


def _has_regions_of_layers(program: Program, schedule: Schedule) -> bool:
    """Return whether a program states its regions, or its schedule is written for the regions of `layerwise`."""
    if has_regions(program) or schedule.splits or schedule.intermediates == "dense":
        return True
    program = with_associations(program, schedule)
    unknown = [name for name in names_in_sections(schedule) if not is_part(program, schedule, name)]
    return bool(unknown) and {region.name for region in grown_regions(program, (), layerwise=True)}.issuperset(unknown)


def cut_digest(source: Source, schedule: Schedule, machine: Machine, array: ArraySettings | None = None) -> str:
    """Return a digest of everything that decides a cut: the program with the modules and regions of its Einsums, the rest of the
    schedule, the machine, the tensors, the array, and the sources of fuseflow."""
    places = [(e.location.path, e.location.region) for e in source.program.einsums]
    contents = {name: tensor.digest() for name, tensor in source.tensors.items()}
    decisive = (package_digest(), show(source.program), places, schedule, machine.settings, contents)
    return hashlib.sha256(repr(decisive if array is None else (*decisive, array)).encode()).hexdigest()


def recall_cut(store: PrivateStore, digest: str, schedule: Schedule) -> Schedule | None:
    """Return the schedule with the regions of the cut that is kept under a digest, or None if there is none."""
    content = store.read(digest)
    if content is None:
        return None
    names, regions = json.loads(content)
    return replace(schedule, fuse_regions=tuple(names), regions=tuple((name, tuple(members)) for name, members in regions))
