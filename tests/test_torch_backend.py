"""The back end of `torch.compile`: graphs of Dynamo through the compiler and the simulator, and what Dynamo does not hand over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.errors import FrontendError


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Net(nn.Module):
    """Two layers in a list, with outputs in containers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([nn.Linear(4, 5), nn.Linear(5, 1)])

    def forward(self, x: Tensor, scale: dict[str, Tensor] | None = None) -> dict[str, Tensor | None]:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return {"y": x if scale is None else x * scale["a"], "none": None, "sum": x.sum()}


def test_outputs_and_results() -> None:
    model, x = Net().eval(), torch.rand(3, 4)
    backend = ff.Backend(schedule=ff.Schedule.fuse("layers.0"))
    outputs = torch.compile(model, backend=backend)(x, {"a": torch.ones(1) * 2})
    expected = model(x, {"a": torch.ones(1) * 2})
    assert outputs["none"] is None
    assert outputs["y"].shape == (3, 1) and outputs["sum"].shape == ()
    torch.testing.assert_close(outputs["y"], expected["y"])
    torch.testing.assert_close(outputs["sum"], expected["sum"])
    (result,) = backend.results
    assert result.cycles == result.run.cycles > 0
    assert result.run.check.passed
    assert {"layers.0.weight", "layers.1.bias"} <= {t.name for t in result.compiled.program.inputs}
    paths = {e.location.path for e in result.compiled.program.einsums}
    assert {"layers.0", "layers.1"} <= paths
    assert str(result.compiled.program.einsums[0].location.span).startswith("tests/test_torch_backend.py:")


def test_each_call_is_a_result_and_other_shapes_are_too() -> None:
    model, backend = Net().eval(), ff.Backend()
    fast = torch.compile(model, backend=backend)
    for n in (3, 5, 7):
        x = torch.rand(n, 4)
        torch.testing.assert_close(fast(x)["y"], model(x)["y"])
    assert len(backend.results) == 3
    backend.clear()
    with pytest.raises(FrontendError, match="given no graph"):
        backend.results  # noqa: B018


def test_numbers_decide_what_a_graph_is() -> None:
    """A graph that reads rows by number is compiled anew for other numbers."""
    table, backend = nn.Embedding(6, 4), ff.Backend()
    fast = torch.compile(table, backend=backend)
    for tokens in (torch.tensor([0, 3]), torch.tensor([5, 5])):
        torch.testing.assert_close(fast(tokens), table(tokens))
    assert len(backend.results) == 2


def test_graph_breaks_give_several_results() -> None:
    def model(x: Tensor) -> Tensor:
        y = torch.relu(x)
        torch._dynamo.graph_break()
        return y @ y.T

    backend, x = ff.Backend(), torch.randn(3, 4)
    torch.testing.assert_close(torch.compile(model, backend=backend)(x), model(x))
    assert len(backend.results) == 2


class Aggregate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, adjacency: Tensor, x: Tensor) -> Tensor:
        return adjacency @ self.linear(x)


class AggregateAndActivate(Aggregate):
    def activate(self, x: Tensor) -> Tensor:
        return torch.relu(x)

    def forward(self, adjacency: Tensor, x: Tensor) -> Tensor:
        return self.activate(super().forward(adjacency, x))


@pytest.mark.parametrize("sparse", [Tensor.to_sparse, Tensor.to_sparse_csr])
def test_sparse_argument_that_dynamo_keeps_to_itself(sparse: object) -> None:
    backend, adjacency = ff.Backend(), sparse(torch.eye(3))  # type: ignore[operator]
    torch.compile(Aggregate().eval(), backend=backend)(adjacency, torch.ones(3, 4))
    with pytest.raises(FrontendError, match=r"sparse argument.*\n.*ff.compile"):
        backend.results  # noqa: B018


def test_part_of_a_model_with_a_sparse_argument() -> None:
    backend, adjacency = ff.Backend(), torch.eye(3).to_sparse_csr()
    with pytest.raises(FrontendError, match="sparse argument"):
        torch.compile(AggregateAndActivate().eval(), backend=backend)(adjacency, torch.ones(3, 4))


