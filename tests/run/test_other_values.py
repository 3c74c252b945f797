"""A compiled program runs on other values of its inputs, and gives what PyTorch gives for them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import MachineError, OverfullError, UsageError
from fuseflow.tensors import Format, Tensor, pack

RNG = np.random.default_rng(0)


class Layer(nn.Module):
    """relu(adj @ (x @ weight))."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 3))

    def forward(self, adj: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.sparse.mm(adj, x @ self.weight))


def adjacency(share: float = 0.4) -> torch.Tensor:
    return torch.tensor(RNG.random((6, 6)) * (RNG.random((6, 6)) < share), dtype=torch.float32).to_sparse_csr()


def compiled(**arguments) -> tuple[ff.Compiled, Layer, torch.Tensor]:
    torch.manual_seed(0)
    module, x = Layer(), torch.randn(6, 5)
    return ff.compile(module, (adjacency(), x), **arguments), module, x


def output(result: ff.Result) -> np.ndarray:
    (array,) = result.outputs.values()
    return array if isinstance(array, np.ndarray) else array.toarray()


SCHEDULES = [
    ff.Schedule.fuse("none"),
    ff.Schedule.fuse("full"),
    ff.Schedule().format("weight", "csr"),
    ff.Schedule().format("weight", "csc"),
    ff.Schedule().format("adj", "dense"),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.to_yaml().strip().replace("\n", " "))
