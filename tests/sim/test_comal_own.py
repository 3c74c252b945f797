"""The cycles of the public simulator on graphs that fuseflow wrote, with the end of every process, on both simulators."""

from __future__ import annotations

from dataclasses import replace

import comal_own
import pytest

from fuseflow.machine import comal as comal_rules
from fuseflow.sim import Engine
from fuseflow.sim.reference import execute


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_golden_cases(engine: Engine) -> None:
    cases = comal_own.small_cases()
    assert len(cases) == 32
    assert {case.category for case in cases} == {"F2", "F3", "F4", "other"}
    assert [fault for case in cases for fault in comal_own.faults(case, engine)] == []


@pytest.mark.skipif(not comal_own.ALL.is_dir(), reason="../shared/golden/comal_own is not here")
@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_all_golden_cases(engine: Engine) -> None:
    cases = comal_own.all_cases()
    assert len(cases) == 134
    assert [fault for case in cases for fault in comal_own.faults(case, engine)] == []


def test_a_wrong_rule_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its broadcasts the simulator gives other cycles; and a case with another cycle or end is not equal."""
    case = next(case for case in comal_own.small_cases() if case.category == "F2")
    assert comal_own.faults(replace(case, cycles=case.cycles + 1), "reference")
    assert comal_own.faults(replace(case, finish={**case.finish, "root": 3}), "reference")
    monkeypatch.setattr(execute, "broadcast_delays", lambda graph: dict.fromkeys(comal_rules.broadcast_delays(graph), 0))
    assert comal_own.faults(case, "reference")
