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
from fuseflow.memory.settings import ComalFixedMemory, DramMemory, FixedMemory, IdealMemory, memory_models
from fuseflow.memory.table_files import preset, preset_names
from fuseflow.sim import Machine, load_machine

ALL = {"channels": 16, "mapping": "MOP4CLXOR", "clock_ghz": 0.75, "line": 256, "prefetch": 0, "outstanding": 1}


def of_memory(text: str) -> Machine:
    return read_machine(f"name: m\nmemory:\n  model: hbm2\n  {text}\n", "m.yaml")


def test_the_defaults() -> None:
    for memory in (read_machine("name: m\nmemory: hbm2\n").memory, load_machine("rda").memory):
        assert memory == DramMemory()
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
        ("hbm2", DramMemory()),
    ):
        short, long = read_machine(f"name: m\nmemory: {model}\n"), read_machine(f"name: m\nmemory: {{model: {model}}}\n")
        assert short == long and short.memory == memory


@pytest.mark.parametrize("text", ["memory: ddr5-4800\n", "memory: fixed\n", "memory: {table: {base: hbm2}}\nlatency: {add: 3}\n"])
def test_a_memory_alone_never_means_unbounded_fifos(text: str) -> None:
    """The rest is that of `rda`, and the name that of the file."""
    machine, rda = read_machine(text, "at/mine.yaml"), load_machine("rda")
    assert (machine.name, machine.fifo_depth, machine.latency.of("mul")) == ("mine", "auto", rda.latency.of("mul"))
    own = read_machine(f"name: m\nfifo_depth: null\n{text}")
    assert own.fifo_depth is None and own.latency.of("mul") == 1
    assert load_machine("ddr5-4800").model_dump() == {**rda.model_dump(), "name": "ddr5-4800", "memory": at("ddr5-4800")}


def at(preset_name: str, **settings: Any) -> dict[str, Any]:
    return DramMemory(model=preset_name, **settings).model_dump()


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_alone_has_the_clock_and_channels_of_its_table(name: str) -> None:
    memory, table = load_machine("rda", {"memory": name}).memory, preset(name).table()
    assert isinstance(memory, DramMemory)
    assert (memory.dram, memory.channels, memory.line) == (table, table.channels, 64)
    assert memory.cycles_in(1.0) == Fraction(1000, table.cycle_ps) == 2 * memory.cycles_in(2.0)
    assert read_machine(f"memory: {name}\n").memory == read_machine(f"base: rda\nmemory: {name}\n").memory == memory


def test_what_replaces_the_table() -> None:
    text = "base: rda\nmemory: {model: hbm3-6400, channels: 4, queue: {read: 128, write: 64}, refresh: per-bank}\n"
    memory = read_machine(text).memory
    assert isinstance(memory, DramMemory)
    table = memory.dram
    assert (table.channels, table.read_queue, table.write_queue, table.refresh) == (4, 128, 64, "per-bank")
    assert load_machine("rda", {"memory": "hbm3-6400", "memory.queue": 8}).memory.model_dump()["queue"] == {"read": 8, "write": 8}
    ranks = load_machine("rda", {"memory": "ddr4-3200", "memory.ranks": 1, "memory.refresh": "none"}).memory
    assert isinstance(ranks, DramMemory) and (ranks.dram.banks, ranks.dram.refresh) == (16, "none")
    controller = Machine(name="m", memory=ranks).controller()
    assert controller is not None and controller.capacity == 2 * preset("ddr4-3200").table().channel_bytes // 2


def test_a_table_of_ones_own() -> None:
    text = "base: rda\nmemory:\n  channels: 4\n  table:\n    base: ddr5-4800\n    distances: {bank_group: {WR-WR: 0x0C}}\n"
    memory = read_machine(text).memory
    assert isinstance(memory, DramMemory) and memory.model == "dram"
    assert memory.dram.least("WR", "WR", "bank_group") == 12 and memory.dram.channels == 4
    assert DramMemory.model_validate(memory.model_dump()) == memory


