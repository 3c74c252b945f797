"""Regions that the user names. The rest of a program runs Einsum by Einsum, except that the Einsums of a softmax or a norm stay
together."""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass
from itertools import count

from fuseflow.einsum.nodes import Einsum, Program, accesses, index_names
from fuseflow.errors import ScheduleError, did_you_mean
from fuseflow.schedule.entries import KEYWORDS
from fuseflow.schedule.module_paths import in_module, lone_einsums, module_paths
from fuseflow.schedule.partition import Partition, Region, RegionDraft
from fuseflow.schedule.schedule import Schedule
from fuseflow.schedule.softmax_groups import softmax_groups


@dataclass(frozen=True, slots=True)
class RegionMembers:
    """The members of a region of the user: its Einsums, and the modules by whose names they were found."""

    einsums: frozenset[str]
    modules: tuple[str, ...]


def named_regions(program: Program, members: dict[str, RegionMembers], kept: Collection[str]) -> tuple[Region, ...]:
    """Return the regions of the user, by name, and between them the regions of all other Einsums. Tensors in `kept` are stored in
    the user's dimensions."""
    owner = _owners(program, members)
    lone = lone_einsums(program, kept)
    groups = {name: group for group in softmax_groups(program) for name in group}
    partition = Partition(program)
    for einsum in program.einsums:
        name = einsum.name
        if name in owner:
            own = members[owner[name]].einsums
            _put_into(partition, einsum, owner[name], [r for r in partition.labelled(owner[name]) if r.einsums[0] in own])
            continue
        if einsum.materializes:
            partition.open(einsum, name)
            continue
        home = None if name in lone else _functional_home(partition, einsum, members)
        if home is not None and partition.may_join(einsum, home):
            partition.join(einsum, home)
            continue
        group = groups.get(name, (name,))
        label = _group_name(group)
        mates = [r for r in partition.labelled(label) if r.einsums[0] in group and not program.defined[r.einsums[0]].materializes]
        partition.join_or_open(einsum, mates, label)
    return partition.regions()


def find_members(program: Program, schedule: Schedule, name: str, barriers: Set[str]) -> RegionMembers:
    """Return the Einsums that a name in the schedule means: a region of the file, a module, or an Einsum. `barriers` are the
    reshapes that end a region. Raises `ScheduleError` for a name that the program does not have, and for a region with such a
    reshape inside."""
    words = dict(schedule.regions).get(name, (name,))
    paths, einsums, modules = module_paths(program), set[str](), list[str]()
    for word in words:
        if word in paths:
            modules.append(word)
            einsums |= {e.name for e in program.einsums if in_module(e.location.path, word)}
        elif word in program.defined:
            einsums.add(word)
        elif written := {e.name for e in program.einsums if e.location.region == word}:
            einsums |= written
        else:
            candidates = [
                *paths,
                *program.defined,
                *dict.fromkeys(e.location.region for e in program.einsums if e.location.region),
            ]
            if name in dict(schedule.regions):
                problem, span = f"no module or Einsum `{word}` for region `{name}`", schedule.place("regions", name)
            else:
                problem, span = f"no module, Einsum or region `{word}` to fuse", schedule.place("fuse", name)
                candidates += [*dict(schedule.regions), *KEYWORDS]
            raise ScheduleError(problem, hint=did_you_mean(word, candidates), span=span)
    refuse_borders(program, name, einsums, barriers)
    return RegionMembers(frozenset(einsums), tuple(modules))


def has_regions(program: Program) -> bool:
    """Return whether the text of a program puts Einsums into regions."""
    return any(e.location.region for e in program.einsums)


