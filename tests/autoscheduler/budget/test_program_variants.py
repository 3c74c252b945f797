"""The formats, blocks and products that a search under a budget tries, and that it takes them where they are worth it."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.autoscheduler.budget.program_variants import blockings, input_formats, listed_rows, other_kinds, turned_formats
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.scheduler import budget_schedule
from fuseflow.compiler import compile_source
from fuseflow.einsum.parse import parse
from fuseflow.errors import UsageError
from fuseflow.frontend.imported_program import Source
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine
from fuseflow.tensors import Format, pack, repack

RDA = load_machine("rda")
PROGRAM = """
program p
tensor A[192, 192] csr
tensor X[192, 48] dense
tensor W[48, 16] csr
T[i, f] = sum(k) A[i, k] * X[k, f]
U[i, h] = sum(f) T[i, f] * W[f, h]
output U
"""


def source_of(adjacency: np.ndarray) -> Source:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(192, 48)) * (rng.random((192, 48)) < 0.05)
    arrays = {"A": adjacency, "X": features, "W": rng.normal(size=(48, 16)) * (rng.random((48, 16)) < 0.5)}
    formats = {"A": "csr", "X": "dense", "W": "csr"}
    return Source("p", parse(PROGRAM), {name: pack(arrays[name], Format.parse(formats[name], 2)) for name in arrays})


def scattered() -> np.ndarray:
    return (np.random.default_rng(1).random((192, 192)) < 0.05).astype(float)


def in_blocks(size: int) -> np.ndarray:
    return np.kron(np.eye(192 // size), np.ones((size, size)))


def test_formats_follow_the_share_of_zeros() -> None:
    source = source_of(scattered())
    assert input_formats(source, Schedule())["X"] == ("", "csr", "csc", "dcsr")
    assert other_kinds(source, Schedule()) == {"X": ("", "csr"), "A": ("",), "W": ("", "dense")}
    assert input_formats(source, Schedule().format("X", "csr"))["X"] == ("",)


def test_a_large_compressed_input_is_tried_by_its_other_dimension() -> None:
    program = parse(PROGRAM.replace("X[192, 48] dense", "X[192, 48] csf").replace("A[192, 192] csr", "A[192, 192] csc"))
    tensors = dict(source_of(scattered()).tensors)
    stored = {**tensors, "X": repack(tensors["X"], Format.parse("csf", 2)), "A": repack(tensors["A"], Format.parse("csc", 2))}
    kinds = other_kinds(Source("p", program, stored), Schedule())
    assert kinds == {"A": ("", "csr"), "X": ("",), "W": ("", "dense")}  # X stores a sixth of all values


def test_large_compressed_inputs_have_another_dimension_to_begin_with() -> None:
    plain, base = source_of(scattered()), Schedule()
    assert list(turned_formats(plain, base, base)) == []  # X is dense, and stores most of all values
    tensors = {**plain.tensors, "X": repack(plain.tensors["X"], Format.parse("csr", 2))}
    source = Source("p", parse(PROGRAM.replace("X[192, 48] dense", "X[192, 48] csr")), tensors)
    assert list(turned_formats(source, base, base)) == [("A", "csc")]
    assert list(turned_formats(source, base, base.format("A", "csc"))) == [("A", "csr")]
    assert list(turned_formats(source, base.format("A", "csr"), base.format("A", "csr"))) == []


def test_an_input_is_stored_by_columns_where_what_is_looked_up_then_is_preloaded() -> None:
    """By rows, each value of `c` is read once. By columns it is looked up for every column, which is cheap in the chip alone."""
    text = "tensor c[256] dense\ntensor W[256, 2048] csr\nh[k] = relu(c[k])\nO[e] = sum(k) h[k] * W[k, e]\noutput O\n"
    program, rng = parse(text), np.random.default_rng(0)
    arrays = {"c": rng.random(256), "W": rng.random((256, 2048)) * (rng.random((256, 2048)) < 0.1)}
    source = Source("p", program, {t.name: pack(arrays[t.name], t.format or Format.parse("dense", 1)) for t in program.inputs})
    chosen = {
        allow: budget_schedule(
            source,
            Schedule.lower(writers="lanes"),
            RDA,
            BudgetRequest(Budget.of("mul=16,buffer=64KB"), top=0, allow=frozenset(allow)),
        ).chosen
        for allow in (("formats",), ("formats", "preloads"))
    }
    rows, columns = chosen["formats",], chosen["formats", "preloads"]
    assert "csc" not in dict(rows.schedule.formats).values()
    assert dict(columns.schedule.formats) == {"W": "csc"} and columns.schedule.preloads
    assert columns.estimate < 0.75 * rows.estimate


def test_outer_levels_that_list_most_of_their_coordinates_are_tried_dense() -> None:
    rows, columns = np.arange(192) % 3 != 0, np.arange(192) % 3 == 0
    program = parse(PROGRAM.replace("A[192, 192] csr", "A[192, 192] csf").replace("W[48, 16] csr", "W[48, 16] dcsc"))
    tensors = dict(source_of(scattered()).tensors)

    def listed(adjacency: np.ndarray, base: Schedule) -> dict[str, str]:
        stored = {
            **tensors,
            "A": pack(adjacency, Format.parse("csf", 2)),
            "W": repack(tensors["W"], Format.parse("dcsc", 2)),
        }
        return listed_rows(Source("p", program, stored), base)

    assert listed(scattered() * rows[:, None], Schedule()) == {"A": "csr", "W": "csc"}
    assert listed(scattered() * columns[:, None], Schedule()) == {"W": "csc"}
    assert listed(scattered(), Schedule().format("W", "dcsc")) == {"A": "csr"}


@pytest.mark.parametrize(("adjacency", "expected"), [(scattered(), 1), (in_blocks(8), 8), (in_blocks(16), 16)])
def test_a_sparse_input_is_in_the_blocks_that_its_entries_come_in(adjacency: np.ndarray, expected: int) -> None:
    source = source_of(adjacency)
    sizes = {name: b.size for b in blockings(source, source.program, Schedule()) for name, _ in b.axis.dimensions}
    assert sizes.get("A", 1) == expected
    assert sizes["W"] == 16


def test_what_is_allowed_is_taken_where_it_is_faster_and_computes_the_same() -> None:
    source, budget = source_of(scattered()), Budget.parse("mul=4")
    plain = budget_schedule(source, Schedule(), RDA, BudgetRequest(budget, top=0))
    every = frozenset(("formats", "reassociate"))
    choice = budget_schedule(source, Schedule(), RDA, BudgetRequest(budget, allow=every, top=1))
    assert choice.chosen.estimate < plain.chosen.estimate
    assert choice.schedule.associations
    assert dict(choice.schedule.formats)["X"] in ("csr", "csc", "dcsr")
    assert not plain.schedule.formats
    assert not plain.schedule.associations
    assert {lever.name for lever in choice.levers} - {lever.name for lever in plain.levers} == {"formats", "association"}
    run = compile_source(source, choice.schedule, RDA).run()
    assert run.check is not None
    assert run.check.passed


def test_what_cannot_be_allowed_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="`reassociat`") as error:
        BudgetRequest(Budget.parse("small"), allow=frozenset(("reassociat",)))
    assert "reassociate" in str(error.value.hint)


def test_blocks_of_a_third_dimension_of_a_tensor_are_not_tried() -> None:
    """Every dimension of X is a line of values, and a tensor is in blocks along two of them at most."""
    program = parse("tensor X[16, 16, 16]\nY[i, j, k] = X[i, j, k] * X[i, j, k]\noutput Y\n")
    source = Source("cube", program, {"X": pack(np.ones((16, 16, 16)), Format.dense(3))})
    schedule = Schedule()
    for blocking in (all_blocks := blockings(source, source.program, Schedule())):
        schedule = blocking.scheduled(schedule, source.program)
    assert len(all_blocks) == 3
    assert sorted(dict(schedule.blocks)["X"]) == [1, 16, 16]
    choice = budget_schedule(source, Schedule(), RDA, BudgetRequest(Budget.parse("mul=64"), allow=frozenset({"formats"}), top=0))
    assert choice.chosen.refused == ""
