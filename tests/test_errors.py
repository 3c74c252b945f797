"""Errors: one root, one class for each stage, messages that say what, where and what instead."""

from __future__ import annotations

import pytest

from fuseflow import errors
from fuseflow.errors import FuseFlowError, ProgramError, SimulationError, Span, did_you_mean

CLASSES = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, FuseFlowError)]


def test_a_message_has_a_place_notes_and_a_hint():
    error = ProgramError("no tensor `B`", hint="did you mean `b`?", notes=["in `Y`", "in layer1"], span=Span("p.ein", 3, 7))
    assert str(error) == "p.ein:3:7: error[program]: no tensor `B`\n  note: in `Y`\n  note: in layer1\n  hint: did you mean `b`?"
    assert error.args == ("no tensor `B`",)


def test_a_message_alone():
    assert str(ProgramError("no tensor `B`")) == "error[program]: no tensor `B`"


def test_a_place_may_have_no_column():
    assert str(Span("model.py", 12)) == "model.py:12"


def test_every_class_has_its_own_code():
    assert len({c.code for c in CLASSES}) == len(CLASSES) > 10


@pytest.mark.parametrize("kind", CLASSES, ids=lambda c: c.code)
def test_exit_status_is_2_for_bad_input_and_1_for_runs_and_checks_that_fail(kind):
    assert kind.exit_status == (1 if issubclass(kind, SimulationError | errors.CheckError) else 2)


@pytest.mark.parametrize(
    ("name", "choices", "hint"),
    [
        ("lyaer1", ["layer1", "layer2"], "did you mean `layer1`?"),
        ("relu", ["exp", "cos"], "known: `cos`, `exp`"),
        ("x", [], ""),
        ("zzz", [f"t{n:02}" for n in range(14)], "known: " + ", ".join(f"`t{n:02}`" for n in range(12)) + " and 2 more"),
        ("a", ["b", "b"], "known: `b`"),
        ("CSR", ["coo", "csc", "csr"], "did you mean `csr`?"),
        ("t", ["T", "m"], "did you mean `T`?"),
        ("X1", ["X2", "x1"], "did you mean `x1`?"),
        ("Ab", ["AB", "aB", "ab"], "did you mean `AB`?"),
        ("hbm3", ["hbm2", "hbm2-2400", "hbm3-6400"], "did you mean `hbm3-6400`?"),
        ("DDR4", ["ddr4-3200", "ddr5-4800", "lpddr5-6400"], "did you mean `ddr4-3200`?"),
        ("hbm", ["hbm2-2400", "hbm2"], "did you mean `hbm2`?"),
    ],
)
def test_did_you_mean(name, choices, hint):
    assert did_you_mean(name, choices) == hint
    assert did_you_mean(name, reversed(choices)) == hint
