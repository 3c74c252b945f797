"""In a training step, `layerwise` and `full` end a region where it would compute much of its work again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import ScheduleError
from fuseflow.run.compiled import Compiled

STEP = """
tensor A[12, 12] csr
tensor X[12, 6] dense
tensor W[6, 4] dense
tensor V[4, 3] dense
tensor T[12, 3] dense
H[i, j]      = sum(k) X[i, k] * W[k, j]  @layer1
R[i, j]      = relu(H[i, j])
Q[i, j]      = sum(k) R[i, k] * V[k, j]  @layer2
Z[i, j]      = sum(k) A[i, k] * Q[k, j]  @layer2
m[i]         = max(j) Z[i, j]  @layer2
P[i, j]      = exp(Z[i, j] - m[i])  @layer2
s[i]         = sum(j) P[i, j]  @layer2
loss[]       = sum(i, j) T[i, j] * (Z[i, j] - m[i] - log(s[i]))  @loss
G[i, j]      = P[i, j] / s[i] - T[i, j]  @grad.loss
dQ[i, j]     = sum(k) A[k, i] * G[k, j]  @grad.layer2
dV[i, j]     = sum(k) R[k, i] * dQ[k, j]  @grad.layer2
dR[i, j]     = sum(k) dQ[i, k] * V[j, k]  @grad.layer2
dH[i, j]     = where(R[i, j] <= 0, 0, dR[i, j])
dW[i, j]     = sum(k) X[k, i] * dH[k, j]  @grad.layer1
u1[i, j]     = dW[i, j] * 0.1  @update.W
next.W[i, j] = W[i, j] - u1[i, j]  @update.W
u2[i, j]     = dV[i, j] * 0.1  @update.V
next.V[i, j] = V[i, j] - u2[i, j]  @update.V
output loss, next.W, next.V
"""
"""A step of a network of two layers over a graph. The softmax of its loss reads Z three times."""
LARGEST = """
tensor X[9, 12] dense
tensor W[12] dense
s[i]    = sum(k) X[i, k] * W[k]  @layer1
r[i]    = sum(j) where(s[j] == s[i], 1, 0)  @layer1
next.W[k] = sum(i) X[i, k] * r[i]  @grad.layer1
output next.W
"""
"""A step that compares a sum with itself."""


def tensors() -> dict[str, npt.NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    shapes = {"A": (12, 12), "X": (12, 6), "W": (6, 4), "V": (4, 3), "T": (12, 3)}
    drawn = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return drawn | {"A": drawn["A"] * (rng.random((12, 12)) < 0.4)}


def compiled(schedule: ff.Schedule, text: str = STEP) -> Compiled:
    return ff.compile(parse(text), tensors=tensors(), schedule=schedule)


def regions(program: Compiled) -> dict[str, tuple[str, ...]]:
    return {region.name: region.einsums for region in program.regions}


@pytest.mark.parametrize("granularity", ["layerwise", "full"])
def test_a_granularity_takes_no_longer_than_no_fusion(granularity: str) -> None:
    divided, alone = (compiled(ff.Schedule.fuse(cut)).run() for cut in (granularity, "none"))
    assert divided.check is not None and divided.check.passed
    assert divided.cycles < alone.cycles


def test_a_forward_pass_is_as_large_as_the_user_asks() -> None:
    """The same Einsums, with outputs that are not new values of inputs, are one region, which computes Z again and again."""
    program = compiled(ff.Schedule.fuse("full"), STEP.replace("next.", "new."))
    assert list(regions(program)) == ["full"]
    assert program.run().cycles > 6 * compiled(ff.Schedule.fuse("full")).run().cycles


def test_a_region_ends_at_a_product_that_is_computed_again() -> None:
    whole = regions(compiled(ff.Schedule.fuse("full")))
    assert list(whole)[:3] == ["full", "full-2", "full-3"]
    assert whole["full"] == ("H", "R") and whole["full-2"] == ("Q",) and whole["full-3"][0] == "Z"


def test_regions_have_the_names_of_layers_and_phases() -> None:
    layers: dict[str, tuple[str, ...]] = {}
    for name, einsums in regions(compiled(ff.Schedule.fuse("layerwise"))).items():
        layer = name.partition("-")[0]
        layers[layer] = (*layers.get(layer, ()), *einsums)
    assert layers == {
        "layer1": ("H", "R"),
        "layer2": ("Q", "Z", "m", "P", "s"),
        "loss": ("loss", "G"),
        "grad.layer2": ("dQ", "dV", "dR", "dH", "u2", "next.V"),  # the update goes with its gradient
        "grad.layer1": ("dW", "u1", "next.W"),
    }


def test_a_region_that_the_schedule_names_stays_whole() -> None:
    program = compiled(ff.Schedule.fuse("layerwise").depth("layer2", 64))
    assert regions(program)["layer2"] == ("Q", "Z", "m", "P", "s")


def test_a_region_that_stays_whole_is_noted() -> None:
    (region,) = compiled(ff.Schedule.fuse("full"), STEP.replace("next.", "new.")).regions
    program = compiled(ff.Schedule.fuse("full").order("full", region.fused.order))
    assert list(regions(program)) == ["full"]
    (notice,) = (n for n in program.notices if "one by one" in n)
    assert notice.startswith("region `full` is expected to take ") and notice.endswith("it computes some of them again")


def test_lanes_do_not_change_the_cut() -> None:
    serial, parallel = (compiled(ff.Schedule.fuse("layerwise").par(**lanes)) for lanes in ({}, {"i": 2}))
    assert regions(serial) == regions(parallel)
    run = parallel.run()
    assert run.check is not None and run.check.passed


def test_the_names_of_modules_mean_their_forward_pass() -> None:
    named = regions(compiled(ff.Schedule.fuse("layer1", "grad.layer1", "update.V")))
    assert named["layer1"] == ("H", "R") and named["grad.layer1"] == ("dW",) and named["update.V"] == ("u2", "next.V")
    assert regions(compiled(ff.Schedule.fuse("update")))["update"] == ("u1", "next.W", "u2", "next.V")


@pytest.mark.parametrize(
    ("word", "meant"), [("grad.lyer1", "grad.layer1"), ("update.w", "update.W"), ("grad.layer3", "grad.layer2")]
)
def test_a_wrong_name_is_answered_with_a_near_one(word: str, meant: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        compiled(ff.Schedule.fuse(word))
    assert caught.value.hint == f"did you mean `{meant}`?"


def test_a_region_ends_where_its_refusal_says() -> None:
    rng = np.random.default_rng(0)
    drawn = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("X", (9, 12)), ("W", (12,)))}
    program = ff.compile(parse(LARGEST), tensors=drawn, schedule=ff.Schedule.fuse("full"))
    assert regions(program) == {"full": ("s",), "full-2": ("r", "next.W")}
    assert program.notices[0].startswith("region `full` compares `s` with itself")
    run = program.run()
    assert run.check is not None and run.check.passed
