"""Einsums that later regions compute again: the copies, what they save, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show_einsum
from fuseflow.einsum.verify import verify
from fuseflow.errors import ScheduleError
from fuseflow.lower.partition import partition_program
from fuseflow.machine.files import load_machine
from fuseflow.run.result import Result
from fuseflow.schedule import Schedule

LAYER = """
tensor X[6, 4] dense
tensor W[4, 5] dense
tensor D[6, 5] dense
T[i, j] = sum(k) X[i, k] * W[k, j]  @forward
relu[i, j] = relu(T[i, j])  @forward
Y[i] = sum(j) relu[i, j]  @forward
dX[i, k] = sum(j) where(relu[i, j] <= 0, 0, D[i, j]) * W[k, j]  @backward
dW[k, j] = sum(i) X[i, k] * relu[i, j]  @weight
output Y, dX, dW
"""
HEADS = """
tensor X[4, 6] dense
T[i, j] = relu(X[i, j])
S[i, h, d] = T[i, h*3 + d]
Y[i, h] = sum(d) S[i, h, d]
output Y
"""
LARGEST = """
tensor X[6, 4] dense
tensor W[4, 5] dense
S[i, j] = sum(k) X[i, k] * W[k, j]  @scores
m[i] = max(j) S[i, j]  @scores
Y[i, j] = where(S[i, j] == m[i], 1, 0)  @chosen
output Y
"""


def copied(text: str, *names: str, fuse: str = "layerwise") -> tuple[Program, dict[str, tuple[str, ...]]]:
    """Return the program as it is lowered, and its regions."""
    partitioned = partition_program(parse(text), Schedule.fuse(fuse).recompute(*names))
    return partitioned.program, {region.name: region.einsums for region in partitioned.regions}


def run(name: str, *names: str, channels: int = 8) -> Result:
    with open(f"docs/example/{name}.ein", encoding="utf-8") as file:
        program, rng = parse(file.read()), np.random.default_rng(0)
    tensors = {t.name: rng.standard_normal(t.shape).astype(np.float32) for t in program.inputs}
    machine = load_machine("rda", {"memory.channels": channels})
    schedule = Schedule.fuse("layerwise").recompute(*names)
    return ff.compile(program, tensors=tensors, schedule=schedule, machine=machine).run()


def moved(result: Result) -> int:
    return sum(result.stats["bytes"][direction] for direction in ("read", "write"))


def test_each_later_region_has_a_copy_of_what_is_behind() -> None:
    program, regions = copied(LAYER, "relu")
    verify(program)
    assert regions["forward"] == ("T", "relu", "Y")
    assert regions["backward"] == ("T.again", "relu.again", "dX")
    assert regions["weight"] == ("T.again_2", "relu.again_2", "dW")
    assert show_einsum(program.defined["relu.again"]) == "relu.again[i, j] = relu(T.again[i, j])  @forward"
    assert "relu.again_2" in program.defined["dW"].operands


def test_copies_mean_the_same() -> None:
    program, rng = parse(LAYER), np.random.default_rng(0)
    arrays = {t.name: rng.standard_normal(t.shape) for t in program.inputs}
    before, after = evaluate(program, arrays), evaluate(copied(LAYER, "relu")[0], arrays)
    for name in program.outputs:
        np.testing.assert_array_equal(after[name], before[name])


def test_copies_end_at_what_is_stored() -> None:
    program, regions = copied(LAYER, "relu", fuse="none")
    assert regions["Y"] == ("relu.again", "Y")
    assert program.defined["relu.again"].operands == ("T",)
    program, regions = copied(LAYER, "relu", "T", fuse="none")
    assert regions["relu"] == ("T.again", "relu")
    assert regions["Y"] == ("T.again_2", "relu.again", "Y")


def test_a_pattern_names_what_can_be_computed_again() -> None:
    assert copied(LAYER, "*") == copied(LAYER, "relu")
    assert copied(LAYER, "re*") == copied(LAYER, "relu")


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (LAYER, "X", "`X` cannot be computed again: it is an input, which nothing computes"),
        (LAYER, "Y", "`Y` cannot be computed again: it is an output, which is stored in any case"),
        (LAYER, "T", "`T` cannot be computed again: no later region reads it"),
        (LAYER, "rellu", "`rellu` cannot be computed again: there is no such Einsum"),
        (LAYER, "q*", r"no Einsum matches `q\*`"),
        (LAYER, "d*", r"`dX`, which `d\*` matches, cannot be computed again: it is an output"),
        (LARGEST, "S", "`Y` compares `S.again` with what is made of `S`: two sums of the same numbers may differ in rounding"),
    ],
)
def test_refusals(text: str, name: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        copied(text, name)


def test_a_wrong_name_has_a_place_and_a_hint() -> None:
    with pytest.raises(ScheduleError, match=r"(?s)s\.yaml:2.*did you mean `relu`") as caught:
        partition_program(parse(LAYER), Schedule.from_yaml("fuse: layerwise\nrecompute: [rellu]", "s.yaml"))
    assert caught.value.span is not None


def test_a_name_of_a_reshape_means_what_it_shows() -> None:
    _, regions = copied(HEADS, "S", fuse="none")
    assert regions["Y"] == ("T.again", "Y")


@pytest.mark.parametrize("fuse", ["best", "auto"])
def test_regions_that_are_chosen_keep_what_they_read_later(fuse: str) -> None:
    """A cut in which no later region reads the Einsum does not store it anyway."""
    program, rng = parse(LAYER), np.random.default_rng(0)
    tensors = {t.name: rng.standard_normal(t.shape).astype(np.float32) for t in program.inputs}
    schedule = Schedule.fuse(fuse).recompute("relu")
    compile = ff.compile if fuse == "best" else ff.autoschedule
    chosen = compile(program, tensors=tensors, schedule=schedule)
    result = chosen.run()
    assert result.check is not None and result.check.passed
    stored = {name for region in result.regions for name in region.graph.outputs}
    assert "relu" not in stored


def test_what_gelu_saves() -> None:
    stored, again = run("gelu", channels=1), run("gelu", "erf", "exp", channels=1)
    assert (moved(stored), stored.live_bytes) == (1_179_648, 262_144)
    assert (moved(again), again.live_bytes) == (655_360, 0)
    assert again.cycles <= 69_000 < 125_000 <= stored.cycles
    assert again.check is not None and again.check.passed


def test_what_a_small_product_costs() -> None:
    stored, again = run("relu"), run("relu", "relu")
    assert (stored.live_bytes, again.live_bytes) == (147_456, 81_920)
    assert stored.cycles < again.cycles <= 1.015 * stored.cycles
    assert again.check is not None and again.check.passed
