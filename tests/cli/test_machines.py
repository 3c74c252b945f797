"""`fuseflow machines` lists the machines, and prints one as `--machine` reads it."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from fuseflow.cli.main import main
from fuseflow.machine.files import read_machine
from fuseflow.memory.table_files import preset, preset_names
from fuseflow.sim import load_machine, machine_names


def fuseflow(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["machines", *words])
    return result.exit_code, result.stdout, result.stderr


def test_the_machines_are_listed() -> None:
    status, out, _ = fuseflow("--wide")
    machines, memories = out.split("\n\n")
    assert status == 0 and [line.split()[0] for line in machines.splitlines()] == list(machine_names())
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in memories.splitlines()[3:]}
    kinds = [(name, each.refresh) for name in preset_names() for each in preset(name).tables if each.refresh != "none"]
    assert list(rows) == kinds and {("hbm4-8000", "per-bank"), ("hbm4-8000", "all-bank")} < set(kinds)
    assert rows["hbm2", "all-bank"][:5] == ["8", "256.0", "17.0", "32.0", "45.0"]
    assert rows["ddr4-3200", "all-bank"][:5] == ["2", "51.2", "16.9", "30.6", "44.4"]
    assert all(len(row) == 8 and 0 < float(share) <= 100 for row in rows.values() for share in row[5:])


def test_a_preset_is_rda_at_that_memory() -> None:
    status, out, _ = fuseflow("lpddr5-6400")
    assert status == 0 and "model: lpddr5-6400, channels: 4" in out and read_machine(out) == load_machine("lpddr5-6400")


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
