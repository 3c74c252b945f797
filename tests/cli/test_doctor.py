"""`fuseflow doctor`: right here, and wrong where something is missing."""

from __future__ import annotations

import importlib.metadata
import sys

import pytest
from click.testing import CliRunner

from fuseflow.cli.actions import doctor
from fuseflow.cli.main import main
from fuseflow.requirements import install_command


def test_this_installation_is_right() -> None:
    result = CliRunner().invoke(main, ["doctor"])
    assert result.exit_code == 0, result.output
    assert "PyTorch model runs" in result.stdout
    assert "wrong" not in result.stdout


def test_a_missing_and_a_different_package(monkeypatch: pytest.MonkeyPatch) -> None:
    right = importlib.metadata.version

    def version(name: str) -> str:
        if name == "networkx":
            raise importlib.metadata.PackageNotFoundError(name)
        return {"torch": "2.13.0+cpu", "numpy": "1.0"}.get(name) or right(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    rows = {row.name: row for row in doctor.check_packages()}
    assert rows["networkx"].outcome.startswith("not installed, wanted ")
    assert rows["numpy"].outcome.startswith("1.0, wanted ")
    assert not rows["networkx"].passed
    assert not rows["numpy"].passed
    assert rows["torch"].passed


@pytest.mark.parametrize(("version", "right"), [("6.33.0", False), ("6.33.6", True), ("7.36.2", True), ("8.0", False)])
def test_a_range_has_both_ends(version: str, right: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: ["protobuf<8,>=6.33.1", "pyarrow==26.0.1; extra == 'parquet'"])
    monkeypatch.setattr(importlib.metadata, "version", lambda _: version)
    _, protobuf = doctor.check_packages()  # Python is the first; an extra is none of its business
    assert protobuf.passed == right
    assert right or protobuf.outcome == f"{version}, wanted <8,>=6.33.1: {install_command('protobuf')}"


@pytest.mark.parametrize(
    ("torch", "torch_mlir", "wrong"),
    [
        ("2.13.0+cpu", "20261001", set()),
        ("2.14.0", "20261001", {"torch"}),
        ("2.13.0", "20261101", {"torch-mlir"}),
        ("2.14.0+cu130", "20261101", {"torch", "torch-mlir"}),
    ],
)
def test_torch_and_torch_mlir_are_this_pair(
    torch: str, torch_mlir: str, wrong: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given, right = {"torch": torch, "torch-mlir": torch_mlir}, importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: given.get(name) or right(name))
    assert {row.name for row in doctor.check_packages() if not row.passed} == wrong


def test_or_tools_that_cannot_be_loaded_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.linear_solver", None)
    result = CliRunner().invoke(main, ["doctor"])
    assert result.exit_code == 1
    assert "wrong: CP-SAT solves" in result.stderr


def test_what_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise ImportError("no compiler")

    monkeypatch.setattr(doctor, "CHECKS", {"numba": broken})
    result = CliRunner().invoke(main, ["doctor"])
    assert result.exit_code == 1
    assert "ImportError: no compiler" in result.stdout
    assert "wrong: numba" in result.stderr