def test_outputs_are_those_of_pytorch_with_these_values(schedule) -> None:
    program, module, x = compiled(schedule=schedule)
    adj, weight = adjacency(0.6), torch.randn(5, 3)
    result = program.run(tensors={"adj": adj, "weight": weight})
    module.weight.data = weight
    np.testing.assert_allclose(output(result), module(adj, x).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert result.check.passed and result.check.reference == "dense interpreter"
    assert "`adj`, `weight`" in result.settings.notices[-1]


def test_a_run_is_that_of_a_program_compiled_with_these_values() -> None:
    program, module, x = compiled(schedule=ff.Schedule.fuse("full"))
    adj = adjacency(0.8)
    anew = ff.compile(module, (adj, x), schedule=ff.Schedule.fuse("full")).run()
    result = program.run(tensors={"adj": adj})
    assert result.cycles == anew.cycles and result.stats == anew.stats
    np.testing.assert_array_equal(output(result), output(anew))
    assert program.run().cycles != result.cycles, "the program itself has its first values"


@pytest.mark.parametrize("form", [np.asarray, torch.from_numpy, lambda array: pack(array, Format.dense(2))])
def test_forms_of_a_value(form) -> None:
    program = compiled()[0]
    weight = RNG.standard_normal((5, 3)).astype(np.float32)
    result = program.run(tensors={"weight": form(weight)})
    assert (output(result) == output(program.run(tensors={"weight": weight}))).all()


def test_values_are_copied() -> None:
    program = compiled()[0]
    weight, other = torch.ones(5, 3), np.ones((6, 5), np.float32)
    held = program.with_values({"weight": weight, "x": other})
    before = output(held.run())
    weight.zero_()
    other[:] = 0
    assert (output(held.run()) == before).all() and before.any()


def test_a_stored_zero_stays_stored() -> None:
    program = compiled(schedule=ff.Schedule().format("weight", "csr"))[0]
    mask = RNG.random((5, 3)) < 0.5
    weight = pack(mask.astype(np.float32), Format.parse("csr", 2))
    zeros = Tensor(weight.shape, weight.format, weight.levels, np.zeros_like(weight.values))
    held = program.with_values({"weight": zeros})
    assert held.memory()["weight"].stored == mask.sum()
    assert held.run().cycles == program.run(tensors={"weight": weight}).cycles


def test_a_sampled_run_takes_them_too() -> None:
    program = compiled(schedule=ff.Schedule.fuse("full"))[0]
    values = {"adj": adjacency(0.8)}
    sampled = program.run(tensors=values, sample=ff.Sample(fraction=1))
    assert sampled.check.passed and sampled.cycles.estimate == program.run(tensors=values).cycles


def test_inputs_without_data() -> None:
    program = ff.compile(parse("tensor A[3, 4] csr\ntensor x[4]\ny[i] = sum(j) A[i, j] * x[j]\noutput y"))
    a, x = np.eye(3, 4), np.arange(4.0)
    assert (output(program.run(tensors={"A": a, "x": x})) == a @ x).all()
    with pytest.raises(UsageError, match="`x` of `program` has no data"):
        program.run(tensors={"A": a})


def test_blocks_take_other_places() -> None:
    text = "tensor A[6, 8] csr block 2x2\ntensor B[8, 4] block 2x2\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y"
    first, second = ((RNG.random((6, 8)) < share).astype(np.float32) for share in (0.2, 0.6))
    b = RNG.standard_normal((8, 4)).astype(np.float32)
    program = ff.compile(parse(text), tensors={"A": first, "B": b})
    np.testing.assert_allclose(output(program.run(tensors={"A": second})), second @ b, rtol=1e-5)


def test_repeated_regions_are_told_by_the_new_places() -> None:
    text = """
    tensor A[6, 6] csr
    tensor B[6, 6] csr
    tensor x[6, 2]
    y[i, j] = sum(k) A[i, k] * x[k, j]
    z[i, j] = sum(k) B[i, k] * x[k, j]
    output y, z
    """
    same, other, x = np.eye(6), np.tri(6), RNG.standard_normal((6, 2))
    schedule = ff.Schedule.fuse("none")
    program = ff.compile(parse(text), tensors={"A": same, "B": same, "x": x}, schedule=schedule)
    assert [region.times for region in program.run().regions] == [2]
    result = program.run(tensors={"B": other})
    assert [region.times for region in result.regions] == [1, 1] and result.check.passed
    np.testing.assert_allclose(result.outputs["z"], other @ x, rtol=1e-5)


BAD = {
    "no input `wieght`.*did you mean `weight`": {"wieght": 1},
    "no input `relu`": {"relu": np.ones((6, 3))},
    r"`weight`: shape \[3\], declared \[5, 3\]": {"weight": np.ones(3)},
    r"`weight`: shape \[3\], the program has \[5, 3\]": {"weight": torch.ones(3)},
    "`weight`: elements of type `torch.float64`.*torch.float32": {"weight": torch.ones(5, 3).double()},
    "`weight`: elements of type `complex128`": {"weight": np.ones((5, 3)) * 1j},
    "`weight`: elements of type `<U1`": {"weight": "x"},
    "`weight`: a packed tensor of format .*compressed.*has .*dense, dense": {
        "weight": pack(np.ones((5, 3), np.float32), Format.parse("csr", 2))
    },
    "`weight`: a packed tensor of type f64": {"weight": pack(np.ones((5, 3)), Format.dense(2))},
    "`weight`: a packed tensor of shape": {"weight": pack(np.ones((3, 5), np.float32), Format.dense(2))},
}


@pytest.mark.parametrize(("message", "tensors"), BAD.items(), ids=range(len(BAD)))
def test_errors_name_the_input(message, tensors) -> None:
    with pytest.raises(UsageError, match=f"(?s){message}"):
        compiled()[0].run(tensors=tensors)


def test_values_that_decided_about_the_program_are_refused() -> None:
    program = compiled(propagate=True)[0]
    with pytest.raises(UsageError, match="simplified by the values of its inputs"):
        program.run(tensors={"weight": np.ones((5, 3))})


def test_a_format_without_room() -> None:
    text = "tensor A[4, 4] nm(1:2)\ntensor x[4]\ny[i] = sum(j) A[i, j] * x[j]\noutput y"
    program = ff.compile(parse(text), tensors={"A": np.eye(4), "x": np.ones(4)})
    with pytest.raises(UsageError, match=r"input `A`: level 1") as error:
        program.run(tensors={"A": np.ones((4, 4))})
    assert isinstance(error.value.__cause__, OverfullError)


def test_integers_that_the_machine_does_not_hold() -> None:
    machine = ff.load_machine("rda").model_copy(update={"arithmetic": "f32"})
    text = "tensor a[2] i32\ntensor b[2] i32\nc[i] = a[i] * b[i]\noutput c"
    program = ff.compile(parse(text), tensors={"a": [1, 2], "b": [3, 4]}, machine=machine)
    with pytest.raises(MachineError, match="2\\^24"):
        program.run(tensors={"a": [1 << 20, 1], "b": [1 << 20, 1]})
