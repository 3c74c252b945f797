"""Why two neighbouring Einsums run in one region, or in two: the rule of the schedule that decided it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import networkx as nx

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.reshapes import eliminate_reshapes
from fuseflow.schedule.partition import Region
from fuseflow.schedule.regions import find_members, grown_regions, has_regions, layer_labels, reshape_einsums
from fuseflow.schedule.schedule import Schedule


def why_fused(program: Program, schedule: Schedule, producer: str, consumer: str, named_in: str = "the schedule") -> str:
    """Return why two Einsums of one region are in it together. `named_in` names the origin of its regions, as in the message."""
    match schedule.fuse_regions:
        case ("none",):
            return "a softmax or a norm stays together"
        case ("full",):
            return "`full` fuses what no reshape parts"
        case ("layerwise",) if has_regions(program):
            return f"both are in region `{program.defined[producer].location.region}` of the text of the program"
        case ("layerwise",):
            labels = layer_labels(program)
            if not labels:
                return "`layerwise` fuses what no reshape parts: the program has no layers"
            if labels[producer] == labels[consumer]:
                return f"`layerwise` fuses layer `{labels[producer]}`"
            return f"`layerwise` fuses an operator outside of all layers with layer `{labels[producer]}`"
        case names:
            homes = [_owner(program, schedule, names, (e,)) for e in (producer, consumer)]
            if homes == ["", ""]:
                return "a softmax or a norm stays together"
            if "" in homes:
                return f"`{(producer, consumer)[homes.index('')]}` is a functional operator that follows region `{max(homes)}`"
            return f"both are in region `{homes[0]}` of {named_in}"


def why_cut(
    program: Program,
    schedule: Schedule,
    regions: Sequence[Region],
    producer: str,
    consumer: str,
    kept: Collection[str] = (),
    named_in: str = "the schedule",
) -> str:
    """Return why an Einsum and a consumer of it are in different `regions` of the schedule. Tensors in `kept` are stored in the
    user's dimensions. `named_in` names the origin of the regions, as in the message."""
    for name in (producer, consumer):
        if name in reshape_einsums(program, kept):
            return f"`{name}` reshapes its data: a reshape ends a region"
        if program.defined[name].materializes:
            return f"`{name}` keeps entries of a whole result: its operand and its result are stored"
    match schedule.fuse_regions:
        case ("none",):
            return "`none` runs every Einsum alone"
        case ("full",):
            labels: dict[str, str] = {}
        case ("layerwise",) if has_regions(program):
            homes = [next(r.name for r in regions if e in r.einsums) for e in (producer, consumer)]
            return f"regions `{homes[0]}` and `{homes[1]}` of the text of the program meet here"
        case ("layerwise",):
            labels = layer_labels(program)
        case names:
            mates = [next(r.einsums for r in regions if e in r.einsums) for e in (producer, consumer)]
            homes = [_owner(program, schedule, names, einsums) for einsums in mates]
            if homes == ["", ""]:
                return "no named region holds them, so they run alone"
            if "" in homes:
                member, other = (producer, consumer) if homes[0] else (consumer, producer)
                return f"region `{max(homes)}` of {named_in} holds `{member}`, not `{other}`"
            return f"regions `{homes[0]}` and `{homes[1]}` of {named_in} meet here"
    if labels and labels[producer] != labels[consumer]:
        return f"`layerwise` ends a region where a layer ends: `{labels[producer]}`, then `{labels[consumer]}`"
    if any({producer, consumer} <= set(r.einsums) for r in grown_regions(program, kept, layerwise=bool(labels), divided=False)):
        orders = ", or loop orders that contradict each other" if any(e.order for e in program.einsums) else ""
        return f"one region would have too many loops of reductions, or repeat too much{orders}, so it is divided"
    return detour(program, regions, producer, consumer) or f"`{consumer}` had joined a region of another operand"


def detour(program: Program, regions: Sequence[Region], producer: str, consumer: str) -> str:
    """Return why the regions of two Einsums cannot be one: results of the first reach the second through a third region, so that
    one region would be left and entered again. The text is empty if they do not."""
    home = {e: region.name for region in regions for e in region.einsums}
    first, second = home[producer], home[consumer]
    needs: nx.DiGraph[str] = nx.DiGraph()
    for einsum in program.einsums:
        needs.add_edges_from(
            (home[n], home[einsum.name]) for n in einsum.operands if home.get(n, home[einsum.name]) != home[einsum.name]
        )
    needs.remove_edge(first, second)
    if not nx.has_path(needs, first, second):
        return ""
    between = nx.shortest_path(needs, first, second)[1:-1]
    region_list = ", ".join(f"`{name}`" for name in between)
    return f"one region of `{first}` and `{second}` would be left and entered again: {region_list} lies between them"


def _owner(program: Program, schedule: Schedule, names: Sequence[str], einsums: Sequence[str]) -> str:
    """Return the first region of the user that has one of the Einsums, or an empty name."""
    barriers = eliminate_reshapes(program).barriers
    return next((n for n in names if not find_members(program, schedule, n, barriers).einsums.isdisjoint(einsums)), "")
