"""Which rooms of the package may import which: the contracts in pyproject.toml, kept by the code and broken by a planted import."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("importlinter")

ROOT = Path(__file__).resolve().parents[1]


def lint(directory: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of a checkout."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-cache"]
    return subprocess.run(command, cwd=directory, env={"PYTHONPATH": str(directory)}, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "fuseflow", tmp_path / "fuseflow", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def plant(checkout: Path, file: str, line: str) -> None:
    path = checkout / "fuseflow" / file
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")


def test_the_package_keeps_the_contracts() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("tensors/pack.py", "from fuseflow.einsum import text"),
        ("report/tables.py", "from fuseflow.cli import main"),
        ("memory/layout.py", "from fuseflow.sim import run"),
        ("fusion/tree.py", "from fuseflow.fusion import fuse"),
    ],
    ids=["upwards at the bottom", "upwards at the top", "a circle of folders", "a circle of files"],
)
def test_a_planted_import_is_refused(checkout: Path, file: str, line: str) -> None:
    plant(checkout, file, line)
    done = lint(checkout)
    assert done.returncode == 1 and "BROKEN" in done.stdout, done.stdout


def test_a_room_without_a_layer_is_refused(checkout: Path) -> None:
    (checkout / "fuseflow" / "attic").mkdir()
    (checkout / "fuseflow" / "attic" / "__init__.py").write_text("", encoding="utf-8")
    done = lint(checkout)
    assert done.returncode == 1 and "attic" in done.stdout, done.stdout


def test_the_page_of_the_layout_has_the_same_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["id"] == "layers")
    page = (ROOT / "docs" / "develop" / "layout.md").read_text(encoding="utf-8")
    table = page.partition("| room | what it does |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = [" | ".join(re.findall(r"`(\w+)`", line.split("|")[1])) for line in table.splitlines()]
    assert rows == layers