def test_a_mapping_of_ones_own() -> None:
    text = "{bits: [column, channel, pseudo_channel, bank_group, bank, row], xor: {bank: row 2}}"
    memory = of_memory(f"mapping: {text}").memory
    assert isinstance(memory, DramMemory) and memory.address_mapping.name == "own"
    assert DramMemory.model_validate(memory.model_dump()) == memory


RANKED = "those with ranks are ddr4-3200, ddr5-4800, ddr5-6400, lpddr5-6400"


def in_file(memory: str) -> str:
    with pytest.raises(MachineError) as caught:
        read_machine(f"base: rda\nmemory:\n{memory}", "m.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        (
            "  model: hbm2\n  ranks: 2\n",
            f"4:3: error[machine]: `memory.ranks`: `hbm2` has no ranks\n  hint: leave it out; {RANKED}",
        ),
        ("  model: ddr4-3200\n  ranks: 3\n", "4:3: error[machine]: `memory.ranks: 3`: must be one of 1, 2, 4, 8 ranks"),
        (
            "  model: ddr4-3200\n  ranks: 8\n",
            "4:3: error[machine]: `memory.ranks`: a channel has 64 GB, and 32 GB at most\n  hint: write fewer ranks",
        ),
        (
            "  model: ddr4-3200\n  refresh: per-bank\n",
            "4:3: error[machine]: `memory.refresh`: `ddr4-3200` has no refresh `per-bank`\n  hint: it has all-bank, none",
        ),
        (
            "  model: hbm2\n  refresh: all\n",
            "4:3: error[machine]: `memory.refresh: all`: there is no such refresh\n  hint: did you mean",
        ),
        (
            "  model: hbm2\n  queue: 129\n",
            "4:3: error[machine]: `memory.queue: 129`: must be a whole number of requests, 1 to 128\n  hint: one number is that of both",
        ),
        (
            "  model: hbm2\n  queue: [4]\n",
            "4:3: error[machine]: `memory.queue: [4]`: must be a whole number of requests, 1 to 128",
        ),
        (
            "  model: hbm2\n  queue:\n    read: 32\n    write: -4\n",
            "6:5: error[machine]: `memory.queue.write: -4`: must be a whole number of requests, 1 to 128",
        ),
        (
            "  model: hbm2\n  queue: {read: 3}\n",
            "4:3: error[machine]: the key `memory.queue.write` is missing\n  hint: write both, `queue: {read: 32, write: 32}`",
        ),
        (
            "  model: ddr4-3200\n  clock_ghz: 2.0\n",
            "4:3: error[machine]: `memory.clock_ghz`: only `hbm2` has this key\n  hint: write",
        ),
        (
            "  model: ddr4-3200\n  line: 32\n",
            "4:3: error[machine]: `memory.line`: a line of 32 bytes is smaller than a transaction of `ddr4-3200`, which has 64\n"
            "  hint: write `line: 64`, or more",
        ),
        ("  model: dram\n", "2:1: error[machine]: `memory.table`: the key `table` is missing"),
        ("  model: hbm2\n  table: {base: hbm2}\n", "4:3: error[machine]: `memory.table`: `hbm2` has a table already"),
        (
            "  table:\n    base: ddr5-4800\n    distances:\n      bank: {WR-WX: 12}\n",
            "6:14: error[machine]: `memory.table.distances.bank.WR-WX`: there is no command `WX` here\n  hint: did you mean `WR`?",
        ),
        (
            "  table:\n    base: ddr5-4800\n    rowz: 2\n",
            "5:5: error[machine]: `memory.table.rowz`: unknown key\n  hint: did you mean `rows`?",
        ),
        (
            "  model: hbm2\n  mapping: {bits: [row]}\n",
            "4:3: error[machine]: `memory.mapping`: `bits` names 0 of the 5 bits of `column`\n  hint: write `column` behind the others",
        ),
        ("  model: hbm2\n  mapping: {bit: [row]}\n", "4:3: error[machine]: `memory.mapping`: must have `bits`, a list of fields"),
        (
            "  model: ddr5-480\n",
            "3:3: error[machine]: `memory.model`: there is no memory model `ddr5-480`\n  hint: did you mean `ddr5-4800`",
        ),
        (
            "  model: hbm3\n",
            "3:3: error[machine]: `memory.model`: there is no memory model `hbm3`\n  hint: did you mean `hbm3-6400`?",
        ),
        (
            "  table: {base: ddr4}\n",
            "3:11: error[machine]: `memory.table.base`: there is no memory `ddr4`\n  hint: did you mean `ddr4-3200`?",
        ),
        (
            "  table: {base: ddr4-3200, refresh: {all-bank: {period: 100}}}\n",
            "3:49: error[machine]: `memory.table.refresh.all-bank.period`: a refresh takes 576 cycles, but the next one of the same banks "
            "is due after 100\n  hint: write `period: 577` or more, or a shorter REFab-ACT",
        ),
    ],
)
def test_settings_that_do_not_fit_a_table(memory: str, message: str) -> None:
    assert in_file(memory).startswith(f"m.yaml:{message}")


