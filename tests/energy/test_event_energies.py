"""The file of energies: every constant has a source, and what is wrong in a file of the user is one error with its line."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
from click.testing import CliRunner

from fuseflow.cli.main import main
from fuseflow.energy import PARTS, load_event_energies
from fuseflow.energy.event_energies import EventEnergies, read_event_energies
from fuseflow.errors import EnergyError, FileError

TEXT = (resources.files("fuseflow.energy") / "energy.yaml").read_text(encoding="utf-8")
SPMM = ["docs/example/spmm.ein", "--tensors", "docs/example/tensors.yaml"]


def test_every_part_has_a_technology_and_every_constant_a_source() -> None:
    energies = load_event_energies()
    assert tuple(EventEnergies.model_fields) == PARTS
    for dram in energies.dram:
        parts = energies.parts(dram)
        assert tuple(parts) == PARTS and all(part.technology for part in parts.values())
        constants = [constant for part in parts.values() for constant in part.constants().values()]
        assert len(constants) == 26
        assert all(len(constant.source) > 20 for constant in constants)
    assert energies.operators.mul.value == 3.7 and energies.dram["hbm2"].activation.value == 909


def test_the_parts_of_a_moved_bit_are_the_published_sum() -> None:
    """3.92 pJ a bit in all, of which 1.21 open rows."""
    dram = load_event_energies().dram["hbm2"]
    assert dram.move.value + dram.io.value + dram.ecc.value == pytest.approx(3.92 - 1.21)


def test_memories_have_the_numbers_of_two_macros() -> None:
    """`fakeram45_64x32.lib` and `fakeram45_1024x32.lib` of OpenROAD-flow-scripts: the internal power of `clk`, in femtojoules for 32 bits,
    and `cell_leakage_power`, in nanowatts."""
    energies = load_event_energies()
    for section in (energies.fifos, energies.workspaces):
        assert section.write.value == section.read.value == pytest.approx(795.8 / 1000 / 32, rel=2e-3)
        assert section.sram_write.value == section.sram_read.value == pytest.approx(3566.4 / 1000 / 32, rel=2e-3)
    assert energies.leakage.sram_bit.value == pytest.approx(797_666 / (1024 * 32), rel=2e-3)


WRONG = {
    "a missing constant": ("  mul_8:", "  # mul_8:", "the key `operators.mul_8` is missing", "operators:"),
    "a missing part": ("leakage:\n", "# leakage:\n#", "the key `leakage` is missing", "operators:"),
    "a misspelled constant": ("  div:", "  dive:", "unknown key `operators.dive`", "  dive:"),
    "a misspelled part": ("leakage:", "leak:", "unknown key `leak`", "leak:"),
    "a negative number": ("value: 3.7", "value: -3.7", "`operators.mul.value`: must not be negative, not `-3.7`", "  mul:"),
    "no number": ("value: 3.7", "value: much", "`operators.mul.value`: must be a number, not `much`", "  mul:"),
    "not a finite number": ("value: 3.7", "value: .inf", "`operators.mul.value`: must be a number, not `inf`", "  mul:"),
    "a truth": ("value: 3.7", "value: true", "`operators.mul.value`: must be a number, not `True`", "  mul:"),
    "an unknown mark": ("mark: guessed", "mark: gues", "`control.activity.mark` is none of the marks", "  activity:"),
    "no source": ('"no switching of a circuit was recorded"', '""', "`control.activity.source`", "  activity:"),
    "a misspelled constant of a memory": (
        "    move: {value: 2.24",
        "    mov: {value: 2.24",
        "unknown key `dram.hbm2.mov`",
        "    mov:",
    ),
    "a memory that is no mapping": ("  hbm2-2400-perbank: *hbm2", "  mine: 3", "`dram.mine` is a mapping", "  mine:"),
    "a number alone": ('{value: 0.3, mark: quoted, source: "', '0.3 # "', "`dram.hbm2.io` is a mapping", "    io:"),
}
"""What is replaced in the file of the package, by what; the message; and the line that it names, by its beginning."""


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_with_its_line(name: str) -> None:
    old, new, message, beginning = WRONG[name]
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    if name == "a missing part":
        text = text[: text.index("#  technology")]
    with pytest.raises(EnergyError) as error:
        read_event_energies(text, "own.yaml")
    assert message in error.value.message
    assert error.value.span is not None and error.value.span.file == "own.yaml"
    assert text.splitlines()[error.value.span.line - 1].startswith(beginning)


def test_an_unknown_key_is_told_with_the_nearest() -> None:
    with pytest.raises(EnergyError) as error:
        read_event_energies(TEXT.replace("  div:", "  dib: {}\n  div:", 1), "own.yaml")
    assert (error.value.message, error.value.hint) == ("unknown key `operators.dib`", "did you mean `div`?")
    with pytest.raises(EnergyError, match="unknown key `sram`"):
        read_event_energies(TEXT + "sram:\n  technology: none\n", "own.yaml")


@pytest.mark.parametrize("text", ["", "- 1\n", "operators: {\n", "operators: 3\n"])
def test_what_is_no_file_of_energies_is_an_error(text: str) -> None:
    with pytest.raises(EnergyError):
        read_event_energies(text, "own.yaml")


def test_a_file_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileError, match=r"cannot read the energies"):
        load_event_energies("no/such/file.yaml")


@pytest.mark.parametrize("command", ["run", "estimate"])
def test_a_wrong_file_ends_a_command_before_its_work(command: str, tmp_path: Path) -> None:
    file, out = tmp_path / "own.yaml", tmp_path / "result.json"
    file.write_text(TEXT.replace("value: 3.7", "value: -1", 1))
    result = CliRunner().invoke(main, [command, *SPMM, "--energy-file", str(file), "--json", str(out)])
    assert result.exit_code == 2
    assert (
        f"own.yaml:{TEXT[: TEXT.index('value: 3.7')].count(chr(10)) + 1}:" in result.stderr
        and "must not be negative" in result.stderr
    )
    assert not out.exists()


@pytest.mark.parametrize("options", [["--machine", "comal"], ["--sample", "50%"]])
def test_what_has_no_energy_is_refused(options: list[str]) -> None:
    result = CliRunner().invoke(main, ["run", *SPMM, "--energy", *options])
    assert result.exit_code == 2
    assert "error[" in result.stderr and "hint" in result.stderr
