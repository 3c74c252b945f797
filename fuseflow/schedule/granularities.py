"""The choices that need no names: `layerwise`, one region for each repeated module, and `full`, as few as there can be."""

from __future__ import annotations

from fuseflow.einsum.nodes import Program
from fuseflow.schedule.module_paths import in_module, reshape_einsums
from fuseflow.schedule.partition import Partition, Region


def layerwise_regions(program: Program) -> tuple[Region, ...]:
    """A region for each layer, cut at reshapes; without modules the same as `full`."""
    labels = layer_labels(program)
    return _grow(program, labels) if labels else full_regions(program)


def full_regions(program: Program) -> tuple[Region, ...]:
    """The largest regions between reshapes, one where there are none."""
    return _grow(program, {e.name: "full" for e in program.einsums})


def _grow(program: Program, labels: dict[str, str]) -> tuple[Region, ...]:
    """Put every Einsum into the region of an operand's producer, else of its label, else of its own; reshapes stand alone. An
    operator without a module of its own may join a producer of any label."""
    partition, alone = Partition(program), reshape_einsums(program)
    for einsum in program.einsums:
        label = labels[einsum.name]
        if einsum.name in alone:
            partition.open(einsum, einsum.name)
            continue
        anywhere = label != layer_of(einsum.location.path)
        beside = [r for r in partition.producers(einsum) if anywhere or r.label == label]
        begun = [r for r in (*beside, *partition.labelled(label)) if r.einsums[0] not in alone]
        partition.join_or_open(einsum, begun, label)
    return partition.regions()


def layer_of(path: str) -> str:
    """The layer that a module path lies in: up to the number in a container, else the first component.

    >>> layer_of("layer1.lin"), layer_of("transformer.h.3.mlp.up"), layer_of("")
    ('layer1', 'transformer.h.3', '')
    """
    words = path.split(".")
    numbered = [n for n, word in enumerate(words) if word.isdigit()]
    return ".".join(words[: numbered[0] + 1] if numbered else words[:1])


def layer_labels(program: Program) -> dict[str, str]:
    """The layer of every Einsum; empty if the program has none. An operator in the `forward` of a parent of layers has the layer
    of what it works on: of its first operand that is computed, or, at the start of the model, of what reads it."""
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
