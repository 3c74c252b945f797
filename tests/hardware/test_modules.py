"""The modules of FIFOs, of tiles too, of ports and lowest bits, each against a model of what it must do: at every depth from 1 to 70, and
at 256."""

from __future__ import annotations

import random
from collections import deque
from pathlib import Path

import pytest
from hardware_tools import require
from module_bench import Instance, Vector, run_modules
from module_sizes import lint, save_modules, synthesis
from workspace_graphs import SIZES

DEPTHS = (*range(1, 71), 256)
CYCLES = 500
WIDTH = 16


class Traffic:
    """Whether both sides want to go on in a cycle. First the one that gives runs into the end, then phases of all kinds follow each other:
    full speed, bursts, one side that stands still."""

    def __init__(self, seed: int, depth: int) -> None:
        self.rng, self.phase, self.put, self.take = random.Random(seed), max(97, depth + 20), 1.0, 0.0

    def next(self, cycle: int) -> tuple[bool, bool]:
        if cycle and cycle % self.phase == 0:
            self.put, self.take = (self.rng.choice((0.0, 0.3, 0.9, 1.0, 1.0)) for _ in range(2))
        return self.rng.random() < self.put, self.rng.random() < self.take


def channel_vectors(module: str, depth: int, latency: int) -> tuple[list[Vector], list[tuple[int, int, int | None]]]:
    """Inputs of a channel, and what it must give: whether there is room, whether a token is visible, and which one. A token is visible
    `latency` cycles after it was given, and takes a slot from then until the cycle in which it is taken. In a channel of tiles, some tokens
    get their word later, before they are visible and before the next one is given."""
    tiles = module == "ff_tile_channel"
    traffic, tokens, slots = Traffic((2000 if tiles else 1000) * depth + latency, depth), deque[list[int]](), depth
    rng, due = traffic.rng, 0 if tiles else -1
    inputs, outputs = list[Vector](), list[tuple[int, int, int | None]]()
    for cycle in range(max(CYCLES, 6 * depth)):
        puts, takes = traffic.next(cycle)
        room, there = slots > 0, bool(tokens) and tokens[0][1] <= cycle
        outputs.append((room, there, tokens[0][0] if there else None))
        word, put, take, late = rng.getrandbits(WIDTH), puts and room and cycle > due, takes and there, cycle == due > 0
        inputs.append({"in_valid": put, "in_data": word, **({"late": late} if tiles else {}), "out_take": take})
        if late:
            tokens[-1][0] = word
        if take:
            tokens.popleft()
        if put:
            tokens.append([word, cycle + latency])
        if put and tiles:
            later = rng.randrange(latency)
            due = cycle + later if later else 0
        slots += take - put
    return inputs, outputs


@pytest.mark.parametrize(
    ("module", "inside"), [("ff_channel", ["ff_delay.sv", "ff_sram.sv"]), ("ff_tile_channel", ["ff_sram.sv"]), ("ff_hop", [])]
)
def test_channels(module: str, inside: list[str], tmp_path: Path) -> None:
    require("iverilog", "vvp")
    """A hop is a channel of two slots and a latency of 1."""
    pairs = [(depth, latency) for depth in DEPTHS for latency in (1, 2 + depth % 3)] if module != "ff_hop" else [(2, 1)]
    cases = [channel_vectors(module, depth, latency) for depth, latency in pairs]
    pins = {"in_valid": 1, "in_data": WIDTH, **({"late": 1} if module == "ff_tile_channel" else {}), "out_take": 1}
    outs = {"in_ready": 1, "out_valid": 1, "out_data": WIDTH}
    instances = []
    for (depth, latency), (inputs, _) in zip(pairs, cases, strict=True):
        sizes = {} if module == "ff_hop" else {"D": depth, "L": latency}
        instances.append(Instance(module, {"W": WIDTH, **sizes}, pins, outs, inputs))
        assert "late" not in pins or latency == 1 or any(cycle["late"] for cycle in inputs)
    given = run_modules(tmp_path, [f"{module}.sv", *inside], instances)
    for (depth, latency), (_, due), lines in zip(pairs, cases, given, strict=True):
        assert "late" in pins or (any(not room for room, _, _ in due) and any(there for _, there, _ in due))
        for cycle, ((room, there, word), line) in enumerate(zip(due, lines, strict=True)):
            where = f"depth {depth}, latency {latency}, cycle {cycle}"
            assert line[:2] == [str(int(room)), str(int(there))], where
            assert word is None or int(line[2], 16) == word, where


LINE, NUMBER, BITS = 64, 5, 10
ANSWER_BITS = 12


def port_vectors(outstanding: int, cycles: int) -> tuple[list[Vector], list[tuple[int, int, int, int | None, int | None]]]:
    """Inputs of a port, and what it must give: whether the node may ask, how many answers it had, whether it asks the memory, for which
    address, with which id. A request waits while the memory is not ready, and one answer may answer several requests."""
    tag = max((outstanding - 1).bit_length(), 1)
    traffic = Traffic(outstanding, outstanding)
    rng = traffic.rng
    base = LINE * rng.getrandbits(20)
    asked = left = answered = 0
    waiting: tuple[int, int] | None = None
    inputs, outputs = list[Vector](), list[tuple[int, int, int, int | None, int | None]]()
    for cycle in range(cycles):
        asks, answers = traffic.next(cycle)
        ready, line = rng.random() < 0.8 or cycle % 200 < 100, rng.getrandbits(12)
        room = asked - answered < outstanding and waiting is None
        asks = asks and room
        now = waiting or ((base + LINE * line, asked) if asks else None)
        id_ = None if now is None else NUMBER << tag | now[1] % (1 << tag)
        outputs.append((room, answered % (1 << ANSWER_BITS), now is not None, now and now[0], id_))
        count = rng.randint(1, left - answered) if answers and left > answered else 0
        last = NUMBER << tag | (answered + count - 1) % (1 << tag)
        inputs.append(
            {
                "request_valid": asks, "request_data": line, "base": base, "ready": ready, "answer_valid": count > 0,
                "answer_id": last if count else rng.getrandbits(tag),
            }
        )  # fmt: skip
        asked += asks
        waiting = None if ready else now
        left = asked - (waiting is not None)
        answered += count
    return inputs, outputs


