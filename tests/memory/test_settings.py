"""What a machine file says of its memory: every key, the short forms, and what is refused, where and why."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from fuseflow.cli.main import main
from fuseflow.errors import MachineError
from fuseflow.machine.files import read_machine
from fuseflow.memory.memory import Memory
from fuseflow.memory.settings import ComalFixedMemory, FixedMemory, Hbm2Memory, IdealMemory
from fuseflow.sim import Machine, load_machine

ALL = {"channels": 16, "mapping": "MOP4CLXOR", "clock_ghz": 0.75, "line": 256, "prefetch": 0, "outstanding": 1}


def of_memory(text: str) -> Machine:
    return read_machine(f"name: m\nmemory:\n  model: hbm2\n  {text}\n", "m.yaml")


def test_the_defaults() -> None:
    for memory in (read_machine("name: m\nmemory: hbm2\n").memory, load_machine("rda").memory):
        assert memory == Hbm2Memory()
        assert memory.model_dump() == {
            "model": "hbm2", "channels": 8, "mapping": "BGint_xor", "clock_ghz": 1.0, "line": 64, "prefetch": 8, "outstanding": 32,
        }  # fmt: skip
    assert read_machine("name: m\nmemory: comal_fixed\n").memory.model_dump() == {
        "model": "comal_fixed", "line": 64, "prefetch": 8, "outstanding": 32,
    }  # fmt: skip
    assert read_machine("name: m\nmemory: fixed\n").memory.model_dump() == {
        "model": "fixed", "latency": 32, "line": 64, "prefetch": 8, "outstanding": 32,
    }  # fmt: skip
    assert read_machine("name: m\n").memory == read_machine("name: m\nmemory: {model: ideal}\n").memory == IdealMemory()


def test_a_name_alone_and_a_mapping_are_the_same() -> None:
    for model, memory in (
        ("ideal", IdealMemory()),
        ("fixed", FixedMemory()),
        ("comal_fixed", ComalFixedMemory()),
        ("hbm2", Hbm2Memory()),
    ):
        short, long = read_machine(f"name: m\nmemory: {model}\n"), read_machine(f"name: m\nmemory: {{model: {model}}}\n")
        assert short == long == Machine(name="m", memory=memory)


@pytest.mark.parametrize(("key", "value"), ALL.items())
def test_every_key(key: str, value: Any) -> None:
    memory = of_memory(f"{key}: {value}").memory
    assert memory == Hbm2Memory(**{key: value}) != Hbm2Memory()
    assert load_machine("rda", {f"memory.{key}": value}).memory == memory


def test_numbers_may_be_written_as_yaml_allows() -> None:
    """Not only `64`: the reader gives others, and 0, types of their own."""
    memory = of_memory("line: 0x80\n  prefetch: 0\n  outstanding: 1_000").memory
    assert memory == Hbm2Memory(line=128, prefetch=0, outstanding=1000)
    assert [type(value) for value in memory.model_dump().values()] == [int, int, int, str, int, str, float]
    assert read_machine("name: m\nfifo_depth: 0x40\n").fifo_depth == 64


def test_what_follows_from_the_keys() -> None:
    machine = Machine(name="m", clock_ghz=0.5, memory=Hbm2Memory(**ALL))
    controller = machine.controller()
    assert controller is not None
    assert (controller.line, controller.prefetch, controller.outstanding, controller.capacity) == (256, 0, 1, 16 << 31)
    controller.open()
    assert isinstance(controller.memory, Memory)
    model = controller.memory.model
    assert (model.name, len(model.channels()), model.clock, model.peak) == ("hbm2", 16, Fraction(3, 2), 16 * 32 * 1.5)
    assert load_machine("ideal").controller() is None
    fixed = Machine(name="m", clock_ghz=0.123456789, memory=ComalFixedMemory()).controller()  # it has no clock of its own
    assert fixed is not None and fixed.make(1).model.name == "comal_fixed"


def test_settings_on_top() -> None:
    assert load_machine("rda", {"memory.channels": 4}).memory == Hbm2Memory(channels=4)
    assert load_machine("rda", {"memory.model": "comal_fixed"}).memory == ComalFixedMemory()
    assert load_machine("rda", {"memory": "ideal"}).memory == IdealMemory()
    assert load_machine("rda", {"memory.channels": 2, "memory": "hbm2"}).memory == Hbm2Memory(channels=2)
    assert load_machine("ideal", {"memory.channels": 2, "memory.model": "hbm2"}).memory == Hbm2Memory(channels=2)
    assert load_machine("rda", {"clock_ghz": 2, "memory.clock_ghz": 1}).memory == Hbm2Memory()


def test_the_same_model_again_leaves_its_settings() -> None:
    one = load_machine("rda", {"memory.line": 128})
    assert load_machine("rda", {"memory": "hbm2", "memory.line": 128}) == one


def test_two_names_of_a_model_are_no_traceback() -> None:
    assert load_machine("rda", {"memory": "hbm2", "memory.model": "ideal"}).memory == IdealMemory()


CHANNELS = "must be one of 1, 2, 4, 8, 16, 32 channels"
LINE = "must be a power of two of bytes, from 32, which is one transaction of the memory, to 4096"
MAPPINGS = "there is no such mapping\n  hint: known: `BGint_xor`, `MOP4CLXOR`, `RoBaRaCoCh`"
REFUSED = [
    *((f"channels: {bad}", f"`memory.channels: {shown}`: {CHANNELS}") for bad, shown in (("0", 0), ("3", 3), ("8.0", 8.0))),
    ("channels: null", f"`memory.channels: null`: {CHANNELS}"),
    ("channels: [4]", f"`memory.channels: [4]`: {CHANNELS}"),
    ("channels: true", f"`memory.channels: True`: {CHANNELS}"),
    ("channels: {a: 1}", f"`memory.channels`: {CHANNELS}"),
    *((f"line: {bad}", f"`memory.line: {bad}`: {LINE}") for bad in (16, 48, 8192, 0, -64)),
    ("line: null", f"`memory.line: null`: {LINE}"),
    ("mapping: BGintxor", "`memory.mapping: BGintxor`: there is no such mapping\n  hint: did you mean `BGint_xor`?"),
    ("mapping: [a]", f"`memory.mapping: ['a']`: {MAPPINGS}"),
    ("mapping: null", f"`memory.mapping: null`: {MAPPINGS}"),
    ("prefetch: -1", "`memory.prefetch: -1`: must be a whole number of lines, 0 to 1,048,576"),
    ("prefetch: 1.5", "`memory.prefetch: 1.5`: must be a whole number of lines, 0 to 1,048,576"),
    ("outstanding: 0", "`memory.outstanding: 0`: must be a whole number of lines, 1 to 1,048,576"),
    (f"outstanding: {2**21}", f"`memory.outstanding: {2**21}`: must be a whole number of lines, 1 to 1,048,576"),
    ("outstanding: [1]", "`memory.outstanding: [1]`: must be a whole number of lines"),
    ("clock_ghz: 0", "`memory.clock_ghz: 0`: input should be greater than 0"),
    ("clock_ghz: .nan", "`memory.clock_ghz: nan`: input should be"),
    ("clock_ghz: '1.0'", "`memory.clock_ghz: 1.0`: input should be a valid number"),
    ("clock_ghz: true", "`memory.clock_ghz: True`: input should be a valid number"),
    ("clock_ghz: null", "`memory.clock_ghz: null`: input should be a valid number"),
    ("channel: 8", "unknown key `memory.channel`\n  hint: did you mean `channels`?"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_cannot_be_is_refused_where_it_stands(text: str, message: str) -> None:
    with pytest.raises(MachineError) as caught:
        of_memory(text)
    assert str(caught.value).startswith(f"m.yaml:4:3: error[machine]: {message}")


NAMED = "must name a model: ideal, fixed, comal_fixed, hbm2\n  hint: write `memory: hbm2`, or a mapping"
CLOCKS = "clocks must be in a ratio of whole numbers up to 1000\n  hint: change `clock_ghz` or `memory.clock_ghz`"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("memory:", f"2:1: error[machine]: `memory: null`: {NAMED}"),
        ("memory: 5", f"2:1: error[machine]: `memory: 5`: {NAMED}"),
        ("memory: [hbm2]", f"2:1: error[machine]: `memory: ['hbm2']`: {NAMED}"),
        ("memory: {}", f"2:1: error[machine]: `memory`: {NAMED}"),
        ("memory: {channels: 4}", f"2:1: error[machine]: `memory`: {NAMED}"),
        ("memory: hbm", "2:1: error[machine]: `memory: hbm`: there is no memory model `hbm`\n  hint: did you mean `hbm2`?"),
        (
            "memory:\n  channels: 4\n  model: hmb2",
            "4:3: error[machine]: `memory.model`: there is no memory model `hmb2`\n  hint: did you mean `hbm2`?",
        ),
        ("memory: {model: null}", "2:10: error[machine]: `memory.model`: there is no memory model `null`\n  hint: known: "),
        ("memory: {model: [hbm2]}", "2:10: error[machine]: `memory.model`: there is no memory model `['hbm2']`"),
        (
            "memory: {model: ideal, channels: 4}",
            "2:24: error[machine]: unknown key `memory.channels`\n  hint: it is one of `hbm2`; the model here is `ideal`",
        ),
        (
            "memory: {model: ideal, line: 64}",
            "2:24: error[machine]: unknown key `memory.line`\n"
            "  hint: it is one of `fixed`, `comal_fixed` and `hbm2`; the model here is `ideal`",
        ),
        ("memory: {model: comal_fixed, clock_ghz: 2}", "2:30: error[machine]: unknown key `memory.clock_ghz`\n  hint: it is one of"),
        (
            "memory: hbm2\nclock_ghz: 1.7001",
            f"2:1: error[machine]: `memory: hbm2`: a memory of 1.0 GHz is not in step with a machine of 1.7001 GHz: {CLOCKS}",
        ),
        (
            "memory: {model: hbm2, clock_ghz: 1.0e-9}",
            f"2:1: error[machine]: `memory`: a memory of 1e-09 GHz is not in step with a machine of 1.0 GHz: {CLOCKS}",
        ),
        ("rules: comal\nmemory: hbm2", "3:1: error[machine]: `memory: hbm2`: with `rules: comal` memory is off\n  hint: leave `memory`"),
        ("memory: comal_fixed\nrules: comal", "2:1: error[machine]: `memory: comal_fixed`: with `rules: comal` memory is off"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(text: str, message: str) -> None:
    with pytest.raises(MachineError) as caught:
        read_machine(f"name: m\n{text}\n", "m.yaml")
    assert str(caught.value).startswith(f"m.yaml:{message}")


@pytest.mark.parametrize(
    ("machine", "settings", "message"),
    [
        ("rda", {"memory": None}, "`memory.model`: there is no memory model `null`"),
        ("rda", {"memory.model": "HBM2"}, "`memory.model`: there is no memory model `HBM2`\n  hint: did you mean `hbm2`?"),
        ("rda", {"memory.chanels": 2}, "unknown key `memory.chanels`\n  hint: did you mean `channels`?"),
        ("rda", {"memory.channels.x": 2}, "unknown key `memory.channels.x`\n  hint: did you mean `memory.channels`?"),
        (
            "ideal",
            {"memory.channels": 4},
            "unknown key `memory.channels`\n  hint: it is one of `hbm2`; the model here is `ideal`",
        ),
        ("rda", {"memory": "ideal", "memory.channels": 4}, "unknown key `memory.channels`\n  hint: it is one of `hbm2`"),
        ("comal", {"memory": "hbm2"}, "`memory`: with `rules: comal` memory is off"),
        ("rda", {"clock_ghz": 1.7001}, f"`memory`: a memory of 1.0 GHz is not in step with a machine of 1.7001 GHz: {CLOCKS}"),
    ],
)
def test_settings_that_are_refused(machine: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(MachineError) as caught:
        load_machine(machine, settings)
    assert str(caught.value).startswith(f"error[machine]: {message}")


GRAPH = """graph copy
tensor A[3]  dense f32
tensor Y[3]  dense f32
output Y

