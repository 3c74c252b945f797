"""The documentation does what it shows: Python blocks run, console blocks print what stands below the command, shell blocks succeed, and
no block is left out without one of the stated reasons."""

from __future__ import annotations

import difflib
import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from doc_blocks import ALL, PAGES, REASONS, ROOT, Block, in_language

from fuseflow.array.settings import read_array
from fuseflow.cli.main import main
from fuseflow.machine.files import read_machine
from fuseflow.plan.plan import Plan
from fuseflow.schedule import Schedule
from fuseflow.sparsity.spec import SparseSpec
from fuseflow.sweep.sweep_file import read_sweep
from fuseflow.tensors.tensor_listing import read_entries

RUN = ("python", "console", "sh", "yaml")
"""Languages of which the tests below run every block that has no reason against it."""


def _sweep(text: str) -> object:
    path = Path("sweep.yaml")
    path.write_text(text, encoding="utf-8")
    return read_sweep(path)


def _tensors(text: str) -> object:
    path = Path("tensors.yaml")
    path.write_text(text, encoding="utf-8")
    return read_entries(path, "BC", "the graph", ("order", "levels", "indices"))


READERS: dict[str, Callable[[str], object]] = {
    "array": read_array,
    "machine": read_machine,
    "plan": Plan.from_yaml,
    "schedule": Schedule.from_yaml,
    "sparsity": SparseSpec.from_yaml,
    "sweep": _sweep,
    "tensors": _tensors,
}
"""What reads a YAML block, by the word behind its language: `yaml machine`."""


def by_label(blocks: list[Block]) -> list[object]:
    """Parameters of a test, one for each block."""
    return [pytest.param(b, id=b.label, marks=[pytest.mark.slow] if b.slow else []) for b in blocks]


