"""Circuits of models with truth values, positions, small integers and small floats: 32-bit floats hold these, whatever their type.

The values are those of PyTorch, and each circuit gives the tokens of the simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from hardware_tools import require
from torch import nn
from torch.nn import functional as F

import fuseflow as ff
from fuseflow.cli.main import main
from fuseflow.einsum.parse import parse
from fuseflow.errors import MachineError
from fuseflow.hardware.cosimulate import Cosimulation, cosimulate
from fuseflow.samml.nodes import Graph
from fuseflow.sim import Machine, Simulation
from fuseflow.tensors import Tensor

NEXT = "tensor X[6] dense\nY[i] = X[i + 1] * X[i]\noutput Y\n"
LARGEST = 2**24


class Model(nn.Module):
    """A function of a module with buffers and of its inputs."""

    def __init__(self, function: Callable[..., torch.Tensor], **buffers: torch.Tensor) -> None:
        super().__init__()
        self.function = function
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(self, *inputs)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = self.q(x)
        return F.scaled_dot_product_attention(q, q, q, is_causal=True)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def positions(*values: int) -> torch.Tensor:
    return torch.tensor(values)


MASK = torch.tensor([[True, False, True], [True, True, False], [False, True, True]])
BYTES = torch.tensor([[-128, 3, 0], [127, -1, 5]], dtype=torch.int8)
MODELS: dict[str, tuple[nn.Module, tuple[torch.Tensor, ...]]] = {
    "causal": (Attention(), (drawn(1, 1, 3, 4),)),
    "flip": (Model(lambda m, x: x.flip(1) * 2), (drawn(2, 4),)),
    "mask": (Model(lambda m, x: torch.where(m.kept, x, 0.0) @ x, kept=MASK), (drawn(3, 3),)),
    "roll": (Model(lambda m, x: x.roll(1, 0) + x), (drawn(4, 3),)),
    "triangle": (Model(lambda m, x: x.triu(1) @ x.tril()), (drawn(3, 3),)),
    "attention with a mask": (
        Model(lambda m, q: F.scaled_dot_product_attention(q, q, q, attn_mask=m.kept), kept=MASK),
        (drawn(1, 1, 3, 4),),
    ),
    "a mask that is an input": (Model(lambda m, x, kept: torch.where(kept, x, -x)), (drawn(3, 3), MASK)),
    "entries of a mask, counted": (Model(lambda m, x: m.kept.sum(1, keepdim=True) * x, kept=MASK), (drawn(3, 2),)),
    "one hot": (Model(lambda m, x: F.one_hot(m.at, 5).float() @ x, at=positions(0, 3, 4)), (drawn(5, 2),)),
    "bytes": (Model(lambda m, x: (m.w.float() * 0.125) @ x, w=BYTES), (drawn(3, 2),)),
    "a product of integers": (Model(lambda m, x: m.w.int() @ x.int(), w=BYTES), (BYTES.T,)),
    "16 bits": (Model(lambda m, x: m.w.float() @ x, w=BYTES.short() * 200), (drawn(3, 2),)),
    "floats of 8 bits": (
        Model(lambda m, x: m.w.float() @ (x * 300).to(torch.float8_e4m3fn).float(), w=BYTES.float().to(torch.float8_e5m2)),
        (drawn(3, 2),),
    ),
    "gather": (Model(lambda m, x: x[m.at] + 1, at=positions(2, 0, 1, 1)), (drawn(3, 2),)),
    "embedding": (Model(lambda m, at: m.table[at] * 2, table=drawn(6, 3)), (positions(1, 5, 0),)),
    "segments": (Model(lambda m, x: torch.zeros(3, 2).index_add(0, m.at, x), at=positions(0, 2, 2, 1)), (drawn(4, 2),)),
    "equal segments": (Model(lambda m, x: (m.at[:, None] == m.at).float() @ x, at=positions(0, 2, 2)), (drawn(3, 2),)),
    "where the largest are": (Model(lambda m, x: x.topk(2).indices), (drawn(2, 4),)),
    "where the largest is": (Model(lambda m, x: x.argmax(1)), (drawn(3, 4),)),
}


class Compared:
    """An executor that runs each graph as a circuit, too."""

    def __init__(self, tool: str) -> None:
        self.tool, self.rows = tool, list[Cosimulation]()

    def __call__(self, graph: Graph, tensors: Mapping[str, Tensor], machine: Machine, *_: Any, **__: Any) -> Simulation:
        row = cosimulate(graph, tensors, machine, self.tool)
        self.rows.append(row)
        assert row.simulation is not None
        return row.simulation


def compared(program: ff.Compiled, tool: str = "python") -> list[Cosimulation]:
    """Run a program whose values are checked, each region as a circuit beside the simulator."""
    execute = Compared(tool)
    result = program.run(execute=execute, dedup=False)
    assert result.check is not None and result.check.passed
    assert execute.rows and all(row.difference is None for row in execute.rows)
    return execute.rows


@pytest.mark.parametrize("name", MODELS)
def test_a_circuit_computes_with(name: str) -> None:
    model, inputs = MODELS[name]
    compared(ff.compile(model.eval(), inputs, machine="rtl", schedule=ff.Schedule.fuse("full")))


def test_a_printed_circuit_computes_with_a_selection_and_a_mask() -> None:
    require("pycde", "iverilog", "vvp")
    model, inputs = MODELS["mask"]
    compared(ff.compile(model.eval(), inputs, machine="rtl", schedule=ff.Schedule.fuse("full")), "icarus")
    compared(ff.compile(parse(NEXT), tensors={"X": np.arange(1, 7, dtype=np.float32)}, machine="rtl"), "icarus")


@pytest.mark.parametrize("command", [("run", "--machine", "rtl"), ("cosimulate",), ("area",), ("compile", "--emit", "verilog")])
def test_commands_take_a_selection(command: tuple[str, ...], tmp_path: Path) -> None:
    """The compiler makes it, of ones and zeros."""
    require("pycde", "yosys")
    (tmp_path / "p.ein").write_text(NEXT, encoding="utf-8")
    np.save(tmp_path / "X.npy", np.arange(1, 7, dtype=np.float32))
    (tmp_path / "t.yaml").write_text("X: {path: X.npy}\n", encoding="utf-8")
    name, *options = command
    machine = ["--machine", "rtl"] if name == "compile" else []
    output = ["-o", str(tmp_path / "out")] if name == "compile" else []
    arguments = [name, str(tmp_path / "p.ein"), "--tensors", str(tmp_path / "t.yaml"), *options, *machine, *output]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Model(lambda m, x: x * (m.at == 3), at=positions(LARGEST + 1, 3)), r"tensor `at` holds 16,777,217; machine `rtl`"),
        (Model(lambda m, x: x * (m.at == 3), at=positions(-LARGEST - 1, 3)), r"tensor `at` holds -16,777,217; machine `rtl`"),
        (Model(lambda m, x: x * (m.at >= LARGEST + 1), at=positions(LARGEST, 3)), r"integers that may reach 16,777,217; machine"),
        (Model(lambda m, x: x * m.at.sum(), at=positions(LARGEST, 1)), r"`sum` computes with integers that may reach 16,777,217"),
        (
            Model(lambda m, x: x * (m.at * m.at - m.at), at=positions(5000, 2)),
            r"integers that may reach 25,00.,000; machine `rtl`",
        ),
        (Model(lambda m, x: x.double() * m.at, at=torch.tensor([0.5, 2.0]).double()), r"tensor `.*` has elements of f64"),
    ],
)
def test_what_32_bits_do_not_hold_is_refused(model: nn.Module, message: str) -> None:
    with pytest.raises(MachineError, match=message) as caught:
        ff.compile(model.eval(), (torch.ones(2),), machine="rtl")
    assert "arithmetic: element" in str(caught.value)


def test_the_largest_integers_are_held() -> None:
    model = Model(lambda m, x: x * (m.at + m.at >= LARGEST), at=positions(LARGEST // 2, -3, LARGEST // 2 - 1))
    compared(ff.compile(model.eval(), (torch.ones(3),), machine="rtl"))


def test_a_bound_of_the_largest_operands_is_not_enough_to_refuse() -> None:
    """The largest factors do not meet."""
    model = Model(lambda m, x: (m.a @ m.b) * x, a=torch.tensor([[100_000, 0, 1]]), b=torch.tensor([[1], [100_000], [5]]))
    compared(ff.compile(model.eval(), (torch.ones(1, 1),), machine="rtl"))


@pytest.mark.parametrize(("size", "held"), [(1000, True), (1100, False)])
def test_small_integers_without_values_may_hold_all_of_their_type(size: int, held: bool) -> None:
    program = parse(f"tensor A[2, {size}] dense i8\ntensor x[{size}] dense i8\ny[i] = sum(k) A[i, k] * x[k]\noutput y\n")
    if held:
        ff.compile(program, machine="rtl")
        return
    with pytest.raises(MachineError, match=r"`y` computes with integers that may reach 18,022,400"):
        ff.compile(program, machine="rtl")
