"""Layouts that were chosen before are taken again as long as nothing that they follow from changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.frontend.imported_program import Source
from fuseflow.frontend.sources import input_tensors
from fuseflow.layouts import search
from fuseflow.layouts.kept_layouts import with_layouts
from fuseflow.machine.files import load_machine
from fuseflow.schedule import Schedule

STEP = parse(
    "tensor X[30, 90] csr\ntensor W[90, 4] csr\ntensor G[30, 4] dense\n"
    "next.W[f, h] = W[f, h] * (sum(j) X[j, f] * G[j, h])\noutput next.W"
)


def step(seed: int) -> Source:
    rng = np.random.default_rng(seed)
    arrays = {t.name: np.where(rng.random(t.shape) < 0.2, 1, 0).astype(np.float32) for t in STEP.inputs}
    return Source("step", STEP, input_tensors(arrays, STEP.inputs))


@pytest.fixture
def searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that grows with every search, while layouts are kept in a directory of the test."""
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("FUSEFLOW_MODEL_CACHE_MB")
    searches, choose = list[object](), search.choose_layouts
    monkeypatch.setattr(search, "choose_layouts", lambda *args: searches.append(args) or choose(*args))
    return searches


def test_the_second_compilation_takes_the_layouts_of_the_first(searches: list[object]) -> None:
    schedule, machine = Schedule.fuse("none"), load_machine("rda")
    first, second = with_layouts(step(0), schedule, machine), with_layouts(step(0), schedule, machine)
    assert len(searches) == 1
    assert show(first.program) == show(second.program) and first.notices == second.notices
    assert first.copies == second.copies == {"X.by_columns": "X"}
    with_layouts(step(1), schedule, machine)
    with_layouts(step(0), schedule.format("X", "csc"), machine)
    with_layouts(step(0), schedule, load_machine("ideal"))
    assert len(searches) == 4


def test_layouts_are_chosen_once_for_a_source(searches: list[object]) -> None:
    chosen = with_layouts(step(0), Schedule.fuse("none"), load_machine("rda"))
    assert with_layouts(chosen, Schedule.fuse("full"), load_machine("rda")) is chosen


def test_any_other_program_stays_as_it_is(searches: list[object]) -> None:
    text = show(STEP).replace("next.W", "Y")
    program = ff.compile(parse(text), tensors=dict(step(0).tensors))
    assert show(program.source.program) == text
    assert not searches
