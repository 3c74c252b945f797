"""The manual is short, README.md lists all of its pages, and the options that it names are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import manual
import pytest
from doc_blocks import PAGES, ROOT

from fuseflow.cli.main import main

MEASURED = [page for page in PAGES if page.parent.name == "measured"]
OTHER_PROGRAMS = {
    "--lint-only": "Verilator",
    "--nthreads": "Dask",
    "--nworkers": "Dask",
    "--split-input-file": "mlir-opt",
    "--unroll-count": "Verilator",
}
"""Options of programs that are not ours, and whose they are."""


def test_the_manual_has_at_most_45_000_words() -> None:
    assert manual.words_of_manual() <= manual.MOST_WORDS == 45_000


def test_the_readme_lists_all_pages() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert manual.with_index(readme) == readme, "rewrite the list: python tools/manual.py --index"
    listed = {(ROOT / target).resolve() for target in re.findall(r"\]\(([^)#:]+\.md)\)", readme)}
    assert [page for page in PAGES if page not in listed and page not in (ROOT / "README.md", ROOT / "docs" / "index.md")] == []


def options(command: click.Command) -> Iterator[str]:
    """The long options of a command and of those below it."""
    for parameter in command.params:
        yield from (name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--"))
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from options(below)


def scripts() -> Iterator[str]:
    """The long options of the scripts that pages may show."""
    for folder in ("tools", "evaluation", "examples", "tests"):
        for file in (ROOT / folder).rglob("*.py"):
            yield from re.findall(r"\"(--[a-z][a-z-]+)", file.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def known() -> set[str]:
    return {*options(main), *scripts(), *OTHER_PROGRAMS, "--help"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_options_that_a_page_names_are_there(page: Path, known: set[str]) -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+(?![\w*-])", page.read_text(encoding="utf-8")))
    assert named <= known, sorted(named - known)


@pytest.mark.parametrize("page", MEASURED, ids=lambda page: page.stem)
def test_what_was_measured_says_when_and_how(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.search(r"20\d\d-\d\d-\d\d", text), "no date"
    assert re.search(r"\b[0-9a-f]{8}\b", text), "no commit"
    assert re.search(r"^```(sh|console)|`(fuseflow|python|pytest|make) ", text, re.MULTILINE), "no command"
