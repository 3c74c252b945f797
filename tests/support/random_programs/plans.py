"""How a program is compiled: which Einsums are fused, and what else a schedule says."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
from hypothesis import strategies as st

from fuseflow.einsum.blocks import propagate_blocks, vectorize
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.nodes import Program
from fuseflow.errors import ProgramError
from fuseflow.schedule import Schedule


def partition(draw: st.DrawFn, program: Program) -> Schedule:
    """Nothing fused, everything, every layer, what the estimate takes, or groups: any that can run one after the other."""
    kind = draw(st.sampled_from(["full"] * 3 + ["best"] + ["groups"] * 4 + ["none", "layerwise"]))
    if kind != "groups":
        return Schedule.fuse(kind)
    names = [e.name for e in program.einsums]
    labels = draw(st.lists(st.integers(0, 2), min_size=len(names), max_size=len(names)))
    if not _runs(program, labels):
        labels = [max(labels[: k + 1]) for k in range(len(labels))]  # slices of the program
    schedule = Schedule.fuse("layerwise")
    for label in sorted(set(labels)):
        schedule = schedule.region(f"g{label}", *(n for n, l in zip(names, labels, strict=True) if l == label)).fuse(f"g{label}")
    return schedule


def _runs(program: Program, labels: list[int]) -> bool:
    """Whether no group would have to be left and entered again."""
    home = dict(zip((e.name for e in program.einsums), labels, strict=True))
    edges = [(home[name], home[e.name]) for e in program.einsums for name in e.operands if name in home]
    return nx.is_directed_acyclic_graph(nx.DiGraph((u, v) for u, v in edges if u != v))


def settings(draw: st.DrawFn, schedule: Schedule, program: Program, reassociates: bool) -> Schedule:
    """What else a schedule says. Global iteration reassociates products: only where that is fair."""
    rare = lambda usual, *others: draw(st.sampled_from([*[usual] * (3 * len(others)), *others]))  # noqa: E731
    blocks = in_blocks(draw, program) if rare(False, True) else ()
    vector = 1 if blocks else rare(1, 2, 3)
    inferred = infer(program)
    vector = vector if _vectorizes(inferred, vector) else 1
    tiles = bool(blocks) or vector > 1
    drawn = replace(
        schedule,
        blocks=blocks,
        vector=vector,
        iteration=rare("factored", "global") if reassociates else "factored",
        copies=draw(st.sampled_from([True] * 11 + [False])),
        locate=draw(st.sampled_from(["auto", "auto", "always", "never"])),
        repeat=rare("value", "reference"),
        drop_zeros=() if tiles else draw(st.sampled_from([(), (), (), droppable(program)])),
    )
    return replace(drawn, rescan="every" if drawn.locate == "always" else "auto")  # nothing more is drawn


def _vectorizes(program: Program, vector: int) -> bool:
    """Whether vectors of this length say anything of a program. Where they cannot be, the compiler says so."""
    try:
        return vectorize(program, vector) != program
    except ProgramError:
        return True


def in_blocks(draw: st.DrawFn, program: Program) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The blocks of the inputs, where some dimensions of some tensors are in blocks and what follows from that."""
    inferred = infer(program)
    places = [(t, d) for t in inferred.tensors for d in range(len(t.shape))]
    for _ in range(draw(st.integers(1, 3)) if places else 0):
        tensor, dimension = draw(st.sampled_from(places))
        block = [*(inferred.declared[tensor.name].block or (1,) * len(tensor.shape))]
        block[dimension] = draw(st.sampled_from([2, 2, 3, 4, 8]))
        try:
            inferred = propagate_blocks(inferred, {tensor.name: tuple(block)})
        except ProgramError:
            continue  # it is in other blocks already, or a tile would have three dimensions
    return tuple((t.name, t.block) for t in inferred.inputs if t.block)


def droppable(program: Program) -> tuple[str, ...]:
    """The outputs that have compressed levels."""
    declared = infer(program).declared
    return tuple(n for n in program.outputs if (format := declared[n].format) is not None and not format.all_dense)
