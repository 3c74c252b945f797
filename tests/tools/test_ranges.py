"""The versions that pyproject.toml asks for, and those of requirements.lock."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from versions_check import ROOT, lowest, requirements

PAIR = {"torch", "torch-mlir"}


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_a_package_has_a_range_with_two_ends_and_the_lock_is_in_it(requirement: Requirement) -> None:
    locked = dict(line.split("==") for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#"))
    bounds = {spec.operator: Version(spec.version) for spec in requirement.specifier}
    name = requirement.name.replace(".", "-")
    assert bounds.keys() == ({"=="} if name in PAIR else {">=", "<"})
    assert requirement.specifier.contains(locked[name])
    assert name in PAIR or bounds[">="] < bounds["<"]


def test_lowest_versions_are_the_lower_bounds() -> None:
    lines = lowest()
    assert "protobuf==6.33.1\n" in lines
    assert not [line for line in lines if line.startswith("torch==")]
    assert len(lines) == len({r.name for r in requirements()} - PAIR)
