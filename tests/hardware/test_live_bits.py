"""The bits that channels keep: no token of a run has others that its reader looks at, and a bit less is a difference."""

from __future__ import annotations

import pytest
from hardware_cases import Tally, circuit_of, hardware_case
from hardware_tools import require
from sum_graph import GRAPH, TEXT

import fuseflow.hardware.top as top
from fuseflow.hardware.circuit import Channel, Circuit, build_circuit
from fuseflow.hardware.cosimulate import cosimulate
from fuseflow.hardware.evaluate import evaluate
from fuseflow.hardware.live_bits import given_bits, kept_bits, read_bits
from fuseflow.hardware.rule_netlist import Netlist, netlist
from fuseflow.samml.text import parse
from fuseflow.sim import Machine
from fuseflow.tensors import Format, Tensor, pack

PLAIN = Machine(name="plain", arithmetic="f32", fifo_depth=2)
KIND, LEVELS = 0b11 << 8, 0xFF
REPEATED = TEXT.replace("s = alu(j.out0, j.out1)", "rep = repeat(A_i.ref, j.crd)\ns = alu(j.out0, j.out1)")


def netlists(circuit: Circuit) -> dict[str, Netlist]:
    return {unit.node.name: netlist(unit.module) for unit in circuit.units}


def widths(text: str) -> dict[tuple[str, str], int]:
    circuit = build_circuit(parse(text), PLAIN)
    return {(c.reader, c.input): mask for c, mask in kept_bits(circuit, netlists(circuit)).items()}


def test_references_of_a_root_are_no_bits() -> None:
    assert widths(TEXT)["A_i", "in0"] == KIND
    assert widths(TEXT)["A_v", "in0"] == KIND | LEVELS


def test_a_repeat_looks_at_kinds_and_levels() -> None:
    wide = REPEATED.replace("[4, 6]", "[4, 600]")
    kept = widths(wide)
    assert kept["rep", "in1"].bit_count() == 2 + 8
    assert kept["Y_j", "in0"].bit_count() == 2 + 12  # 4 x 600 and one more


def test_what_random_graphs_give_is_among_the_bits() -> None:
    """The oracle is the evaluator: it gives the whole tokens."""
    compared = narrow = 0
    for seed in range(30):
        case = hardware_case(seed)
        circuit = None if case is None else circuit_of(case, Tally())
        if case is None or circuit is None:
            continue
        given = given_bits(circuit, netlists(circuit))
        for key, tokens in evaluate(circuit, case.tensors).tokens.items():
            if key in given:
                narrow += given[key].bit_count() != given[key].bit_length()
                assert not any(token & ~given[key] for token in tokens), (seed, key)
                compared += 1
    assert compared > 500 and narrow > 20


def test_bits_that_are_not_read_are_not_those_of_a_token_that_is_passed() -> None:
    circuit = build_circuit(parse(REPEATED), PLAIN)
    read = read_bits(netlists(circuit)["rep"])
    assert read["in0"] == (1 << 10) - 1  # what is repeated is given again
    assert read["in1"] & KIND == KIND


@pytest.mark.parametrize("bit", [0, 8, 9])
def test_a_bit_less_is_a_difference(bit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    require("pycde", "iverilog", "vvp")
    tensors = {"A": matrix(), "B": matrix()}
    assert cosimulate(GRAPH, tensors, PLAIN, "icarus").difference is None

    def fewer(circuit: Circuit, parts: dict[str, Netlist]) -> dict[Channel, int]:
        return {c: mask & ~(1 << bit) if mask != KIND else mask for c, mask in kept_bits(circuit, parts).items()}

    monkeypatch.setattr(top, "kept_bits", fewer)
    assert cosimulate(GRAPH, tensors, PLAIN, "icarus").difference is not None


def matrix() -> Tensor:
    return pack([[0, 1.5, 0, 2, 0, 3], [0] * 6, [1, 0, 0, 0, 0, 4], [0, 5, 0, 0, 0, 0]], Format.parse("csr", 2))