def test_ports(tmp_path: Path) -> None:
    require("iverilog", "vvp")
    cases = [port_vectors(outstanding, max(CYCLES, 6 * outstanding)) for outstanding in DEPTHS]
    instances = []
    for outstanding, (inputs, _) in zip(DEPTHS, cases, strict=True):
        tag = max((outstanding - 1).bit_length(), 1)
        shift = LINE.bit_length() - 1
        parameters = {"W": ANSWER_BITS, "N": 22, "K": outstanding, "T": tag, "P": NUMBER, "S": shift, "A": 40, "I": BITS}
        pins = {"request_valid": 1, "request_data": 22, "base": 40, "ready": 1, "answer_valid": 1, "answer_id": BITS + tag}
        given = {"request_ready": 1, "answers": ANSWER_BITS, "valid": 1, "address": 40, "id": BITS + tag}
        instances.append(Instance("ff_port", parameters, pins, given, inputs))
    for outstanding, (_, due), lines in zip(DEPTHS, cases, run_modules(tmp_path, ["ff_port.sv"], instances), strict=True):
        assert any(not room for room, *_ in due)
        for cycle, (wanted, line) in enumerate(zip(due, lines, strict=True)):
            values = [int(value, 16) if want is not None else None for value, want in zip(line, wanted, strict=True)]
            assert values == list(map(_number, wanted)), f"{outstanding} outstanding, cycle {cycle}"


def _number(value: int | None) -> int | None:
    return None if value is None else int(value)


@pytest.mark.parametrize("latency", [1, 2, 7, 64])
def test_the_fixed_memory(latency: int, tmp_path: Path) -> None:
    """An answer is given one cycle before the node may see it."""
    require("iverilog", "vvp")
    rng = random.Random(latency)
    inputs = [{"valid": rng.random() < 0.5, "id": rng.getrandbits(15)} for _ in range(300)]
    parameters, pins, outs = {"L": latency, "I": 15}, {"valid": 1, "id": 15}, {"answer_valid": 1, "answer_id": 15}
    (lines,) = run_modules(
        tmp_path, ["ff_fixed_memory.sv", "ff_delay.sv"], [Instance("ff_fixed_memory", parameters, pins, outs, inputs)]
    )
    for cycle, (valid, id_) in enumerate(lines):
        asked = inputs[cycle - latency + 1] if cycle >= latency - 1 else None
        assert int(valid, 16) == int(asked is not None and asked["valid"])
        assert asked is None or not asked["valid"] or int(id_, 16) == asked["id"]


SOME = (1, 2, 3, 7, 8, 9, 64, 65, 256)
"""Sizes at which linters and synthesizers are asked. Slow tests ask them at all."""
ALL = pytest.param(SIZES, marks=pytest.mark.slow, id="all")


@pytest.mark.parametrize("sizes", [SOME, ALL])
@pytest.mark.parametrize("kind", ["fifos", "ports", "workspaces"])
def test_verilator_has_nothing_to_say_of_any_size(kind: str, sizes: tuple[int, ...], tmp_path: Path) -> None:
    require("pycde", "verilator")
    assert lint(tmp_path / "v", save_modules(tmp_path / "v", kind, sizes)) == ""


@pytest.mark.parametrize("sizes", [(1, 3, 8, 9, 65), ALL])
@pytest.mark.parametrize("kind", ["fifos", "ports"])
def test_yosys_makes_gates_of_every_size(kind: str, sizes: tuple[int, ...], tmp_path: Path) -> None:
    require("yosys")
    assert synthesis(tmp_path / "v", save_modules(tmp_path / "v", kind, sizes)) == ""


@pytest.mark.slow
def test_yosys_makes_gates_of_every_workspace(tmp_path: Path) -> None:
    require("pycde", "yosys")
    assert synthesis(tmp_path / "v", save_modules(tmp_path / "v", "workspaces", SIZES)) == ""


def test_yosys_finds_no_latch_in_workspaces(tmp_path: Path) -> None:
    require("pycde", "yosys")
    assert synthesis(tmp_path / "v", save_modules(tmp_path / "v", "workspaces", SOME), gates=False) == ""


def test_a_latch_and_a_loop_are_noticed(tmp_path: Path) -> None:
    require("yosys", "verilator")
    top = save_modules(tmp_path / "v", "fifos", (2,))
    file = tmp_path / "v" / "ff_channel.sv"
    text = file.read_text()
    ends = "assign in_ready = slots"
    latch = text.replace(ends, f"reg kept; always @* if (in_valid) kept = out_take; {ends}")
    file.write_text(latch.replace("out_valid = held", "out_valid = kept & held"))
    assert "Assertion failed" in synthesis(tmp_path / "v", top) and "LATCH" in lint(tmp_path / "v", top)
    loop = text.replace("wire put_valid;", "wire put_valid, round; assign round = ~round & in_valid;")
    file.write_text(loop.replace("out_valid = held", "out_valid = round & held"))
    assert synthesis(tmp_path / "v", top) != ""
