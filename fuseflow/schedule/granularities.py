"""The two granularities that need no names: `layerwise`, one region for each repeated module, and `full`, as few regions as possible.

Both divide a region that would be too large (`schedule.region_size`).
"""

from __future__ import annotations

from collections.abc import Collection

from fuseflow.einsum.nodes import Program
from fuseflow.schedule.module_paths import in_module, lone_einsums
from fuseflow.schedule.partition import Partition, Region
from fuseflow.schedule.region_size import RegionDivider


def layerwise_regions(program: Program, kept: Collection[str]) -> tuple[Region, ...]:
    """Return a region for each layer, cut at reshapes and at Einsums that keep entries of a whole result. Tensors in `kept` are
    stored in the user's dimensions. Without modules, this is the same as `full_regions`."""
    labels = layer_labels(program)
    return _grow(program, labels, kept).regions(RegionDivider(program).pieces) if labels else full_regions(program, kept)


def full_regions(program: Program, kept: Collection[str]) -> tuple[Region, ...]:
    """Return the largest regions between Einsums that must be alone: a single region if there are none."""
    return _grow(program, _one_label(program), kept).regions(RegionDivider(program).pieces)


def undivided_regions(program: Program, layerwise: bool, kept: Collection[str]) -> tuple[Region, ...]:
    """Return the regions of a granularity without the division of those that are too large."""
    labels = layer_labels(program) if layerwise else {}
    return _grow(program, labels or _one_label(program), kept).regions()


def _one_label(program: Program) -> dict[str, str]:
    return {e.name: "full" for e in program.einsums}


def _grow(program: Program, labels: dict[str, str], kept: Collection[str]) -> Partition:
    """Put every Einsum into the region of an operand's producer, else of its label, else into a new one; some stay alone. An
    operator that is not in a layer's module may join a producer of any label."""
    partition, lone = Partition(program), lone_einsums(program, kept)
    for einsum in program.einsums:
        label = labels[einsum.name]
        if einsum.name in lone:
            partition.open(einsum, einsum.name)
            continue
        joins_any_layer = label != layer_of(einsum.location.path)
        neighbours = [r for r in partition.producers(einsum) if joins_any_layer or r.label == label]
        open_regions = [r for r in neighbours if r.einsums[0] not in lone]
        first = partition.first_labelled(einsum, label)
        partition.join_or_open(einsum, open_regions if first is None else [*open_regions, first], label)
    return partition


def layer_of(path: str) -> str:
    """Return the layer that a module path lies in: up to the number in a container, else the first component.

    >>> layer_of("layer1.lin"), layer_of("transformer.h.3.mlp.up"), layer_of("")
    ('layer1', 'transformer.h.3', '')
    """
    words = path.split(".")
    numbered = [n for n, word in enumerate(words) if word.isdigit()]
    return ".".join(words[: numbered[0] + 1] if numbered else words[:1])


def layer_labels(program: Program) -> dict[str, str]:
    """Return the layer of every Einsum; empty if the program has no layers. An operator in the `forward` of a parent of layers
    has the layer of its first operand that is computed, or, at the start of the model, the layer of its reader."""
    layers = {layer_of(e.location.path) for e in program.einsums}
    proper = {a for a in layers if a and not any(in_module(b, a) and a != b for b in layers)}
    if not proper:
        return {}
    label = {e.name: layer_of(e.location.path) for e in program.einsums if layer_of(e.location.path) in proper}
    for einsum in program.einsums:
        computed = [label[name] for name in einsum.operands if name in label]
        if einsum.name not in label and computed:
            label[einsum.name] = computed[0]
    early = {e.name for e in program.einsums} - label.keys()
    for einsum in reversed(program.einsums):
        for name in early.intersection(einsum.operands):
            label[name] = label.get(einsum.name, name)
    return {e.name: label.get(e.name, e.name) for e in program.einsums}