@pytest.fixture
def in_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory in which the paths of the documentation exist, and where output may go."""
    for name in ("models", "docs", "schedules", "dialects"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


def test_no_block_escapes() -> None:
    """Every block is run, or is the text of a file, or says why not; a directive of the site is run by `make docs`."""
    for block in ALL:
        where = f"{block.page.name}:{block.line}"
        if block.reason is not None:
            assert block.reason in REASONS, f"{where}: the reason must be one of {', '.join(REASONS)}"
        elif block.file is not None:
            assert block.text == (ROOT / block.file).read_text(encoding="utf-8"), f"{where} differs from {block.file}"
        elif not block.language.startswith("{"):
            language = block.language.split(" ")[0]
            assert language in RUN, f"{where}: no test runs a block of `{language}`; put `<!-- not run: REASON -->` above it"


def test_the_slow_ones_are_run_as_they_stand() -> None:
    assert all(block.language in ("sh", "console") for block in ALL if block.slow)


@pytest.mark.usefixtures("in_project")
@pytest.mark.parametrize("page", sorted({b.page for b in in_language("python")}), ids=lambda p: p.stem)
def test_python(page: Path) -> None:
    names: dict[str, object] = {"__name__": page.stem}
    for block in in_language("python"):
        if block.page == page:
            exec(compile(block.text, str(page), "exec"), names)


@pytest.mark.usefixtures("in_project")
@pytest.mark.parametrize("block", by_label(in_language("console")))
def test_console(block: Block, request: pytest.FixtureRequest) -> None:
    assert block.text.startswith("$ ")
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
        printed = output_of(command)
        same = is_shown_by(expected, printed)
        if request.config.getoption("--update-golden") and not same:
            text = block.page.read_text(encoding="utf-8")
            block.page.write_text(
                text.replace(f"$ {command}\n{expected}", f"$ {command}\n{renewed(expected, printed)}"), encoding="utf-8"
            )
            continue
        what = f"prints\n{printed}\ninstead of\n{expected}\nIf that is right, rewrite the page with `pytest --update-golden`"
        assert same, f"{block.page.name}: $ {command}\n{what}"


@pytest.mark.usefixtures("in_project")
@pytest.mark.parametrize("block", by_label(in_language("sh")))
def test_shell(block: Block) -> None:
    for line in block.text.splitlines():
        for command in line.partition(" #")[0].split("&&"):
            program, *words = shlex.split(command)
            if program != "fuseflow":
                run_program(command)
                continue
            result = CliRunner().invoke(main, words)
            assert result.exit_code == 0, f"{command}\n{result.output}"


def run_program(command: str) -> None:
    """Run a command of another program, of those that are installed with fuseflow, or of the system to put files together."""
    assert shlex.split(command)[0] in ("torch-mlir-opt", "cat"), command
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(command, shell=True, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{command}\n{result.stderr}"


def output_of(command: str) -> str:
    """What a command of the documentation prints, without spaces at the ends of lines."""
    program, *words = shlex.split(command)
    if program == "cat":
        return Path(words[0]).read_text(encoding="utf-8")
    if program == "python":
        return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True).stdout
    assert program == "fuseflow", command
    result = CliRunner().invoke(main, words)
    assert "internal error" not in result.output
    return "".join(line.rstrip() + "\n" for line in result.output.splitlines())


def renewed(expected: str, printed: str) -> str:
    """What is printed now, shortened as the documentation is: where a line is only `...`, the others are replaced by the printed lines that
    are most like them, and an end `...` of a line stays where the line still begins so."""
    old, new = expected.splitlines(), printed.splitlines()
    if "..." in old:
        new = with_gaps([most_like(line, new) for line in old if line != "..."], new)
    open_ended = [line for line in old if line.endswith("...") and line != "..."]
    return "".join(next((o for o in open_ended if line.startswith(o[:-3])), line) + "\n" for line in new)


def with_gaps(lines: list[str], printed: list[str]) -> list[str]:
    """Some of the printed lines, with `...` where lines between them, before or behind them are missing."""
    places = [next((n for n, each in enumerate(printed) if is_shown_by(line, each)), 0) for line in lines]
    shown = ["..."] if places and places[0] > 0 else []
    for line, place, following in zip(lines, places, [*places[1:], len(printed)], strict=True):
        shown += [line, "..."] if following != place + 1 else [line]
    return shown


def is_shown_by(expected: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


def most_like(line: str, printed: list[str]) -> str:
    """The printed line that is most like one of the documentation, whatever its spaces, with its end `...` if it has one."""
    if any(is_shown_by(line, each) for each in printed):
        return line
    by_words = {" ".join(each.split()): each for each in printed}
    (words,) = difflib.get_close_matches(" ".join(line.split()), by_words, n=1, cutoff=0) or [""]
    return by_words.get(words, line)


@pytest.mark.usefixtures("in_project")
@pytest.mark.parametrize(
    "block", [pytest.param(b, id=b.label) for b in ALL if b.language.startswith("yaml") and b.reason is None]
)
def test_yaml(block: Block) -> None:
    READERS[block.language.removeprefix("yaml ")](block.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


PLACES = re.compile(r"`((?:fuseflow|tests|tools|evaluation|docs|models|schedules|dialects)/[\w./-]*)`|(?<![\w./])(\.\./[\w./-]*)")
"""Paths in the text of a page: of the project, in backticks, and any that leave the folder of the page."""


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_path_that_is_named_is_in_a_clone(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page.stem == "extending":  # it names files that one adds; its own test looks at the others
        text = re.sub(r"`[^`\n]*`", "", text)
    for project, upwards in PLACES.findall(text):
        path = (ROOT / project if project else page.parent / upwards).resolve()
        assert path.is_relative_to(ROOT), f"{page.name} names {upwards}, which is outside of the project"
        assert path.exists(), f"{page.name} names {project or upwards}, which is not there"


def test_paths_are_seen() -> None:
    assert PLACES.findall("in `tools/bench` and ../shared/golden, or a.b/../c") == [
        ("tools/bench", ""),
        ("", "../shared/golden"),
    ]
