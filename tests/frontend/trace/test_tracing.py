"""Tracing runs a model once, and answers what its control flow asks of the structure of its inputs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.errors import FrontendError, UsageError
from fuseflow.frontend import import_model
from fuseflow.frontend.trace.model_call import model_call, named_leaves


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(
        self, x: Tensor, *, mask: Tensor | None = None, state: dict[str, Any] | None = None, times: int = 1
    ) -> dict[str, Any]:
        y = x * self.scale * times
        if mask is not None:
            y = y * mask
        return {"y": y if state is None else y + state["h"][1], "none": None}


X, H = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)


@pytest.mark.parametrize(
    ("inputs", "kwargs", "names"),
    [
        ((X,), None, ["scale", "x"]),
        ({"x": X}, None, ["scale", "x"]),
        ((X,), {"mask": H}, ["scale", "x", "mask"]),
        ((X,), {"times": 3}, ["scale", "x"]),
        ((X,), {"state": {"h": [X, H]}}, ["scale", "x", "state_h_1"]),
    ],
)
def test_inputs_by_position_by_name_and_in_containers(inputs: Any, kwargs: Any, names: list[str]) -> None:
    compiled = ff.compile(Scale(), inputs, kwargs=kwargs)
    assert [t.name for t in compiled.program.inputs] == names
    result = compiled.run()
    assert result.check is not None and result.check.passed


def test_functions_and_exported_programs() -> None:
    def product(a: Tensor, b: Tensor) -> Tensor:
        return torch.relu(a @ b)

    assert import_model(product, (X, H.t())).program.name == "product"
    exported = torch.export.export(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), (X,))
    for inputs in (None, (X,)):
        result = ff.compile(exported, inputs).run()
        assert result.check is not None and result.check.passed


def test_what_is_no_call() -> None:
    with pytest.raises(UsageError, match="needs inputs"):
        import_model(Scale())
    with pytest.raises(UsageError, match="given by name twice"):
        import_model(Scale(), {"x": X}, kwargs={})
    with pytest.raises(FrontendError, match="the model is a int"):
        import_model(3, (X,))  # type: ignore[arg-type]


def test_leaves_have_the_names_of_their_arguments() -> None:
    def forward(x: Tensor, pair: Any, *rest: Tensor, **named: Any) -> None: ...

    call = model_call(forward, (X, (X, {"a": X}), X, X), {"b": [X]})
    assert [name for name, _ in named_leaves(call)] == ["x", "pair_0", "pair_1_a", "rest_0", "rest_1", "b_0"]


def test_control_flow_may_ask_the_structure_of_inputs() -> None:
    def neighbours(x: Tensor, edge_index: Tensor) -> Tensor:
        nodes = int(edge_index.max()) + 1
        loops = edge_index[0] == edge_index[1]
        if bool(loops.any()):
            edge_index = edge_index[:, ~loops]
        return torch.zeros(nodes, 3).index_add(0, edge_index[1], x[edge_index[0]])

    result = ff.compile(neighbours, (torch.rand(4, 3), torch.tensor([[0, 1, 2, 3], [1, 1, 3, 0]]))).run()
    assert result.check is not None and result.check.passed


def test_control_flow_may_not_ask_weights_and_features() -> None:
    for function in (
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x * float(x.max()),
        lambda x: x * x.tolist()[0][1],
        lambda x: x + torch.from_numpy((x * 2).numpy()),
    ):
        with pytest.raises(FrontendError, match="depends on data"):
            import_model(function, (X,))


def test_control_flow_may_ask_numbers_in_the_code() -> None:
    def heuristic(x: Tensor, i: Tensor) -> Tensor:
        slope = torch.tensor([0.5, 2.0])
        few = bool(torch.tensor([1.0, float(i.max())]) @ slope >= 2)
        return x @ x.t() if few else x

    for edges, shape in ((torch.tensor([0, 1]), X @ X.t()), (torch.tensor([0, 0]), X)):
        result = ff.compile(heuristic, (X, edges)).run()
        (output,) = result.outputs.values()
        assert torch.allclose(torch.as_tensor(output), shape)


def test_extents_may_be_tensors() -> None:
    def chunks(x: Tensor, i: Tensor) -> Tensor:
        extents: list[Any] = [torch.div(x.size(0), i.max() + 1, rounding_mode="trunc"), -1]
        return x.view(*extents) * 2

    result = ff.compile(chunks, (X, torch.tensor([1, 0]))).run()
    (output,) = result.outputs.values()
    assert torch.allclose(torch.as_tensor(output), X.view(X.shape[0] // 2, -1) * 2)


def test_names_made_of_data_are_refused() -> None:
    with pytest.raises(FrontendError, match="`__format__`, depends on data"):
        import_model(lambda x: {"0": x, "1": 2 * x}[f"{(x.sum() > 0).long()}"], (X,))


def test_numbers_that_data_is_written_to_are_data() -> None:
    def written(x: Tensor) -> Tensor:
        limit = torch.tensor([1.0, 2.0])
        limit[0] = x.sum()
        return x if bool(limit.sum() > 0) else -x

    with pytest.raises(FrontendError, match="depends on data"):
        import_model(written, (X,))


def test_random_numbers_are_data() -> None:
    with pytest.raises(FrontendError, match="depends on data"):
        import_model(lambda x: x * 2 if bool(torch.rand(1) > 0.5) else -x, (X,))


def test_neither_weights_nor_inputs_change() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: Tensor) -> Tensor:
            self.get_buffer("count").add_(1)
            return x.mul_(2)

    model, x = Counter(), X.clone()
    with pytest.raises(FrontendError, match="mutates"):
        import_model(model, (x,))
    assert torch.equal(x, X) and model.get_buffer("count").item() == 0


def test_tensors_in_attributes_are_inputs_under_their_names() -> None:
    class Graph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.adj = torch.eye(2).to_sparse_csr()

        def forward(self, x: Tensor) -> Tensor:
            return self.adj @ x * torch.tensor([1.0, 2.0, 3.0])

    imported = import_model(nn.Sequential(Graph()), (X,))
    assert [t.name for t in imported.program.inputs] == ["input", "0.adj", "constant"]
    assert imported.tensors["0.adj"].format.short() == "csr"