def test_refusal_reaches_the_user() -> None:
    with pytest.raises(FrontendError, match="sorting"):
        torch.compile(lambda x: torch.mode(x).values, backend=ff.Backend())(torch.rand(5))


def test_write_to_a_buffer_is_refused_and_leaves_it_alone() -> None:
    norm, x = nn.BatchNorm1d(4), torch.rand(3, 4)
    before = norm.running_mean.clone()
    with pytest.raises(FrontendError):
        torch.compile(norm, backend=ff.Backend())(x)
    assert torch.equal(norm.running_mean, before)


def test_ready_back_end() -> None:
    ff.backend.clear()
    torch.testing.assert_close(torch.compile(torch.relu, backend=ff.backend)(torch.tensor([-1.0, 2.0])), torch.tensor([0.0, 2.0]))
    assert ff.backend.results[-1].run.check.passed


def test_region_does_not_break_a_graph() -> None:
    def model(x: Tensor, w: Tensor) -> Tensor:
        with ff.region("head"):
            y = torch.relu(x @ w)
        return y * 2

    backend, x, w = ff.Backend(), torch.rand(3, 4), torch.rand(4, 2)
    torch.testing.assert_close(torch.compile(model, backend=backend)(x, w), model(x, w))
    assert len(backend.results) == 1


def test_two_models_in_one_function() -> None:
    first, second, backend = nn.Linear(3, 3), nn.Linear(3, 3), ff.Backend()

    def both(a: nn.Module, b: nn.Module, x: Tensor) -> Tensor:
        return b(a(x))

    x = torch.rand(2, 3)
    torch.testing.assert_close(torch.compile(both, backend=backend)(first, second, x), second(first(x)))
    names = {t.name for t in backend.results[0].compiled.program.inputs}
    assert {"a.weight", "b.weight"} <= names


def test_fast_path_of_a_transformer_says_what_to_do() -> None:
    layer, x = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.rand(1, 4, 8)
    with torch.no_grad():
        with pytest.raises(FrontendError, match="set_fastpath_enabled"):
            torch.compile(layer, backend=ff.Backend())(x)
        torch._dynamo.reset()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            outputs = torch.compile(layer, backend=ff.Backend())(x)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
        torch.testing.assert_close(outputs, layer(x), rtol=1e-4, atol=1e-5)


class OneHot(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.one_hot(x, int(x.max()) + 1).float()


class SumByBatch(nn.Module):
    def forward(self, batch: Tensor, values: Tensor) -> Tensor:
        return torch.zeros(int(batch.max()) + 1, values.shape[1]).index_add(0, batch, values)


class Padded(nn.Module):
    def forward(self, rows: Tensor, values: Tensor) -> Tensor:
        return torch.cat([values, values.new_zeros(int(rows), values.shape[1])])


class Adjacency(nn.Module):
    def forward(self, edges: Tensor, values: Tensor) -> Tensor:
        nodes = int(edges.max()) + 1
        adjacency = torch.zeros(nodes, nodes).index_put((edges[0], edges[1]), values.sum(1), accumulate=True)
        return adjacency @ torch.ones(nodes, 2)


VALUES = torch.arange(15.0).reshape(5, 3)
SIZED: list[tuple[nn.Module, tuple[Tensor, ...]]] = [
    (OneHot(), (torch.tensor([0, 2, 1, 2, 0]),)),
    (SumByBatch(), (torch.tensor([0, 2, 1, 2, 0]), VALUES)),
    (Padded(), (torch.tensor(2), VALUES)),
    (Adjacency(), (torch.tensor([[0, 1, 2, 3, 3], [1, 0, 3, 2, 1]]), VALUES)),
]


@pytest.mark.parametrize(("model", "inputs"), SIZED, ids=[type(model).__name__ for model, _ in SIZED])
def test_size_that_is_a_value_of_a_tensor(model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    backend = ff.Backend()
    torch.testing.assert_close(torch.compile(model, backend=backend)(*inputs), model(*inputs))
    assert backend.results and all(result.run.check.passed for result in backend.results)
    check = ff.compile(model, *[inputs]).run().check
    assert check is not None and check.passed
