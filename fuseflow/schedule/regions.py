"""Divides a program into the regions that its schedule chooses, in an order in which they can run.

Two granularities need no names: `layerwise`, one region for each repeated module, and `full`, as few regions as possible. Both divide
a region that would be too large (`schedule.region_size`). If the user names regions, the rest of the program runs Einsum by Einsum, except
that the Einsums of a softmax or a norm stay together.
"""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass

from fuseflow.einsum.index_names import unused_name
from fuseflow.einsum.nodes import Einsum, Program, index_names
from fuseflow.einsum.phases import GRADIENT, LOSS, UPDATE, carried_inputs, phase_of
from fuseflow.einsum.reshapes import eliminate_reshapes, regroupings
from fuseflow.errors import ScheduleError, did_you_mean
from fuseflow.schedule.partition import Partition, Region, RegionDraft
from fuseflow.schedule.region_size import RegionDivider
from fuseflow.schedule.schedule import Schedule
from fuseflow.schedule.section import KEYWORDS
from fuseflow.schedule.softmax_groups import softmax_groups


def module_paths(program: Program) -> tuple[str, ...]:
    """Return every module path of the program, parents included, in order of appearance."""
    paths = (e.location.path.split(".") for e in program.einsums if e.location.path)
    return tuple(dict.fromkeys(".".join(path[:n]) for path in paths for n in range(1, len(path) + 1)))


def in_module(path: str, module: str) -> bool:
    """Return whether a module path is `module` or inside of it; everything is inside of the model itself, ''."""
    return not module or path == module or path.startswith(module + ".")


def lone_einsums(program: Program, kept: Collection[str]) -> frozenset[str]:
    """Return the names of the Einsums that must be alone in a region: they reshape, or keep entries of a whole result."""
    return reshape_einsums(program, kept) | {e.name for e in program.einsums if e.materializes}


def reshape_einsums(program: Program, kept: Collection[str]) -> frozenset[str]:
    """Return the names of the Einsums that reshape: they read a dimension as two indices. Dimensions that are put together only
    to be taken apart again (a batch and its heads, for a product of matrices) do not count, unless the tensor that has them
    together is among those `kept` as they are."""
    return frozenset(e.name for e in program.einsums if e.reshapes) - regroupings(program, kept)


def grown_regions(program: Program, kept: Collection[str], *, layerwise: bool, divided: bool = True) -> tuple[Region, ...]:
    """Return a region for each layer if `layerwise`, else the largest regions that there may be: a single region, if no Einsum must be
    alone. Without modules there are no layers. Regions that are too large are `divided`. Tensors in `kept` are stored in the user's
    dimensions.

    Every Einsum joins the region of an operand's producer, else of its label, else a new one; some stay alone. An operator that is
    not in a layer's module may join a producer of any label.
    """
    labels = (layer_labels(program) if layerwise else {}) or {e.name: "full" for e in program.einsums}
    own = layers(program)
    partition, lone = Partition(program), lone_einsums(program, kept)
    for einsum in program.einsums:
        label = labels[einsum.name]
        if einsum.name in lone:
            partition.open(einsum, einsum.name)
            continue
        joins_any_layer = label != own[einsum.name]
        neighbours = [r for r in partition.producers(einsum) if joins_any_layer or r.label == label]
        open_regions = [r for r in neighbours if r.einsums[0] not in lone]
        first = partition.first_labelled(einsum, label)
        partition.join_or_open(einsum, open_regions if first is None else [*open_regions, first], label)
    return partition.regions(RegionDivider(program).pieces) if divided else partition.regions()


def layer_of(path: str) -> str:
    """Return the layer that a module path lies in: up to the number in a container, else the first component.

    >>> layer_of("layer1.lin"), layer_of("transformer.h.3.mlp.up"), layer_of("")
    ('layer1', 'transformer.h.3', '')
    """
    words = path.split(".")
    numbered = [n for n, word in enumerate(words) if word.isdigit()]
    return ".".join(words[: numbered[0] + 1] if numbered else words[:1])


def layers(program: Program) -> dict[str, str]:
    """Return the layer in which each Einsum lies, or '' for one that goes with the Einsums that it reads."""
    of_path = layer_of_phase if carried_inputs(program) else layer_of
    return {e.name: of_path(e.location.path) for e in program.einsums}


def layer_of_phase(path: str) -> str:
    """Return the layer that a path of a training step lies in. The backward pass of a layer is a layer of its own, but for that of the
    loss, which has its shape and is read by nothing else before it. An update goes with the gradient that it reads.

    >>> [layer_of_phase(path) for path in ("layer1.lin", "grad.layer1.lin", "grad.loss", "update.layer1.lin.weight")]
    ['layer1', 'grad.layer1', 'loss', '']
    """
    if phase_of(path) == UPDATE:
        return ""
    if phase_of(path) != GRADIENT:
        return layer_of(path)
    layer = layer_of(path.partition(".")[2])
    return f"{GRADIENT}.{layer}" if layer not in ("", LOSS) else layer