def written_regions(program: Program, barriers: Set[str]) -> dict[str, RegionMembers]:
    """Return the regions into which the text of a program puts its Einsums, by name. An Einsum that it puts into none is a region
    alone. Raises `ScheduleError` for a region with one of the `barriers` inside."""
    einsums: dict[str, set[str]] = {}
    for einsum in program.einsums:
        if einsum.location.region:
            einsums.setdefault(einsum.location.region, set()).add(einsum.name)
    for einsum in program.einsums:
        if not einsum.location.region:
            name = next(n for k in count(1) if (n := einsum.name if k == 1 else f"{einsum.name}-{k}") not in einsums)
            einsums[name] = {einsum.name}
    for name, members in einsums.items():
        refuse_borders(program, name, members, barriers)
    return {name: RegionMembers(frozenset(members), ()) for name, members in einsums.items()}


def refuse_borders(program: Program, name: str, einsums: Set[str], barriers: Set[str]) -> None:
    """Raise `ScheduleError` if a region of the user has other Einsums together with one that ends a region: one of the
    `barriers`, or one that keeps entries of a whole result."""
    if len(einsums) > 1 and (inside := barriers & einsums):
        einsum = min((program.defined[s] for s in inside), key=program.einsums.index)
        raise ScheduleError(
            f"region `{name}` holds `{einsum.name}`, which reshapes data that cannot be in these dimensions everywhere: it ends a region",
            hint="fuse what stands before and after it as two regions, or take `layerwise`, which cuts there",
            span=einsum.location.span,
        )
    materializing = next((e for e in program.einsums if e.name in einsums and e.materializes), None)
    if len(einsums) > 1 and materializing is not None:
        raise ScheduleError(
            f"region `{name}` holds `{materializing.name}`, which keeps entries of a whole result: it ends a region",
            hint="fuse what stands before and after it as two regions, or take `layerwise`, which cuts there",
            span=materializing.location.span,
        )


def _owners(program: Program, members: dict[str, RegionMembers]) -> dict[str, str]:
    """Return, by Einsum, the region of the user that has it. Raises `ScheduleError` if there are two."""
    owner = dict[str, str]()
    for einsum in program.einsums:
        for name, region in members.items():
            if einsum.name in region.einsums and owner.setdefault(einsum.name, name) != name:
                raise ScheduleError(
                    f"regions `{owner[einsum.name]}` and `{name}` both hold `{einsum.name}`", hint="name one of them"
                )
    return owner


def _put_into(partition: Partition, einsum: Einsum, name: str, open_regions: list[RegionDraft]) -> None:
    """Put an Einsum into the user's region, which must stay one. `open_regions` is empty before its first Einsum. Raises
    `ScheduleError` if it cannot join."""
    for region in open_regions:
        if not partition.may_join(einsum, region):
            operand = partition.detour(einsum, region)
            raise ScheduleError(
                f"region `{name}` would be left and entered again: its `{einsum.name}` needs `{operand}` from outside, "
                f"which needs results of the region",
                hint=f"take `{operand}` into the region, or leave `{einsum.name}` out",
                span=einsum.location.span,
            )
        return partition.join(einsum, region)
    return partition.open(einsum, name)


def _functional_home(partition: Partition, einsum: Einsum, members: dict[str, RegionMembers]) -> RegionDraft | None:
    """Return the user's region that a functional operator follows (a relu behind a layer), or None. The operator is in the
    `forward` of a parent of a module of the region, its first computed operand is in the region, and it stays in that operand's
    index space."""
    first = next(partition.producers(einsum), None)
    if first is None or first.label not in members:
        return None
    path = einsum.location.path
    if not any(in_module(module, path) and module != path for module in members[first.label].modules):
        return None
    space = {name for a in accesses(einsum.body) if a.tensor in first.einsums for name in a.names}
    used = set(index_names(einsum.indices)).union(*(a.names for a in accesses(einsum.body)))
    return first if used <= space else None


def _group_name(names: tuple[str, ...]) -> str:
    """Return the leading words that the names of a group share, else its last name.

    >>> _group_name(("softmax.max", "softmax.exp")), _group_name(("m", "E", "Y"))
    ('softmax', 'Y')
    """
    common = list[str]()
    for words in zip(*(name.split(".") for name in names), strict=False):
        if len(set(words)) > 1:
            break
        common.append(words[0])
    return ".".join(common) or names[-1]
