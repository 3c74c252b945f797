"""The figure of energies: what must hold holds, and what does not is seen."""

from __future__ import annotations

import copy

import energy
import pytest

from fuseflow.energy import load_event_energies


def test_all_that_must_hold_does():
    assert [check.holds for check in energy.checks(energy.collect())] == [True] * 4


def test_a_fused_layer_that_takes_more_is_seen():
    data = copy.deepcopy(energy.collect())
    data["points"]["gcn/partial"]["energy"]["dram"] *= 2
    assert energy.checks(data)[0].holds is False


def test_what_sram_leaks_decides_for_gpt_3_alone():
    """At the leakage that the page names, the partially fused program takes as much as the unfused one."""
    data, usual = energy.collect(), load_event_energies().leakage.sram_bit.value
    assert [family for family in energy.FAMILIES if energy.deciding_line(data, family)] == ["gpt"]
    deciding = energy.deciding_leakage(data, "gpt", energy.REAL)

    def total(fused: str) -> float:
        of, sram = (energy.value(data, "gpt", fused, what, energy.REAL) for what in ("energy", "sram"))
        return of - sram + sram * deciding / usual

    assert total("partial") == pytest.approx(total("unfused"))
    assert f"At {deciding:.2f} nW it takes as much" in energy.table(data)