def test_a_period_of_refresh_that_an_error_names_is_taken() -> None:
    text = "base: rda\nmemory: {table: {base: ddr4-3200, refresh: {all-bank: {period: 577}}}}\n"
    assert isinstance(read_machine(text).memory, DramMemory)


def test_a_memory_as_the_base() -> None:
    """What `--machine` takes as a name, a file takes as its base."""
    for name in preset_names():
        machine = read_machine(f"base: {name}\nname: m\nmemory: {{prefetch: 4}}\n")
        assert machine == load_machine(name, {"memory.prefetch": 4}).model_copy(update={"name": "m"})
    with pytest.raises(MachineError, match="unknown machine `hbm3` as the base\n  hint: did you mean `hbm3-6400`"):
        read_machine("base: hbm3\n")


def test_a_key_that_is_missing_is_not_said_to_be_in_the_base() -> None:
    for text in ("memory: {queue: {read: 3}}", "scratchpad: {banks: 8}"):
        with pytest.raises(MachineError, match="is missing\n  hint: write ") as caught:
            read_machine(f"base: rda\n{text}\n")
        assert not caught.value.notes


@pytest.mark.parametrize(("key", "value"), ALL.items())
def test_every_key(key: str, value: Any) -> None:
    memory = of_memory(f"{key}: {value}").memory
    assert memory == DramMemory(**{key: value}) != DramMemory()
    assert load_machine("rda", {f"memory.{key}": value}).memory == memory


def test_numbers_may_be_written_as_yaml_allows() -> None:
    """Not only `64`: the reader gives others, and 0, types of their own."""
    memory = of_memory("line: 0x80\n  prefetch: 0\n  outstanding: 1_000").memory
    assert memory == DramMemory(line=128, prefetch=0, outstanding=1000)
    assert [type(value) for value in memory.model_dump().values()] == [int, int, int, str, int, str, float]
    assert read_machine("name: m\nfifo_depth: 0x40\n").fifo_depth == 64


def test_what_follows_from_the_keys() -> None:
    machine = Machine(name="m", clock_ghz=0.5, memory=DramMemory(**ALL))
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
    assert load_machine("rda", {"memory.channels": 4}).memory == DramMemory(channels=4)
    assert load_machine("rda", {"memory.model": "comal_fixed"}).memory == ComalFixedMemory()
    assert load_machine("rda", {"memory": "ideal"}).memory == IdealMemory()
    assert load_machine("rda", {"memory.channels": 2, "memory": "hbm2"}).memory == DramMemory(channels=2)
    assert load_machine("ideal", {"memory.channels": 2, "memory.model": "hbm2"}).memory == DramMemory(channels=2)
    assert load_machine("rda", {"clock_ghz": 2, "memory.clock_ghz": 1}).memory == DramMemory()


def test_the_same_model_again_leaves_its_settings() -> None:
    one = load_machine("rda", {"memory.line": 128})
    assert load_machine("rda", {"memory": "hbm2", "memory.line": 128}) == one


