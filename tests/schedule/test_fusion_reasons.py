"""Why Einsums are in one region or in two: the rule is named."""

from __future__ import annotations

import pytest

from fuseflow.einsum.parse import parse
from fuseflow.schedule import Schedule, form_regions
from fuseflow.schedule.fusion_reasons import detour, why_cut, why_fused

LAYERS = parse("""
    tensor A[4, 4] dense
    T[i, j] = sum(k) A[i, k] * A[k, j]  @layer1.lin
    R[i, j] = relu(T[i, j])
    U[i, j] = sum(k) R[i, k] * A[k, j]  @layer2.lin
    m[i]    = max(j) U[i, j]  @layer2
    E[i, j] = exp(U[i, j] - m[i])  @layer2
    Y[i, j] = E[i, j] / (sum(k) E[i, k])  @layer2
    output Y
""")
RESHAPED = parse("""
    tensor A[4, 6] dense
    T[i, j] = relu(A[i, j])
    H[i, h, d] = T[i, h*3+d]
    Y[i, h, d] = exp(H[i, h, d])
    output Y
""")


def cut(schedule: Schedule, producer: str, consumer: str, program=LAYERS) -> str:
    return why_cut(program, schedule, form_regions(program, schedule), producer, consumer)


@pytest.mark.parametrize(
    ("schedule", "producer", "consumer", "why"),
    [
        (Schedule.fuse("none"), "T", "R", "`none` runs every Einsum alone"),
        (Schedule.fuse("layerwise"), "R", "U", "`layerwise` ends a region where a layer ends: `layer1`, then `layer2`"),
        (Schedule.fuse("layer1"), "R", "U", "region `layer1` of the schedule holds `R`, not `U`"),
        (Schedule.fuse("layer2"), "R", "U", "region `layer2` of the schedule holds `U`, not `R`"),
        (Schedule.fuse("layer2"), "T", "R", "no named region holds them, so they run alone"),
        (Schedule.fuse("layer1", "layer2"), "R", "U", "regions `layer1` and `layer2` of the schedule meet here"),
    ],
)
def test_a_cut_has_a_rule(schedule, producer, consumer, why):
    assert cut(schedule, producer, consumer) == why


@pytest.mark.parametrize("schedule", [Schedule.fuse("layerwise"), Schedule.fuse("full"), Schedule.fuse("none")])
def test_a_reshape_ends_a_region(schedule):
    assert (
        cut(schedule, "T", "H", RESHAPED) == cut(schedule, "H", "Y", RESHAPED) == "`H` reshapes its data: a reshape ends a region"
    )


def test_a_region_is_not_left_and_entered_again():
    program = parse("""
        tensor A[4, 6] dense
        T[i, j] = relu(A[i, j])
        H[h, d, j] = T[h*2+d, j]
        G[i, j] = exp(A[i, j]) * (sum(h, d) H[h, d, j])
        Y[i, j] = T[i, j] + G[i, j]
        output Y
    """)
    regions = form_regions(program, Schedule.fuse("full"))
    why = "one region of `full` and `full-2` would be left and entered again: `H` lies between them"
    assert detour(program, regions, "T", "Y") == why_cut(program, Schedule.fuse("full"), regions, "T", "Y") == why
    assert not detour(program, regions, "T", "H")


@pytest.mark.parametrize(
    ("schedule", "producer", "consumer", "why"),
    [
        (Schedule.fuse("none"), "m", "E", "a softmax or a norm stays together"),
        (Schedule.fuse("full"), "R", "U", "`full` fuses what no reshape parts"),
        (Schedule.fuse("layerwise"), "U", "m", "`layerwise` fuses layer `layer2`"),
        (Schedule.fuse("layer1"), "T", "R", "`R` is a functional operator that follows region `layer1`"),
        (Schedule.fuse("layer1"), "m", "E", "a softmax or a norm stays together"),
        (Schedule.fuse("layer2"), "U", "m", "both are in region `layer2` of the schedule"),
    ],
)
def test_what_is_fused_has_a_rule(schedule, producer, consumer, why):
    homes = {e: r.name for r in form_regions(LAYERS, schedule) for e in r.einsums}
    assert homes[producer] == homes[consumer]
    assert why_fused(LAYERS, schedule, producer, consumer) == why


def test_a_program_without_layers_is_said_to_have_none():
    program = parse("tensor a[3] dense\nT[i] = exp(a[i])\nY[i] = T[i] + a[i]\noutput Y\n")
    assert (
        why_fused(program, Schedule.fuse("layerwise"), "T", "Y")
        == "`layerwise` fuses what no reshape parts: the program has no layers"
    )
