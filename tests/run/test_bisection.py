"""Where values begin to differ: planted faults are found at the Einsum in which they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

import fuseflow as ff
from fuseflow.compiler import compile_source
from fuseflow.einsum.nodes import Access, Apply, Const
from fuseflow.einsum.parse import parse
from fuseflow.run import bisection
from fuseflow.run.bisection import bisect, explain_deviation
from fuseflow.run.check import Difference, check_outputs
from fuseflow.run.reference import ProgramReference
from fuseflow.tensors import Format, pack

PROGRAM = """\
tensor A[4, 4]  csr
tensor B[4, 3]  dense
y[i, j] = sum(k) A[i, k] * B[k, j]  @layer1
z[i, j] = relu(y[i, j])             @layer1
w[i, j] = z[i, j] + B[i, j]
output w
"""


def compiled(*fuse: str) -> ff.Compiled:
    tensors = {"A": sparse.csr_array(np.eye(4)), "B": np.arange(1.0, 13).reshape(4, 3)}
    return ff.compile(parse(PROGRAM), tensors=tensors, schedule=ff.Schedule.fuse(*fuse))


def plant(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let every simulation that computes a tensor give it one wrong value."""
    right = bisection.simulate

    def simulate(*args, **kwargs):
        simulation = right(*args, **kwargs)
        if name not in simulation.outputs:
            return simulation
        values = simulation.outputs[name].values.copy()
        values.flat[4] += 100
        outputs = {**simulation.outputs, name: replace(simulation.outputs[name], values=values)}
        return replace(simulation, outputs=outputs)

    monkeypatch.setattr(bisection, "simulate", simulate)


@pytest.mark.parametrize("name", ["y", "z", "w"])
def test_a_planted_fault_is_found_where_it_is(monkeypatch, name):
    plant(monkeypatch, name)
    deviation = bisect(compiled("none"), "reference").deviation
    assert deviation.einsum.name == name
    assert deviation.check.largest.coordinates == (1, 1)
    assert deviation.check.largest.computed == deviation.check.largest.expected + 100


def test_nothing_is_found_where_nothing_is_wrong():
    search = bisect(compiled("layer1"), "reference")
    assert search.deviation is None and search.with_torch == () and search.with_interpreter == ("w",)


def alone(program: ff.Compiled) -> ff.Compiled:
    names = [einsum.name for einsum in program.source.program.einsums]
    return compile_source(program.source, ff.Schedule.fuse(*names), program.machine)


def explained(program: ff.Compiled, passed: bool = False) -> str:
    return "\n".join(explain_deviation(program, lambda: alone(program), "fast", passed))


def test_the_einsums_of_a_region_are_told_apart(monkeypatch):
    program = compiled("layer1")
    plant(monkeypatch, "w")  # the region computes y and z for it
    text = explained(program)
    assert text.startswith("the first Einsum that differs: `w` (<text>:5:1), at (1, 1) it is 110, not 10\n")
    assert "before it, 2 were compared with the dense interpreter on what they read (`y`, `z`)" in text
    monkeypatch.undo()
    assert "the program differs from the model, not the run" in explained(program)
    assert explained(program, passed=True).startswith("no Einsum differs by itself: 3 were compared with the dense interpreter")