root = root()
A_i = scan(root) A.0
A_val = load(A_i.ref) A
write_Y_i = write(A_i.crd) Y.0
write_Y_val = write(A_val) Y.vals
"""


def test_the_command_line_refuses_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit status 2 and the one message."""
    monkeypatch.chdir(tmp_path)
    Path("g.samml").write_text(GRAPH)
    np.save("A.npy", np.ones(3, np.float32))
    Path("t.yaml").write_text("A: {path: A.npy}\n")
    Path("bad.yaml").write_text("name: m\nmemory: {model: hbm2, line: 48}\n")
    for options, message in (
        (["--machine", "bad.yaml"], "bad.yaml:2:23: error[machine]: `memory.line: 48`: "),
        (["--set", "memory.channels=0"], f"error[machine]: `memory.channels: 0`: {CHANNELS}"),
        (["--set", "memory.mapping=null"], f"error[machine]: `memory.mapping: null`: {MAPPINGS}"),
        (["--machine", "comal", "--set", "memory=hbm2"], "error[machine]: `memory`: with `rules: comal` memory is off"),
    ):
        found = CliRunner().invoke(main, ["simulate", "g.samml", "--tensors", "t.yaml", *options])
        assert (found.exit_code, found.stdout) == (2, "")
        assert found.stderr.startswith(message)
        assert isinstance(found.exception, SystemExit)
    assert CliRunner().invoke(main, ["simulate", "g.samml", "--tensors", "t.yaml", "--set", "memory.channels=4"]).exit_code == 0
