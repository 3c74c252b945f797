"""The documentation does what it shows: Python blocks run, console blocks print what stands below the command."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from fuseflow.cli.main import main

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


@pytest.mark.usefixtures("in_project")
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.stem)
def test_python(page: Path) -> None:
    names: dict[str, object] = {"__name__": page.stem}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.usefixtures("in_project")
@pytest.mark.parametrize(("page", "block"), CONSOLE, ids=[f"{page.stem}-{n}" for n, (page, _) in enumerate(CONSOLE)])
def test_console(page: Path, block: str) -> None:
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        words = shlex.split(command, comments=True)
        if words[0] == "cat":
            got = Path(words[1]).read_text(encoding="utf-8")
        else:
            assert words[0] == "fuseflow", command
            result = CliRunner().invoke(main, words[1:])
            got = result.output
            assert result.exit_code in (0, 1, 2), got
            assert (result.exit_code != 0) == ("error[" in expected), got
        plain = "".join(line.rstrip() + "\n" for line in got.splitlines())
        same = doctest.OutputChecker().check_output(expected, plain, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        assert same, f"{page.name}: $ {command}\nprints\n{plain}\ninstead of\n{expected}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
