"""Damaged and made-up files of every kind: each is read or refused in one message, within limits of time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from input_fuzz import campaign, command_lines
from input_fuzz.campaign import content_of, judge, run_in_child
from input_fuzz.kinds import KINDS, Kind, prepare

CORPUS = Path(__file__).parents[1] / "data" / "hostile"
INPUTS = {
    "pt2": 40,
    "json": 60,
    "mlir": 60,
    "yaml": 150,
    "samml": 150,
    "energy": 100,
    "results": 60,
    "artifacts": 80,
    "sparse weights": 100,
    "sweep store": 120,
}
"""Inputs of the kinds that take milliseconds; of the others there are 200, and slow tests read thousands."""
LONGEST = 120
"""The seconds that a command may take, of which other processes may have most."""


@pytest.mark.parametrize("name", KINDS)
def test_no_input_ends_in_anything_but_an_answer(name):
    tally = run_in_child(KINDS[name], 0, range(INPUTS.get(name, 200)))
    assert tally.faults == []
    assert tally.past >= 0.3 * tally.inputs


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_no_input_of_thousands_ends_in_anything_but_an_answer(name, draws):
    """A fault says the number of its input, which `content_of` makes again."""
    numbers = draws(5000)
    tallies = [run_in_child(KINDS[name], 1, numbers[at : at + 5000]) for at in range(0, len(numbers), 5000)]
    assert [fault for tally in tallies for fault in tally.faults] == []
    assert sum(tally.past for tally in tallies) >= 0.3 * len(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_commands_answer(name, draws, tmp_path):
    """They end with 0 or 2, and a graph with 1 as well: one that is well-formed may come to a deadlock, or write outside of its tensor."""
    for number in draws(30):
        folder = tmp_path / str(number)
        folder.mkdir()
        line = command_lines.command_line(KINDS[name], content_of(KINDS[name], 1, number), folder)
        command, variables = [sys.executable, "-m", "fuseflow", *line.words], {**os.environ, **line.variables}
        done = subprocess.run(command, capture_output=True, timeout=LONGEST, cwd=folder, env=variables)
        told = done.stderr.decode("utf-8", "replace")
        assert done.returncode in line.statuses, (number, told[:400])
        assert not [word for word in ("internal error", "Traceback", "\x1b") if word in told], (number, told[:400])


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_once_was_a_fault_is_none(path, tmp_path):
    kind = KINDS[path.parent.name]
    prepare([kind])
    _, accepted, fault = judge(kind, path.read_bytes(), tmp_path)
    assert fault == ""
    assert accepted == path.name.startswith("good")


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_has_good_files_and_a_command_that_reads_it(name, tmp_path):
    """Else its inputs would test nothing."""
    kind = KINDS[name]
    for number, content in enumerate(kind.seeds()):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert judge(kind, content, folder) == (True, True, "")
    (tmp_path / "command").mkdir()
    assert command_lines.command_line(kind, content_of(kind, 0, 0), tmp_path / "command").words


def test_a_fault_of_a_reader_is_seen(monkeypatch):
    """A planted crash, a hang and an error of another kind are told with the input that shows them."""

    def read(content, folder):
        match len(content) % 3:
            case 0:
                os.kill(os.getpid(), 11)
            case 1:
                while True:
                    pass
            case _:
                raise KeyError("planted")

    monkeypatch.setattr(campaign, "SECONDS", 0.1)
    contents = [b"x" * n for n in range(3)]
    planted = Kind("planted", lambda: contents, len, read, repack=lambda _, chance: chance.choice(contents), repacked=1)
    monkeypatch.setitem(KINDS, "planted", planted)
    told = " ".join(run_in_child(planted, 0, range(8)).faults)
    assert "ended with -11" in told
    assert "more than 0.1 s" in told
    assert "KeyError" in told
