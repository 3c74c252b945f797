"""Factored and global iteration: both right, and factored does less."""

from __future__ import annotations

import iteration as study
import pytest


def test_triple_product():
    case = study.triple_product(60, 0.1, "ideal", engine="reference")
    assert case.factored.firings < case.globally.firings
    assert case.factored.flops < case.globally.flops
    assert case.factored.cycles < case.globally.cycles


def test_gcn_layers():
    layers = study.gcn_layers("karate", "ideal")
    assert [case.name for case in layers] == ["GCN layer1, karate", "GCN layer2, karate"]
    for case in layers:
        assert case.factored.firings < case.globally.firings
        assert case.factored.flops <= case.globally.flops


def test_wrong_values_are_noticed(monkeypatch: pytest.MonkeyPatch):
    parse = study.parse
    monkeypatch.setattr(study, "parse", lambda text: parse(text.replace("A[i, k] *", "2 * A[i, k] *")))
    with pytest.raises(study.Differs, match="differ from scipy"):
        study.triple_product(10, 0.1, "ideal")