class Layers(nn.Module):
    """A model whose Einsums are products, sums, a softmax and a norm, and a reshape."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lin, self.norm = nn.Linear(6, 4), nn.LayerNorm(4)

    def forward(self, adj: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(torch.sparse.mm(adj, self.lin(x)))
        h = self.norm(h)
        return torch.softmax(h.reshape(5, 2, 2).transpose(0, 1), dim=-1)


@pytest.fixture(scope="module")
def layers() -> ff.Compiled:
    torch.manual_seed(1)
    adj, x = (torch.rand(5, 5) > 0.5).float() + torch.eye(5), torch.randn(5, 6)
    return ff.compile(Layers(), inputs=(adj.to_sparse_csr(), x), schedule=ff.Schedule.fuse("full"))


def test_every_einsum_of_a_model_has_a_value_of_pytorch_that_agrees(layers: ff.Compiled):
    values = layers.source.intermediates()
    search = bisect(alone(layers), "fast", values)
    assert search.deviation is None
    assert len(search.with_torch) >= len(layers.source.program.einsums) - 2  # a reshape moves elements, and computes nothing
    assert explained(layers, passed=True).startswith(
        f"no Einsum differs by itself: {len(search.with_torch)} were compared with PyTorch"
    )


LAYERS = 20
"""The Einsums of `Layers` that compute something."""


@pytest.mark.parametrize("number", [n if n % 4 == 0 else pytest.param(n, marks=pytest.mark.slow) for n in range(LAYERS)])
def test_a_wrong_operator_of_the_front_end_is_found_where_it_is(number: int, layers: ff.Compiled):
    program = layers.source.program
    computing = [einsum for einsum in program.einsums if not isinstance(einsum.body, Access)]
    assert len(computing) == LAYERS
    wrong = computing[number]
    spoiled = replace(wrong, body=Apply("add", (wrong.body, Const(0.5))))
    einsums = tuple(spoiled if einsum is wrong else einsum for einsum in program.einsums)
    source = replace(layers.source, program=replace(program, einsums=einsums))
    faulty = compile_source(source, ff.Schedule.fuse("none"), layers.machine)
    text = explained(faulty)
    assert text.startswith(f"the first Einsum that differs from PyTorch: `{wrong.name}`"), text
    assert ":" in text.partition("\n")[0] and " it is " in text.partition("\n")[0]
    assert "the dense interpreter computes the same from what it read: the program says something else than the model" in text


def test_a_wrong_value_of_a_simulation_is_told_from_a_wrong_program(layers: ff.Compiled, monkeypatch):
    name = next(einsum.name for einsum in layers.source.program.einsums if "norm" in einsum.name)
    plant(monkeypatch, name)
    text = explained(layers)
    assert text.startswith(f"the first Einsum that differs from PyTorch: `{name}`")
    assert "its graph, or the simulation of it, is wrong" in text


def test_an_einsum_whose_extents_are_declared_alone_is_compared():
    text = "tensor b[3] dense\ntensor y[2, 3] dense\ny[i, j] = b[j]\nz[i, j] = relu(y[i, j])\noutput z\n"
    program = ff.compile(parse(text), tensors={"b": np.arange(3.0)}, schedule=ff.Schedule.fuse("none"))
    assert bisect(program, "reference").deviation is None


class Infinite(nn.Module):
    """A model in which a sparse product leaves out what is infinite, and a dense one would make NaN of it."""

    def forward(self, adj: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.sparse.mm(adj, 1 / x))


def test_what_only_a_dense_product_makes_nan_accuses_nothing():
    adj, x = torch.tensor([[1.0, 0, 2], [0, 0, 3], [4, 0, 0]]), torch.tensor([[1.0, 2], [0, 0], [4, 5]])
    program = ff.compile(Infinite(), inputs=(adj.to_sparse_csr(), x))
    assert program.run().check.passed
    values = program.source.intermediates()
    assert set(values) < {einsum.name for einsum in program.source.program.einsums} and values
    assert explained(program, passed=True).startswith("no Einsum differs by itself")


def test_the_import_cache_recalls_what_computes_the_values(tmp_path, monkeypatch):
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "m.py").write_text(
        "import torch\n\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x @ x)\n\n"
        "def build():\n    return M(), (torch.arange(9.0).reshape(3, 3),)\n"
    )
    for _ in range(2):
        program = ff.compile(tmp_path / "m.py")
        assert set(program.source.intermediates()) == {einsum.name for einsum in program.source.program.einsums}


@pytest.mark.parametrize(
    ("computed", "expected", "place"),
    [
        ([[1.0, 2], [3, 4]], [[1.0, 2], [3, 4.5]], Difference((1, 1), 4.0, 4.5)),
        ([[1.0, np.nan], [3, 4]], [[1.0, 2], [3, 9]], (0, 1)),
        ([[1.0, np.inf], [3, 4]], [[1.0, np.inf], [3, 5]], (1, 1)),
    ],
)
def test_a_check_says_where_the_largest_error_is(computed, expected, place):
    check = check_outputs({"y": pack(np.array(computed), Format.dense(2))}, {"y": np.array(expected)}, "test")
    assert check.worst == "y"
    assert place in (check.largest, check.largest.coordinates)


def test_the_command_says_what_differs(monkeypatch, tmp_path):
    from click.testing import CliRunner

    from fuseflow.cli.main import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.ein").write_text(PROGRAM)
    (tmp_path / "t.yaml").write_text("A: {path: A.npy}\nB: {path: B.npy}\n")
    np.save("A.npy", np.eye(4))
    np.save("B.npy", np.arange(1.0, 13).reshape(4, 3))
    words = ["run", "p.ein", "--tensors", "t.yaml", "--bisect"]
    passed = CliRunner().invoke(main, words)
    assert passed.exit_code == 0
    assert "bisect: no Einsum differs by itself: 3 were compared with the dense interpreter" in passed.stdout
    assert CliRunner().invoke(main, [*words, "--no-check"]).exit_code == 2
    monkeypatch.setattr(ProgramReference, "interpret", lambda self: {"w": np.zeros((4, 3))})
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1
    assert "note: the largest difference of `w`: at (3, 2) it is 24, not 0" in result.stderr
    assert "note: every region computes what its Einsums say" in result.stderr