def test_two_names_of_a_model_are_no_traceback() -> None:
    assert load_machine("rda", {"memory": "hbm2", "memory.model": "ideal"}).memory == IdealMemory()


CHANNELS = "must be one of 1, 2, 4, 8, 16, 32 channels"
LINE = "must be a power of two of bytes, 32 to 4,096, and at least one transaction of the memory"
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
    ("clock_ghz: 0", "`memory.clock_ghz: 0`: must be a number of GHz above 0, such as 0.8"),
    ("clock_ghz: .nan", "`memory.clock_ghz: nan`: must be a number of GHz above 0, such as 0.8"),
    ("clock_ghz: .inf", "`memory.clock_ghz: inf`: must be a number of GHz above 0, such as 0.8"),
    ("clock_ghz: '1.0'", "`memory.clock_ghz: 1.0`: must be a number of GHz above 0, such as 0.8, without quotes"),
    ("clock_ghz: true", "`memory.clock_ghz: True`: must be a number of GHz above 0, such as 0.8"),
    ("channel: 8", "unknown key `memory.channel`\n  hint: did you mean `channels`?"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_cannot_be_is_refused_where_it_stands(text: str, message: str) -> None:
    with pytest.raises(MachineError) as caught:
        of_memory(text)
    assert str(caught.value).startswith(f"m.yaml:4:3: error[machine]: {message}")


NAMED = f"must name a model: {', '.join(memory_models())}\n  hint: write `memory: hbm2`, or a mapping"
CLOCKS = "clocks must be in a ratio of whole numbers up to 10,000\n  hint: "


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
            "2:24: error[machine]: unknown key `memory.channels`\n  hint: it is a key of every DRAM; the model here is `ideal`",
        ),
        (
            "memory: {model: ideal, line: 64}",
            "2:24: error[machine]: unknown key `memory.line`\n"
            "  hint: it is a key of `fixed`, `comal_fixed` and every DRAM; the model here is `ideal`",
        ),
        ("memory: {model: comal_fixed, clock_ghz: 2}", "2:30: error[machine]: unknown key `memory.clock_ghz`\n  hint: it is a key of"),
        (
            "memory: hbm2\nclock_ghz: 1.7001",
            "2:1: error[machine]: `memory`: a memory of 1.0 GHz is not in step with a machine of 1.7001 GHz: "
            f"{CLOCKS}`clock_ghz: 1.7` is in step",
        ),
        (
            "memory: {model: hbm2, clock_ghz: 1.0e-9}",
            "2:1: error[machine]: `memory`: a memory of 1e-09 GHz is not in step with a machine of 1.0 GHz: "
            f"{CLOCKS}change `clock_ghz` or `memory.clock_ghz`",
        ),
        (
            "memory: {model: hbm2, clock_ghz: 3.14159265}",
            "2:1: error[machine]: `memory`: a memory of 3.14159265 GHz is not in step with a machine of 1.0 GHz: "
            f"{CLOCKS}`memory.clock_ghz: 3.142` is in step",
        ),
        (
            "memory: gddr6-14000\nclock_ghz: 1.755",  # the clock of a graphics processor, beside a cycle of 570 ps
            "2:1: error[machine]: `memory: gddr6-14000`: a memory of 1.7543859649122806 GHz is not in step with a machine of 1.755 GHz: "
            f"{CLOCKS}`clock_ghz: 1.75` is in step",
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
            "unknown key `memory.channels`\n  hint: it is a key of every DRAM; the model here is `ideal`",
        ),
        ("rda", {"memory": "ideal", "memory.channels": 4}, "unknown key `memory.channels`\n  hint: it is a key of"),
        ("comal", {"memory": "hbm2"}, "`memory`: with `rules: comal` memory is off"),
        (
            "rda",
            {"clock_ghz": 1.7001},
            f"`memory`: a memory of 1.0 GHz is not in step with a machine of 1.7001 GHz: {CLOCKS}`clock_ghz: 1.7`",
        ),
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
