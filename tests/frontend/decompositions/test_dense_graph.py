"""The dense graph of a model computes what PyTorch computes, also where a call gets a copy of the trace of an equal one. It is the graph
that a trace of all calls together gives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Node

from fuseflow.errors import FrontendError
from fuseflow.frontend.decompositions import dense_graph
from fuseflow.frontend.decompositions.densify import DensifyingInterpreter
from fuseflow.frontend.export import ExportedGraph, export_graph
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.model_call import model_call

X = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))


class Layer(nn.Module):
    """A layer whose numbers, places of writes and order of operands may follow from its number in the model."""

    def __init__(self, body: Callable[[Layer, Tensor, int], Tensor], number: int) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.dropout = nn.Dropout(0.1 * number)
        self.body, self.number = body, number

    def forward(self, x: Tensor) -> Tensor:
        return self.body(self, x, self.number)


def model(body: Callable[[Layer, Tensor, int], Tensor], layers: int = 4) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*(Layer(body, number) for number in range(layers))).eval()


def export(module: nn.Module) -> ExportedGraph:
    return export_graph(model_call(module, (X.clone(),), None), {})


def code(exported: ExportedGraph) -> list[tuple[object, ...]]:
    """The calls of a graph by numbers instead of names, with all that the rest of the import reads of their metadata."""
    numbers: dict[Node, int] = {}
    lines: list[tuple[object, ...]] = []
    for node in exported.graph.nodes:
        numbers[node] = len(numbers)
        value, args = node.meta.get("val"), torch.fx.map_arg((node.args, node.kwargs), numbers.__getitem__)
        shape = (value.shape, value.stride(), value.dtype) if isinstance(value, Tensor) else None
        origin = (
            (fx_origin.module_path(node), fx_origin.operator_name(node), fx_origin.source_span(node))
            if node.op == "call_function"
            else ()
        )
        lines.append((node.op, node.target if node.op == "call_function" else "", repr(args), shape, *origin))
    return lines


def windowed(layer: Layer, x: Tensor, number: int) -> Tensor:
    scores = x @ x.t()
    if number % 2:
        scores = scores.masked_fill(torch.ones(4, 4).triu(2) > 0, float("-inf"))
    return scores.softmax(-1) @ layer.linear(x)


def counted(layer: Layer, x: Tensor, number: int) -> Tensor:
    layer.calls = getattr(layer, "calls", 0) + 1
    layer.linear.calls = layer.calls + number
    return layer.linear(x) * layer.linear.calls


def written_twice(layer: Layer, x: Tensor, number: int) -> Tensor:
    y = layer.linear(x)
    kept = y + 1
    y.mul_(2).add_(kept)
    return y * kept + layer.linear(y).relu_()


def written_through_dropout(layer: Layer, x: Tensor, number: int) -> Tensor:
    y = layer.linear(x)
    layer.dropout(y).add_(1)
    return y * 2  # which the write changed


def written_view(layer: Layer, x: Tensor, number: int) -> Tensor:
    y = layer.linear(x)
    row = y[number]
    y.add_(1)
    return row + y


def written_part(layer: Layer, x: Tensor, number: int) -> Tensor:
    y = layer.linear(x)
    y[number].mul_(3)
    return y + 1


def reshaped_in_place(layer: Layer, x: Tensor, number: int) -> Tensor:
    y = layer.linear(x)
    y.unsqueeze_(0).mul_(2)
    return y.squeeze(0)


def either_type(layer: Layer, x: Tensor, number: int) -> Tensor:
    y = torch.tensor([2, 3, 4, 5]) * layer.linear(x).shape[0]
    return x + y * (2, 2.0, True, -0.0)[number]


BODIES: dict[str, Callable[[Layer, Tensor, int], Tensor]] = {
    "equal": lambda layer, x, number: layer.linear(x).relu() + x,
    "eps": lambda layer, x, number: nn.functional.layer_norm(x, (4,), eps=10.0**-number) + layer.linear(x),
    "number": lambda layer, x, number: layer.linear(x) * number,
    "type": lambda layer, x, number: layer.linear(x).to((torch.float32, torch.float64)[number % 2]).sin().to(torch.float32),
    "strides": lambda layer, x, number: (x.t() if number % 2 else x).reshape(-1).reshape(4, 4) + layer.linear(x),
    "operands": lambda layer, x, number: x - layer.linear(x) if number % 2 else layer.linear(x) - x,
    "same operand": lambda layer, x, number: x * (x if number % 2 else layer.linear(x)),
    "parts": lambda layer, x, number: torch.cat(
        [part * (1 + p) for p, part in enumerate(layer.linear(x).chunk(2 + number % 2, 1))], 1
    ),
    "maximum": lambda layer, x, number: x + layer.linear(x).max(number % 2, keepdim=True)[0],
    "dropout": lambda layer, x, number: layer.dropout(layer.linear(x)),
    "windowed": windowed,
    "counted": counted,
    "either type": either_type,
    "written twice": written_twice,
    "written through dropout": written_through_dropout,
    "written view": written_view,
    "written part": written_part,
    "reshaped in place": reshaped_in_place,
}


@pytest.mark.parametrize("name", BODIES)
def test_a_model_of_layers_has_the_graph_of_one_trace_and_the_values_of_pytorch(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = export(model(BODIES[name]))
    (result,) = GraphModule(nn.Module(), exported.graph)(*exported.tensors.values())
    torch.testing.assert_close(result, model(BODIES[name])(X.clone()))
    traced = dense_graph._traced
    monkeypatch.setattr(
        dense_graph, "_traced", lambda *given: traced(*given[:-2], [list(chain.from_iterable(given[-2]))], given[-1])
    )
    assert code(exported) == code(export(model(BODIES[name])))


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[list[Node]]:
    """The calls that are traced, by the traces."""
    heard: list[list[Node]] = []
    run_calls = DensifyingInterpreter.run_calls

    def listened(self: DensifyingInterpreter, calls: list[Node], operands: dict[Node, Any]) -> list[Any]:
        heard.append(calls)
        return run_calls(self, calls, operands)

    monkeypatch.setattr(DensifyingInterpreter, "run_calls", listened)
    return heard


@pytest.mark.parametrize("name", ["equal", "parts", "written twice"])
def test_more_equal_layers_need_no_more_traces(name: str, traces: list[list[Node]]) -> None:
    export(model(BODIES[name], 2))
    few = len(traces)
    export(model(BODIES[name], 9))
    assert len(traces) == 2 * few and all(len(calls) == 1 for calls in traces)


def test_memory_that_values_share_is_traced_as_a_whole(traces: list[list[Node]]) -> None:
    export(model(BODIES["written view"]))
    assert len(traces[-1]) > 4


class OneOfTwoLines(Layer):
    def forward(self, x: Tensor) -> Tensor:
        if self.number % 2:
            return self.linear(x)
        return self.linear(x)


def test_a_copy_has_its_own_module_and_line() -> None:
    layers = nn.Sequential(*(OneOfTwoLines(BODIES["equal"], number) for number in range(4)))
    calls = [node for node in export(layers).graph.nodes if fx_origin.operator_name(node) == "linear"]
    first = OneOfTwoLines.forward.__code__.co_firstlineno
    places = {(fx_origin.module_path(node), span.line - first) for node in calls if (span := fx_origin.source_span(node))}
    assert places == {("0.linear", 3), ("1.linear", 2), ("2.linear", 3), ("3.linear", 2)}


def test_a_write_to_a_weight_is_refused_in_every_layer() -> None:
    def body(layer: Layer, x: Tensor, number: int) -> Tensor:
        return x + layer.linear.weight.data.add_(1)

    def late(layer: Layer, x: Tensor, number: int) -> Tensor:
        return x + (layer.linear.weight.data if number == 3 else layer.linear(x)).add_(1)

    for refused in (body, late):
        with pytest.raises(FrontendError, match="mutates"):
            export(model(refused))


def test_a_refused_call_is_refused_each_time() -> None:
    refused = model(lambda layer, x, number: layer.linear(x) + torch.special.i0e(x))
    with pytest.raises(FrontendError) as caught:
        export(refused)
    assert len(getattr(caught.value, "refusals", ())) == 4