def layer_labels(program: Program) -> dict[str, str]:
    """Return the layer of every Einsum; empty if the program has no layers. An operator in the `forward` of a parent of layers
    has the layer of its first operand that is computed, or, at the start of the model, the layer of its reader. In a training
    step, operands of the backward pass count first."""
    own, is_step = layers(program), carried_inputs(program)
    names = set(own.values())
    proper = {a for a in names if a and not any(in_module(b, a) and a != b for b in names)}
    if not proper:
        return {}
    label = {name: layer for name, layer in own.items() if layer in proper}
    backward = {name for name in names if is_step and phase_of(name) == GRADIENT}
    for einsum in program.einsums:
        computed = [label[name] for name in einsum.operands if name in label]
        if einsum.name not in label and computed:
            label[einsum.name] = next((name for name in computed if name in backward), computed[0])
    early = {e.name for e in program.einsums} - label.keys()
    for einsum in reversed(program.einsums):
        for name in early.intersection(einsum.operands):
            label[name] = label.get(einsum.name, name)
    return {e.name: label.get(e.name, e.name) for e in program.einsums}


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
    """Return the Einsums that a name in the schedule means: a region of the file, a module, or an Einsum. A module of the same
    name as an Einsum comes before it; in a list of what a region has, the Einsum comes first. `barriers` are the reshapes that end
    a region. Raises `ScheduleError` for a name that the program does not have, and for a region with such a reshape inside."""
    listed = dict(schedule.regions).get(name)
    paths, einsums, modules = module_paths(program), set[str](), list[str]()
    for word in (name,) if listed is None else listed:
        if word in paths and not (listed and word in program.defined):
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
            if listed is not None:
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
            einsums[unused_name(einsum.name, einsums, "-")] = {einsum.name}
    for name, members in einsums.items():
        refuse_borders(program, name, members, barriers)
    return {name: RegionMembers(frozenset(members), ()) for name, members in einsums.items()}


def refuse_borders(program: Program, name: str, einsums: Set[str], barriers: Set[str]) -> None:
    """Raise `ScheduleError` if a region of the user has other Einsums together with one that ends a region: one of the
    `barriers`, or one that keeps entries of a whole result."""
    own = [e for e in program.einsums if e.name in einsums]
    reshaping = [(e, "reshapes data that cannot be in these dimensions everywhere") for e in own if e.name in barriers]
    ends = [*reshaping, *((e, "keeps entries of a whole result") for e in own if e.materializes)]
    for einsum, reason in ends if len(einsums) > 1 else ():
        raise ScheduleError(
            f"region `{name}` holds `{einsum.name}`, which {reason}: it ends a region",
            hint="fuse what stands before and after it as two regions, or take `layerwise`, which cuts there",
            span=einsum.location.span,
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
    """Put an Einsum into the user's region, which must stay one; `open_regions` is empty before its first Einsum."""
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
    space = {name for a in einsum.accesses if a.tensor in first.einsums for name in a.names}
    used = set(index_names(einsum.indices)).union(*(a.names for a in einsum.accesses))
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


def form_regions(program: Program, schedule: Schedule, kept: Collection[str] = ()) -> tuple[Region, ...]:
    """Return the regions of the program, each Einsum in exactly one, in an order in which they can run. Tensors in `kept` are
    stored in the user's dimensions, so that a reshape of them ends a region (`eliminate_reshapes`).

    Raises `ScheduleError` for a name that the program does not have, for Einsums that two regions claim, for a reshape inside a
    region of the user, and for a region that would have to be left and entered again.
    """
    match schedule.fuse_regions:
        case ("layerwise",) if has_regions(program):
            return named_regions(program, written_regions(program, eliminate_reshapes(program, kept).barriers), kept)
        case ("layerwise" | "full" as granularity,):
            return grown_regions(program, kept, layerwise=granularity == "layerwise")
        case ("none",):
            return named_regions(program, {}, kept)
        case ("best",):
            raise ScheduleError(
                "`fuse: best` is chosen by estimate, for a machine",
                hint="say what is fused: none, layerwise, full, or names of regions",
            )
        case names:
            barriers = eliminate_reshapes(program, kept).barriers
            members = {name: find_members(program, schedule, name, barriers) for name in names}
            return named_regions(program, members, kept)


def grows(program: Program, schedule: Schedule) -> bool:
    """Return whether neither the user nor the program's text says which regions there are, so that they may be divided."""
    return schedule.grows_regions and not (schedule.fuse_regions == ("layerwise",) and has_regions(program))


def region_results(program: Program, regions: tuple[Region, ...]) -> dict[str, tuple[str, ...]]:
    """Return, by region name, the results that it must write, because another region or the user reads them."""
    home = {einsum: region.name for region in regions for einsum in region.einsums}
    wanted = set(program.outputs)
    for einsum in program.einsums:
        wanted |= {name for name in einsum.operands if name not in home or home[name] != home.get(einsum.name)}
    return {region.name: tuple(name for name in region.einsums if name in wanted) for region in regions}
