"""`fuseflow machines` lists the machines, and prints one as `--machine` reads it."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from fuseflow.cli.main import main
from fuseflow.machine.files import read_machine
from fuseflow.sim import load_machine, machine_names


def fuseflow(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["machines", *words])
    return result.exit_code, result.stdout, result.stderr


def test_the_machines_are_listed() -> None:
    status, out, _ = fuseflow()
    assert status == 0 and [line.split()[0] for line in out.splitlines()] == list(machine_names())


@pytest.mark.parametrize("name", machine_names())
def test_what_is_printed_is_that_machine(name: str) -> None:
    status, out, _ = fuseflow(name)
    assert status == 0 and read_machine(out) == load_machine(name)


def test_a_file_is_printed_with_its_base_and_what_changes(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("base: rda\nlatency: {add: 2}\nlanes: {8: 8}\n")
    status, out, _ = fuseflow(str(path), "--set", "fifo_depth=16")
    assert status == 0 and read_machine(out) == load_machine(path, {"fifo_depth": 16})
    assert "add: 2, mul: 4" in out and "name: mine" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rdaa",), "unknown machine `rdaa`\n  hint: did you mean `rda`"),
        (("--set", "fifo_depth=3"), "`--set` changes a machine, and none is named"),
        (("rda", "--set", "latncy.add=3"), "unknown key `latncy.add`"),
        (("no.yaml",), "cannot read the machine `no.yaml`"),
    ],
)
def test_what_is_no_machine(words: tuple[str, ...], message: str) -> None:
    status, out, err = fuseflow(*words)
    assert (status, out) == (2, "") and message in err


def test_a_base_is_no_setting() -> None:
    result = CliRunner().invoke(main, ["machines", "rda", "--set", "base=rtl"])
    assert result.exit_code == 2
    assert "`base` is a key of machine files" in result.stderr
