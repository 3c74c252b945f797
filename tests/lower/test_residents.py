"""Which tensors can be resident, and what the graphs of a program say of them."""

from __future__ import annotations

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import ScheduleError

CHAIN = """
tensor X[5, 6]
tensor weight[6, 4] csr
tensor V[4, 3] csr
tensor U[3, 3]
T[i, j] = sum(k) X[i, k] * weight[k, j]
Y[i, l] = sum(j) relu(T[i, j]) * V[j, l]
output Y
"""
TWICE = """
tensor X[6, 6]
tensor W1[6, 6]
tensor W2[6, 6]
S[i, j] = sum(k) X[i, k] * W1[k, j]
T[i, j] = sum(k) S[i, k] * W2[k, j]
output T
"""
VIEW = """
tensor X[5, 6]
tensor W[6]
Z[h, d] = W[h*3 + d]
Q[i, h, d] = X[i, h*3 + d]
Y[i, h] = sum(d) Q[i, h, d] * Z[h, d]
output Y
"""


def compiled(text: str, *resident: str, schedule: ff.Schedule | None = None, machine: str = "ideal") -> ff.compiler.Compiled:
    program, rng = parse(text), np.random.default_rng(0)
    tensors = {t.name: (rng.random(t.shape) * (rng.random(t.shape) < 0.6)).astype(np.float32) for t in program.inputs}
    return ff.compile(program, tensors=tensors, schedule=(schedule or ff.Schedule()).lower(resident=resident), machine=machine)


def residents(program: ff.compiler.Compiled) -> list[set[str]]:
    """The resident tensors of each region."""
    return [{t.name for t in region.graph.tensors if t.resident} for region in program.regions]


def test_each_region_has_those_that_it_reads() -> None:
    assert residents(compiled(CHAIN, "weight", "V", schedule=ff.Schedule.fuse("full"))) == [{"weight", "V"}]
    assert residents(compiled(CHAIN, "weight", "V", schedule=ff.Schedule.fuse("none"))) == [{"weight"}, {"V"}]


def test_an_operand_that_a_plan_divides_is_resident_in_all_its_parts() -> None:
    schedule = ff.Schedule.from_yaml("plan: {weight: [{form: 2x2}, {form: elements}]}")
    program = compiled(CHAIN, "weight", schedule=schedule)
    assert residents(program) == [{"weight1", "weight2"}]
    assert residents(compiled(CHAIN, schedule=program.schedule)) == [{"weight1", "weight2"}]
    assert program.run().check.passed  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("names", "message", "hint"),
    [
        (["Weight"], "`Weight` cannot be resident: the program has no such input", "did you mean `weight`?"),
        (["T"], "`T` cannot be resident: it is computed, and the configuration is loaded before anything is", "only inputs"),
        (["weight", "Y"], "`Y` cannot be resident: it is computed", "only inputs"),
        (["U"], "`U` cannot be resident: nothing reads it", "leave it out"),
    ],
)
def test_what_cannot_be_resident(names: list[str], message: str, hint: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        compiled(CHAIN, *names)
    assert caught.value.message.startswith(message) and hint in caught.value.hint


def test_the_place_in_a_schedule_file() -> None:
    schedule = ff.Schedule.from_yaml("fuse: full\nresident:\n  - weight\n  - wieght\n", "s.yaml")
    with pytest.raises(ScheduleError, match=r"s.yaml:4:5: .*`wieght` cannot be resident"):
        compiled(CHAIN, schedule=schedule)


def test_what_is_read_from_a_copy_is_refused() -> None:
    """In this order `weight` is read by columns, which it is not stored in."""
    order = ff.Schedule.fuse("none").order("T", "j,i,k")
    assert any(region.name.startswith("weight.copy") for region in compiled(CHAIN, schedule=order).regions)
    with pytest.raises(ScheduleError, match=r"not read as it is stored, but from the permuted copy `weight\.copy_1_0`") as caught:
        compiled(CHAIN, "weight", schedule=order)
    assert "--format" in caught.value.hint and "--order" in caught.value.hint
    stored = compiled(CHAIN, "weight", schedule=order.format("weight", "csc"))
    assert stored.run().check.passed  # type: ignore[union-attr]


def test_a_region_like_another_one_has_its_own_residents() -> None:
    """What is decided for one of them is not taken for the other, and they do not run alike."""
    plain, one, both = (
        compiled(TWICE, *names, schedule=ff.Schedule.fuse("none"), machine="rda") for names in ((), ("W2",), ("W1", "W2"))
    )
    assert residents(plain) == [set(), set()] and residents(one) == [set(), {"W2"}] and residents(both) == [{"W1"}, {"W2"}]
    assert not plain.regions[1].made_table and not both.regions[1].made_table  # these are the first regions, renamed
    assert [{t.name for t in region.table.tensors if t.resident} for region in both.regions] == residents(both)
    for program in (plain, one, both):
        result = program.run()
        assert result.check is not None and result.check.passed
        assert result.config.bytes == sum(program.memory()[name].nbytes for name in program.schedule.resident)


def test_a_view_of_a_resident_tensor_is_resident() -> None:
    program = compiled(VIEW, "W", schedule=ff.Schedule.fuse("none"), machine="rda")
    (views,) = {frozenset(names) for names in residents(program) if names}
    assert views and views <= {view.name for region in program.regions for view in region.views_before} | {"W"}
    result = program.run()
    assert result.check is not None and result.check.passed and result.config.bytes == 24
    assert program.estimate().config == result.config
