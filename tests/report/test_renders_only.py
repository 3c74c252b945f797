"""Reports render values: nothing in them compiles, simulates or runs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import fuseflow

PACKAGE = Path(fuseflow.__file__).parent
REPORTS = sorted((PACKAGE / "report").rglob("*.py"))
WORKS = (
    "fuseflow.sim.engine",
    "fuseflow.sim.reference",
    "fuseflow.sim.run",
    "fuseflow.sim.traced_rerun",
    "fuseflow.lower.program",
)
"""Modules whose functions compile or simulate."""
FUNCTIONS = {"autoschedule", "choose", "compile", "compile_source", "load", "lower", "simulate"}
"""Functions that do, of packages that hold values too."""


def imported(path: Path) -> set[tuple[str, str]]:
    """The names that a file imports, each with the module that it is from."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names |= {(node.module or "", alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {(alias.name, "") for alias in node.names}
    return names


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_reports_import_nothing_that_works(path: Path):
    for module, name in imported(path):
        assert not f"{module}.{name}".startswith(WORKS), f"{path.name} imports {module}.{name}"
        assert not (module.startswith("fuseflow") and name in FUNCTIONS), f"{path.name} imports {name} from {module}"


def test_the_rule_sees_imports():
    """The modules that do the work of explanations break the rule."""
    assert ("fuseflow.sim.traced_rerun", "find_critical_path") in imported(PACKAGE / "explain" / "cycles.py")
    assert ("fuseflow.sim", "simulate") in imported(PACKAGE / "explain" / "cycles.py")
