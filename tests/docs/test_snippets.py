"""The documentation does what it shows: Python blocks run, console blocks print what stands below the command."""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from fuseflow.cli.main import main
from fuseflow.schedule import Schedule
from fuseflow.sim.machine.files import read_machine

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


CONSOLE = [(page, block) for page in PAGES for block in blocks(page, "console")]


@pytest.fixture
def in_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory in which the paths of the documentation exist, and where output may go."""
    for name in ("models", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("fuseflow.cli.progress.EVERY", float("inf"))  # how far a sweep is depends on the time that it takes


@pytest.mark.usefixtures("in_project")
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.stem)
def test_python(page: Path) -> None:
    names: dict[str, object] = {"__name__": page.stem}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.usefixtures("in_project")
@pytest.mark.parametrize(("page", "block"), CONSOLE, ids=[f"{page.stem}-{n}" for n, (page, _) in enumerate(CONSOLE)])
def test_console(page: Path, block: str, request: pytest.FixtureRequest) -> None:
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        printed = output_of(command)
        if request.config.getoption("--update-golden"):
            text = page.read_text(encoding="utf-8")
            page.write_text(
                text.replace(f"$ {command}\n{expected}", f"$ {command}\n{renewed(expected, printed)}"), encoding="utf-8"
            )
            continue
        same = doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        what = f"prints\n{printed}\ninstead of\n{expected}\nIf that is right, rewrite the page with `pytest --update-golden`"
        assert same, f"{page.name}: $ {command}\n{what}"


def output_of(command: str) -> str:
    """What a command of the documentation prints, without spaces at the ends of lines."""
    program, *words = shlex.split(command)
    if program == "cat":
        return Path(words[0]).read_text(encoding="utf-8")
    assert program == "fuseflow", command
    result = CliRunner().invoke(main, words)
    assert "internal error" not in result.output
    return "".join(line.rstrip() + "\n" for line in result.output.splitlines())


def renewed(expected: str, printed: str) -> str:
    """What is printed now; lines that end in `...` in the documentation stay, where they still begin like the new ones."""
    open_ended = [line for line in expected.splitlines() if line.endswith("...")]
    lines = [next((o for o in open_ended if o != "..." and line.startswith(o[:-3])), line) for line in printed.splitlines()]
    return "".join(line + "\n" for line in lines)


@pytest.mark.parametrize(("page", "reader"), [("cli", read_machine), ("schedule", Schedule.from_yaml)])
def test_yaml(page: str, reader: Callable[[str], object]) -> None:
    texts = blocks(ROOT / "docs" / f"{page}.md", "yaml")
    assert texts
    for text in texts:
        reader(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
