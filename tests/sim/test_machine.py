"""Machines: shipped ones, files, and what is refused with which hint."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from fuseflow.errors import FileError, MachineError
from fuseflow.sim import Machine, load_machine, machine_names
from fuseflow.sim.machine import read_machine


def test_the_ideal_machine() -> None:
    assert "ideal" in machine_names()
    machine = load_machine("ideal")
    assert machine == Machine(name="ideal")
    assert (machine.fifo_depth, machine.memory) == (None, "ideal")
    assert {machine.latency.of(u) for u in ("add", "mul", "div", "transcendental", "logic", "memory", "default")} == {1}


def test_every_shipped_machine_reads() -> None:
    assert [load_machine(name).name for name in machine_names()] == list(machine_names())


def test_units_fall_back_to_the_default() -> None:
    machine = read_machine("name: m\nlatency: {default: 2, div: 12}\ninterval: {memory: 3}\nfifo_depth: 64\n")
    assert [machine.latency.of(u) for u in ("add", "div", "default")] == [2, 12, 2]
    assert [machine.interval.of(u) for u in ("memory", "mul")] == [3, 1]
    assert machine.fifo_depth == 64


def test_a_machine_is_a_value() -> None:
    with pytest.raises(ValidationError):
        load_machine("ideal").fifo_depth = 3  # type: ignore[misc]


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nclock_ghz: 2.5\n")
    assert load_machine(path) == Machine(name="mine", clock_ghz=2.5)
    assert load_machine(str(path)).name == "mine"


def test_unknown_and_missing_machines(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="unknown machine `idael`") as caught:
        load_machine("idael")
    assert caught.value.hint == "did you mean `ideal`?"
    with pytest.raises(FileError, match="No such file"):
        load_machine(tmp_path / "none.yaml")
    (tmp_path / "dir.yaml").mkdir()
    with pytest.raises(FileError, match="directory"):
        load_machine(tmp_path / "dir.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises((FileError, MachineError)):
        load_machine(tmp_path / "binary.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: m\nfifo_dept: 4\n", "<text>:2:1: error[machine]: unknown key `fifo_dept`\n  hint: did you mean `fifo_depth`?"),
        (
            "name: m\nlatency:\n  default: 1\n  mull: 4\n",
            "<text>:4:3: error[machine]: unknown key `latency.mull`\n  hint: did you mean `mul`?",
        ),
        ("name: m\nfifo_depth: 0\n", "<text>:2:1: error[machine]: `fifo_depth: 0`: input should be greater than or equal to 1"),
        ("name: m\nlatency: {add: 1.5}\n", "<text>:2:11: error[machine]: `latency.add: 1.5`: input should be a valid integer"),
        ("name: m\nmemory: hbm2\n", "<text>:2:1: error[machine]: `memory: hbm2`: input should be 'ideal'"),
        ("clock_ghz: 1\n", "<text>:1: error[machine]: the key `name` is missing"),
        ("name: [\n", "<text>:2:1: error[machine]: not YAML: "),
        ("name: m\nname: k\n", "<text>:2:1: error[machine]: not YAML: "),
        ("- 1\n", "<text>:1: error[machine]: a machine is a YAML mapping"),
        ("", "<text>:1: error[machine]: a machine is a YAML mapping"),
    ],
)
def test_bad_text_is_one_clear_message(text: str, message: str) -> None:
    with pytest.raises(MachineError) as caught:
        read_machine(text)
    assert str(caught.value).startswith(message)
