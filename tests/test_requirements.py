"""The command that installs what is missing names packages, never fuseflow, and every hint of the package has it from one place."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

import fuseflow
from fuseflow.requirements import install_command

PACKAGE = Path(fuseflow.__file__).parent
ROOT = Path(__file__).parents[1]


@pytest.fixture
def required(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["numpy<3,>=2.2", 'pyarrow==26.0.1; extra == "parquet"', "pyarrow-hotfix==1", "ruamel.yaml", "ortools<10,>=9.15"]
    monkeypatch.setattr(importlib.metadata, "requires", {"fuseflow": lines}.__getitem__)


@pytest.mark.usefixtures("required")
@pytest.mark.parametrize(
    ("package", "requirement"),
    [
        ("pyarrow", "pyarrow==26.0.1"),  # an extra's, without its condition
        ("ortools", "'ortools<10,>=9.15'"),  # a shell would take the bare text as redirections
        ("ruamel.yaml", "ruamel.yaml"),
        ("pyarrow-hotfix", "pyarrow-hotfix==1"),
        ("nobody-asks-for-it", "nobody-asks-for-it"),
    ],
)
def test_a_package_has_the_versions_that_are_required(package: str, requirement: str) -> None:
    assert install_command(package).endswith(f" -m pip install {requirement}")


def test_this_python_installs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/my tools/bin/python")
    assert shlex.split(install_command("click"))[:4] == ["/my tools/bin/python", "-m", "pip", "install"]


def test_a_checkout_that_is_not_installed_has_the_bare_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", requires)
    assert install_command("pyarrow", "click").endswith(" install pyarrow click")


def hints(path: Path) -> Iterator[str]:
    """The texts of a module, without those that only say what it is about, that tell to install something with pip."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    spoken = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in spoken
            and "pip install" in node.value
        ):
            yield f"{path.name}:{node.lineno}: {node.value}"


def test_every_hint_of_the_package_comes_from_here() -> None:
    modules = [*PACKAGE.rglob("*.py"), *(PACKAGE / "dialects").resolve().rglob("*.py"), *(ROOT / "tools").rglob("*.py")]
    assert [hint for path in modules for hint in hints(path)] == []


def test_every_package_that_a_hint_names_is_required() -> None:
    calls = re.compile(r"install_command\(['\"]([\w.-]+)['\"]\)")
    named = {name for path in PACKAGE.rglob("*.py") for name in calls.findall(path.read_text(encoding="utf-8"))}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    assert len(named) >= 5
    assert named <= {re.split("[=<>]", requirement)[0] for requirement in required}


def test_no_text_tells_to_install_fuseflow_from_an_index() -> None:
    """Nor a page, a model or a notebook."""
    folders = (PACKAGE, ROOT / "dialects", ROOT / "docs", ROOT / "models", ROOT / "examples", ROOT / "schedules", ROOT / "tools")
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(path for folder in folders for path in folder.rglob("*"))]
    texts = {
        path: path.read_text(encoding="utf-8") for path in files if path.suffix in (".py", ".md", ".ipynb", ".jinja", ".yaml")
    }
    index = re.compile(r"pip install[^\n`]*[ '\"]fuseflow(?![\w./-])")
    found = [f"{path.relative_to(ROOT)}: {match[0]}" for path, text in texts.items() for match in index.finditer(text)]
    assert found == []
