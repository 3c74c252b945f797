"""The scratchpad of circuits: its banks against rules that are written down once more, and graphs with tensors in it."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hardware_cases import Tally, check, check_in, firing_differences, placed_case
from hardware_tools import require
from module_bench import Instance, Vector, run_modules
from module_sizes import lint, synthesis

from fuseflow.errors import HardwareError
from fuseflow.hardware import cosimulate as module
from fuseflow.hardware.area.parts import CircuitParts
from fuseflow.hardware.circuit_files import bounded_circuit, circuit_text
from fuseflow.hardware.cosimulate import Cosimulation, cosimulate
from fuseflow.hardware.python_code import Step
from fuseflow.hardware.rtl_simulators import library_text
from fuseflow.memory.scratchpad_settings import Scratchpad
from fuseflow.memory.settings import FixedMemory
from fuseflow.samml.text import parse
from fuseflow.sim import Machine, load_machine
from fuseflow.tensors import Format, pack

LOADED = 64
"""The cycles before the first request, in which words are moved into the banks."""
NUMBER_BITS, ADDRESS = 10, 20
FILES = ["ff_scratchpad.sv", "ff_bank.sv", "ff_delay.sv"]


@dataclass
class Traffic:
    """The inputs of a scratchpad in every cycle, what it must answer in each cycle, and the words that are read then: by the port's
    number and tag."""

    parameters: dict[str, int]
    inputs: list[Vector]
    answers: list[dict[int, int]]
    reads: list[dict[tuple[int, int], int]] = field(default_factory=list)

    @property
    def word(self) -> int:
        return 8 << self.parameters["S"]


def random_traffic(seed: int) -> Traffic:
    """Requests of some ports to few banks. A port has at most `1 << T` without an answer, and the odd ports write."""
    rng = random.Random(seed)
    ports, tag = rng.choice((1, 2, 5, 9)), rng.choice((1, 3, 5))
    banks, width, latency = rng.choice((1, 2, 3, 8)), rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2, 4, 9))
    numbers = sorted(rng.sample(range(20), ports))
    p = {
        "Q": ports,
        "T": tag,
        "I": NUMBER_BITS,
        "A": ADDRESS,
        "B": banks,
        "P": width,
        "L": latency,
        "S": 2,
        "N": LOADED,
        "R": 6,
        "M": 20,
    }
    words = [rng.getrandbits(32) for _ in range(LOADED * banks)]
    stored = list(words)
    asked, known = [0] * ports, [list[int]() for _ in range(ports)]
    busy: dict[tuple[int, int], int] = defaultdict(int)
    free: dict[int, int] = defaultdict(int)
    due: dict[int, list[tuple[int, int, int]]] = defaultdict(list)  # by the last cycle of an access: port, request, word
    cycles = LOADED + 300
    inputs, answers, reads = list[Vector](), list[dict[int, int]](), list[dict[tuple[int, int], int]]()
    for cycle in range(cycles):
        asks = dict[int, int]()
        rate = (1.0, 0.2, 0.7, 1.0)[cycle // 50 % 4]
        for q in range(ports):
            seen = sum(visible <= cycle for visible in known[q])
            if cycle >= LOADED and asked[q] - seen < 1 << tag and rng.random() < rate:
                asks[q] = rng.randrange(LOADED * banks) if rng.random() < 0.5 else rng.randrange(banks)
        tags = [asked[q] % (1 << tag) for q in range(ports)]
        for q in sorted(asks, key=lambda q: (numbers[q] - cycle) % 20):
            bank = asks[q] % banks
            start = max(cycle, free[bank])
            while busy[bank, start] == width:
                start += 1
            free[bank], busy[bank, start] = start, busy[bank, start] + 1
            known[q].append(max([start + latency, *known[q][-1:]]))
            due[start + latency - 1].append((q, asked[q], asks[q]))
            asked[q] += 1
        given = rng.getrandbits(32)
        read = {(numbers[q], k % (1 << tag)): stored[word] for q, k, word in due[cycle] if not q % 2}
        for q, _, word in due[cycle]:
            if q % 2:
                stored[word] = given
        reads.append(read)
        count = {q: sum(visible == cycle + 1 for visible in known[q]) for q in range(ports)}
        last = {q: sum(visible <= cycle + 1 for visible in known[q]) - 1 for q in range(ports)}
        answers.append({q: numbers[q] << tag | last[q] % (1 << tag) for q in range(ports) if count[q]})
        row = words[cycle * banks : (cycle + 1) * banks] if cycle < LOADED else []
        inputs.append(
            {
                "valid": sum(1 << q for q in asks),
                "write": sum(1 << q for q in range(1, ports, 2)),
                "address": sum(word << 2 << ADDRESS * q for q, word in asks.items()),
                "id": sum((numbers[q] << tag | tags[q]) << (NUMBER_BITS + tag) * q for q in range(ports)),
                "write_data": sum(given << 32 * k for k in range(banks * width)),
                "move_valid": (1 << banks) - 1 if row else 0,
                "move_write": (1 << banks) - 1,
                "move_row": sum(cycle % LOADED << 6 * b for b in range(banks)),
                "move_data": sum(word << 32 * b for b, word in enumerate(row)),
            }
        )
    return Traffic(p, inputs, answers, reads)


def instance(traffic: Traffic) -> Instance:
    p = traffic.parameters
    ports, tag, banks, accesses = p["Q"], p["T"], p["B"], p["B"] * p["P"]
    pins = {"valid": ports, "write": ports, "address": ports * ADDRESS, "id": ports * (NUMBER_BITS + tag)}
    pins |= {
        "write_data": 32 * accesses,
        "move_valid": banks,
        "move_write": banks,
        "move_row": 6 * banks,
        "move_data": 32 * banks,
    }
    outs = {"answer_valid": ports, "answer_id": ports * (NUMBER_BITS + tag)}
    outs |= {"read_valid": accesses, "read_id": accesses * (NUMBER_BITS + tag), "read_data": 32 * accesses}
    return Instance("ff_scratchpad", p, pins, outs, traffic.inputs)


def pieces(text: str, width: int, valid: int) -> dict[int, int]:
    """The words of `width` bits that are valid, by their place."""
    word = int(text.replace("x", "0"), 16)
    return {k: word >> width * k & (1 << width) - 1 for k in range(valid.bit_length()) if valid >> k & 1}


def test_banks_answer_as_their_rules_say(tmp_path: Path) -> None:
    """Every answer in its cycle, and every word that is read: what was moved into the bank, or was written last."""
    require("iverilog", "vvp")
    cases = [random_traffic(seed) for seed in range(16)]
    waits = read = 0
    for traffic, lines in zip(cases, run_modules(tmp_path, FILES, [instance(traffic) for traffic in cases]), strict=True):
        bits = NUMBER_BITS + traffic.parameters["T"]
        for cycle, (valid, ids, read_valid, read_ids, data) in enumerate(lines):
            where = f"{traffic.parameters}, cycle {cycle}"
            assert pieces(ids, bits, int(valid, 16)) == traffic.answers[cycle], where
            names = pieces(read_ids, bits, int(read_valid, 16))
            words = pieces(data, 32, int(read_valid, 16))
            tag = traffic.parameters["T"]
            given = {(names[k] >> tag, names[k] % (1 << tag)): words[k] for k in names}
            assert given == (traffic.reads[cycle - 1] if cycle else {}), where
            read += len(given)
            waits += len(given) > 2
    assert read > 1000 and waits > 100


@pytest.mark.parametrize(("ports", "banks", "width", "latency"), [(1, 1, 1, 1), (3, 2, 1, 4), (2, 3, 2, 2)])
def test_a_synthesizer_takes_a_scratchpad(ports: int, banks: int, width: int, latency: int, tmp_path: Path) -> None:
    """No latch, no loop and no wire that nothing drives."""
    require("yosys")
    for file in FILES:
        (tmp_path / file).write_text(library_text(file), encoding="utf-8")
    values = {"Q": ports, "T": 1, "A": ADDRESS, "B": banks, "P": width, "L": latency, "S": 2, "M": ports + 8}
    pins, outs = all_pins(ports, 1, banks, width)
    listed = ", ".join(f".{name}({value})" for name, value in values.items())
    wires = ", ".join(f".{name}({name})" for name in ("clk", "rst", *pins, *outs))
    sides = [f"{side} [{bits - 1}:0] {name}" for side, some in (("input", pins), ("output", outs)) for name, bits in some.items()]
    text = f"module top(input clk, input rst, {', '.join(sides)});\n  ff_scratchpad #({listed}) dut ({wires});\nendmodule\n"
    (tmp_path / "top.sv").write_text(text, encoding="utf-8")
    (tmp_path / "files.f").write_text("".join(f"{file}\n" for file in (*FILES, "top.sv")), encoding="utf-8")
    assert not lint(tmp_path, "top")
    assert not synthesis(tmp_path, "top", gates=False)


def all_pins(ports: int, tag: int, banks: int, width: int) -> tuple[dict[str, int], dict[str, int]]:
    """All inputs and outputs of a scratchpad of 16 rows, with their bits."""
    id_, accesses = NUMBER_BITS + tag, banks * width
    pins = {"valid": ports, "write": ports, "address": ports * ADDRESS, "id": ports * id_, "write_data": 32 * accesses}
    pins |= {"move_valid": banks, "move_write": banks, "move_row": 4 * banks, "move_data": 32 * banks}
    outs = {"answer_valid": ports, "answer_id": ports * id_, "access_valid": accesses, "access_write": accesses}
    outs |= {"access_id": accesses * id_, "access_row": 4 * accesses, "read_valid": accesses, "read_id": accesses * id_}
    return pins, outs | {"read_data": 32 * accesses, "move_read": 32 * banks}


def test_graphs_with_places_in_the_evaluator() -> None:
    """Tokens, firings and requests, with loads before a graph and beside it, and stores behind it."""
    tally, steps = Tally(), dict[str, Step]()
    for seed in range(40):
        assert not check(placed_case(seed, "any" if seed % 4 == 1 else "fixed"), tally, steps), f"seed {seed}"
    assert tally.graphs > 30 and tally.deadlocks


IN_ICARUS = {4: "fixed", 10: "fixed", 11: "any", 23: "any", 16: "fixed"}
"""Seeds of graphs with places, and their memories."""


@pytest.mark.parametrize("seed", IN_ICARUS)
def test_graphs_with_places_in_icarus(seed: int) -> None:
    require("pycde", "iverilog", "vvp")
    case = placed_case(seed, IN_ICARUS[seed])  # type: ignore[arg-type]
    run = cosimulate(case.graph, case.tensors, case.machine, "icarus")
    assert run.difference is None and run.cycles == run.simulator_cycles > 0
    assert not firing_differences(case, run.evaluation)


SUM = """graph sum
tensor X[16, 16] dense scratchpad moved
tensor Y[16] dense scratchpad moved
output Y
root = root()
X_i = scan(root) X.0
X_j = scan(X_i.ref) X.1
X_val = load(X_j.ref) X
total = reduce(X_val) sum
write_Y_i = write(X_i.crd) Y.0
write_Y_val = write(total) Y.vals
"""


def machine_with(scratchpad: Scratchpad, prefetch: int = 0) -> Machine:
    """The machine `rtl`, at a memory that answers after 20 cycles."""
    memory = FixedMemory(latency=20, prefetch=prefetch)
    return load_machine("rtl").model_copy(update={"memory": memory, "scratchpad": scratchpad, "fifo_depth": 4})


SMALL = Scratchpad(bytes=4096, banks=2, latency=3, bytes_a_cycle=8)


def sum_on(tool: str, prefetch: int = 0) -> Cosimulation:
    """The sums of the rows of a matrix of 1,024 bytes, which are loaded into two banks of words of 8 bytes, and are stored."""
    tensors = {"X": pack(np.arange(256, dtype=np.float32).reshape(16, 16), Format.parse("dense", 2))}
    return cosimulate(parse(SUM), tensors, machine_with(SMALL, prefetch), tool)


FAULTS = {
    "an access waits a cycle": ("ff_scratchpad.sv", "valid[k] && behind < C'(P)", "valid[k] && C'(1) < C'(P)"),
    "a word is read in another row": ("ff_bank.sv", "<= store[row[p*R +: R]]", "<= store[row[p*R +: R] ^ 1'b1]"),
    "a word is written in another row": ("ff_bank.sv", "store[row[p*R +: R]] <=", "store[row[p*R +: R] ^ 1'b1] <="),
    "a result is stored before it is written": ("ff_sent.sv", "sent[W-1:0] == answers & shown == answers", "1'b1"),
}


def test_a_sum_of_what_is_loaded_is_stored() -> None:
    """Each load asks for 16 lines through 8 ports, two each: the second follows in the next cycle."""
    require("pycde", "iverilog", "vvp")
    run = sum_on("icarus")
    assert run.difference is None
    assert [cycle for cycle, _ in run.evaluation.requests["root", "moved0"]] == [0, 1]
    assert run.evaluation.fired["root"][0] == 21  # the last of them is answered


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_a_scratchpad_are_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require("pycde", "iverilog", "vvp")
    file, right, wrong = FAULTS[fault]
    assert right in library_text(file)
    monkeypatch.setattr(module, "library_text", lambda name: library_text(name).replace(right, wrong))
    try:
        seen = sum_on("icarus").difference is not None
    except HardwareError as error:
        seen = "undefined bits" in error.message
    assert seen


def test_words_are_fetched_ahead_once_they_are_loaded() -> None:
    """The first eight words, one in a cycle, from the cycle in which the root fires."""
    require("pycde", "iverilog", "vvp")
    run = sum_on("icarus", prefetch=8)
    assert run.difference is None
    assert run.evaluation.fired["root"][0] == 21
    assert [cycle for cycle, _ in run.evaluation.requests["X_val", "val"]][:8] == list(range(21, 29))


def test_a_scratchpad_that_is_too_wide() -> None:
    with pytest.raises(HardwareError, match="moves 262,144 bits in a cycle, and that of a circuit 131,072 at most"):
        circuit_text(parse(SUM), machine_with(Scratchpad(bytes=1 << 20, banks=512)))


def test_the_area_of_a_scratchpad_is_refused() -> None:
    with pytest.raises(HardwareError, match="`X_val` uses the scratchpad, whose area is not modelled"):
        CircuitParts.of(bounded_circuit(parse(SUM), machine_with(SMALL)))


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["icarus", "verilator", "python"])
def test_many_random_graphs_with_places(tool: str, draws: Callable[[int], range]) -> None:
    require(*([] if tool == "python" else ["pycde", "iverilog" if tool == "icarus" else "verilator"]))
    tally, steps = Tally(), dict[str, Step]()
    for seed in draws({"python": 1000, "icarus": 100, "verilator": 10}[tool]):
        case = placed_case(seed, "any" if seed % 2 else "fixed")
        assert not (check(case, tally, steps) if tool == "python" else check_in(tool, case, tally)), f"seed {seed}"
