"""Machines: shipped ones, files, and what is refused with which hint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import fuseflow as ff
from fuseflow.errors import FileError, MachineError
from fuseflow.machine.files import named_machines, read_machine
from fuseflow.machine.machine import UnitCycles, UnitIntervals
from fuseflow.memory.settings import IdealMemory
from fuseflow.sim import Machine, load_machine, machine_names, with_settings


def test_the_ideal_machine() -> None:
    assert "ideal" in machine_names()
    machine = load_machine("ideal")
    assert machine == Machine(name="ideal")
    assert (machine.fifo_depth, machine.memory, machine.controller()) == (None, IdealMemory(), None)
    assert {machine.latency.of(u) for u in ("add", "mul", "div", "transcendental", "logic", "memory", "default")} == {1}


def test_every_shipped_machine_reads() -> None:
    assert [load_machine(name).name for name in machine_names()] == list(machine_names())


@pytest.mark.parametrize("name", named_machines())
def test_a_machine_shows_an_expression_of_itself(name: str) -> None:
    machine = load_machine(name)
    changed = load_machine(machine, {"lanes.8": 3, "scratchpad": "1MB", "fifo_depth": 4} if name not in ("comal",) else {})
    assert eval(repr(machine), {"ff": ff}) == machine
    assert eval(repr(changed), {"ff": ff}) == changed


def test_the_shipped_machines() -> None:
    rda = load_machine("rda")
    assert [rda.latency.of(u) for u in UnitCycles.model_fields] == [1, 4, 4, 12, 16, 1, 1]
    assert {rda.interval.of(u) for u in UnitCycles.model_fields} == {1}
    assert (rda.rules, rda.fifo_depth, rda.first_depth, rda.tile_macs, rda.clock_ghz) == ("dataflow", "auto", 64, 256, 1.0)
    assert (rda.arithmetic, rda.interval.of("fold"), rda.handover_depth) == ("element", 1, None)
    rtl = load_machine("rtl")
    assert [rtl.latency.of(u) for u in UnitCycles.model_fields] == [1, 4, 4, 12, 16, 1, 2]
    assert [rtl.interval.of(u) for u in UnitIntervals.model_fields] == [1, 1, 1, 1, 1, 1, 1, 4]
    assert (rtl.arithmetic, rtl.fifo_depth, rtl.first_depth, rtl.handover_depth) == ("f32", "auto", 8, 16)
    assert rtl.memory == IdealMemory()
    comal = load_machine("comal")
    assert comal == Machine(name="comal", rules="comal")
    assert (comal.first_depth, comal.latency.of("div")) == (None, 1)


@pytest.mark.parametrize("name", machine_names())
def test_settings_are_the_whole_machine(name: str) -> None:
    machine = load_machine(name)
    assert Machine.model_validate({"name": name, **machine.settings}) == machine
    assert with_settings(machine, {}) == machine


def test_what_few_machines_have_is_a_setting_where_it_is() -> None:
    """So the settings of all others, which results have, are as they were before there were these keys."""
    keys = {"arithmetic", "handover_depth"}
    assert not keys & load_machine("rda").settings.keys()
    assert "fold" not in load_machine("rda").settings["interval"]
    settings = load_machine("rtl").settings
    assert keys <= settings.keys() and settings["interval"] == {"default": 1, "fold": 4}


def test_intervals_without_a_fold_are_cycles_of_units() -> None:
    machine = Machine(name="m", interval=UnitCycles(add=5))
    assert machine.interval == UnitIntervals(add=5) and machine.interval.of("fold") == 1


def test_a_fold_has_no_interval_of_the_default() -> None:
    machine = read_machine("name: m\ninterval: {default: 3}\n")
    assert [machine.interval.of(unit) for unit in ("add", "fold")] == [3, 1]
    assert with_settings(machine, {"interval.fold": 4}).interval.of("fold") == 4
    assert with_settings(machine, {"interval.fold": 4, "arithmetic": "f32"}).settings["arithmetic"] == "f32"


def test_settings_on_top() -> None:
    machine = load_machine("rda", {"fifo_depth": 16, "latency.add": 3, "latency.memory": 40, "interval.default": 2})
    assert (machine.name, machine.first_depth) == ("rda", 16)
    assert [machine.latency.of(u) for u in ("add", "mul", "memory")] == [3, 4, 40]
    assert machine.interval.of("add") == 2
    assert load_machine("rda", {"fifo_depth": None}).first_depth is None
    assert load_machine("rda", {"fifo_depth_start": 4}).first_depth == 4
    assert with_settings(load_machine("comal"), {"rules": "dataflow", "fifo_depth": 4}).first_depth == 4


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("ideal", {"fifo_dept": 4}, "error[machine]: unknown key `fifo_dept`\n  hint: did you mean `fifo_depth`?"),
        ("ideal", {"latency.ad": 4}, "error[machine]: unknown key `latency.ad`\n  hint: did you mean `add`?"),
        ("ideal", {"latenc.add": 4}, "error[machine]: unknown key `latenc.add`\n  hint: did you mean `latency.add`?"),
        ("ideal", {"latency.add.x": 4}, "error[machine]: unknown key `latency.add.x`\n  hint: did you mean `latency.add`?"),
        ("ideal", {"latency": 3}, "error[machine]: `latency: 3`: must be a mapping from units to cycles\n  hint: "),
        ("ideal", {"fifo_depth": "deep"}, "error[machine]: `fifo_depth: deep`: must be a number of tokens (1 or more), `auto`"),
        ("ideal", {"latency.default": None}, "error[machine]: `latency.default: null`: must be a whole number, 1 or more"),
        ("comal", {"fifo_depth": 64}, "error[machine]: `fifo_depth: 64`: with `rules: comal` FIFOs are unbounded\n  hint: leave"),
        ("comal", {"fifo_depth": "auto"}, "error[machine]: `fifo_depth: auto`: with `rules: comal` FIFOs are unbounded"),
        ("comal", {"latency.add": 4}, "error[machine]: `latency`: with `rules: comal` every unit takes 1 cycle"),
        ("comal", {"tile_macs": 4}, "error[machine]: `tile_macs: 4`: with `rules: comal` tiles have times of their own"),
        ("comal", {"interval.fold": 2}, "error[machine]: `interval`: with `rules: comal` every unit takes 1 cycle"),
        (
            "comal",
            {"handover_depth": 2},
            "error[machine]: `handover_depth: 2`: with `rules: comal` a node with workspaces is one",
        ),
        ("ideal", {"interval.fold": 0}, "error[machine]: `interval.fold: 0`: must be a whole number, 1 or more"),
        ("ideal", {"interval.flod": 2}, "error[machine]: unknown key `interval.flod`\n  hint: did you mean `fold`?"),
        ("ideal", {"latency.fold": 2}, "error[machine]: unknown key `latency.fold`\n  hint: known: `add`, `default`"),
        ("ideal", {"handover_depth": 0}, "error[machine]: `handover_depth: 0`: must be a number of tokens (1 or more), or null"),
        ("ideal", {"handover_depth": "auto"}, "error[machine]: `handover_depth: auto`: must be a number of tokens (1 or more)"),
        ("ideal", {"arithmetic": "f16"}, "error[machine]: `arithmetic: f16`: input should be 'element', 'f64' or 'f32'"),
        ("rda", {"rules": "comal"}, "error[machine]: `latency`: with `rules: comal` every unit takes 1 cycle"),
    ],
)
def test_refused_settings(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(MachineError) as caught:
        load_machine(name, settings)
    assert str(caught.value).startswith(message)


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
        (
            "name: m\nfifo_depth: 0\n",
            "<text>:2:1: error[machine]: `fifo_depth: 0`: must be a number of tokens (1 or more), `auto`, or null",
        ),
        ("name: m\nlatency: {add: 1.5}\n", "<text>:2:11: error[machine]: `latency.add: 1.5`: must be a whole number, 1 or more"),
        (
            "name: m\nmemory: hbm\n",
            "<text>:2:1: error[machine]: `memory: hbm`: there is no memory model `hbm`\n  hint: did you mean `hbm2`?",
        ),
        (
            "name: m\nlatency: 3\n",
            "<text>:2:1: error[machine]: `latency: 3`: must be a mapping from units to cycles\n  hint: write `{default: 2",
        ),
        ("name: m\nrules: coml\n", "<text>:2:1: error[machine]: `rules: coml`: input should be 'dataflow' or 'comal'"),
        (
            "name: m\nfifo_depth: 4\nrules: comal\n",
            "<text>:2:1: error[machine]: `fifo_depth: 4`: with `rules: comal` FIFOs are unbounded\n"
            "  hint: leave `fifo_depth` out, or set `rules: dataflow`",
        ),
        (
            "name: m\nrules: comal\nlatency: {default: 1, mul: 2}\n",
            "<text>:3:1: error[machine]: `latency`: with `rules: comal` every unit takes 1 cycle",
        ),
        ("clock_ghz: 1\n", "<text>:1:1: error[machine]: the key `name` is missing"),
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


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)


def test_a_file_has_only_what_differs_from_its_base(tmp_path: Path) -> None:
    write(
        tmp_path,
        fast="base: rda\nlatency: {add: 2}\nmemory: {line: 32}\nlanes: {8: 8}\n",
        faster="base: fast.yaml\nname: other\nlatency: {mul: 3}\nfifo_depth: null\n",
    )
    fast, faster = load_machine(tmp_path / "fast.yaml"), load_machine(tmp_path / "faster.yaml")
    assert fast == with_settings(load_machine("rda"), {"name": "fast", "latency.add": 2, "memory.line": 32, "lanes.8": 8})
    assert faster == with_settings(fast, {"name": "other", "latency.mul": 3, "fifo_depth": None})


@pytest.mark.parametrize("name", machine_names())
def test_a_base_alone_is_that_machine(tmp_path: Path, name: str) -> None:
    write(tmp_path, mine=f"base: {name}\n")
    assert load_machine(tmp_path / "mine.yaml").settings == load_machine(name).settings


@pytest.mark.parametrize(
    ("memory", "settings"),
    [
        ("ideal", {"memory": "ideal"}),
        ("hbm2", {}),
        ("{model: hbm2, channels: 2}", {"memory.channels": 2}),
        ("{channels: 2}", {"memory.channels": 2}),
        ("{model: fixed}", {"memory": "fixed"}),
    ],
)
def test_settings_of_the_memory_are_merged_unless_the_model_is_another(memory: str, settings: dict[str, Any]) -> None:
    machine = read_machine(f"base: rda\nname: m\nmemory: {memory}\n")
    assert machine == with_settings(load_machine("rda"), {"name": "m", **settings})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base: rdb\n", ":1:1: error[machine]: unknown machine `rdb` as the base\n  hint: did you mean `rda`"),
        ("base: 3\n", "`base: 3`: must be the name of a machine, or a file"),
        ("base: null\n", "must be the name of a machine, or a file"),
        ("base: [rda]\n", "must be the name of a machine, or a file"),
        ("bas: rda\nname: x\n", "unknown key `bas`\n  hint: did you mean `base`"),
        ("base: rda\nlatncy: {add: 3}\n", ":2:1: error[machine]: unknown key `latncy`\n  hint: did you mean `latency`"),
        ("base: rda\nlatency: {ad: 3}\n", "unknown key `latency.ad`\n  hint: did you mean `add`"),
        (
            "base: ideal\nmemory: {line: 3}\n",
            "unknown key `memory.line`\n  hint: it is a key of `fixed`, `comal_fixed` and every DRAM",
        ),
        ("base: rda\nmemory: null\n", "`memory: null`: must name a model"),
        ("base: rda\nlatency: 3\n", "`latency: 3`: must be a mapping from units to cycles"),
        ("base: rda\nlanes: {8: 0}\n", "`lanes.8: 0`: must be a whole number, 1 or more"),
        ("base: rda\nrules: comal\n", "every unit takes 1 cycle\n  note: what the file does not say is as in its base `rda`"),
        ("base: nowhere.yaml\n", "nowhere.yaml`: No such file"),
    ],
)
def test_what_a_file_with_a_base_cannot_say(text: str, message: str) -> None:
    with pytest.raises((MachineError, FileError)) as caught:
        read_machine(text)
    assert message in str(caught.value)


def test_a_machine_is_not_its_own_base(tmp_path: Path) -> None:
    write(tmp_path, a="base: b.yaml\n", b="base: ./c.yaml\n", c="base: a.yaml\n", own="base: own.yaml\n")
    for name in ("a", "own"):
        with pytest.raises(MachineError, match="a machine is its own base"):
            load_machine(tmp_path / f"{name}.yaml")
