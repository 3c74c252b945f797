"""Names of `torch.fx`, which rules of intermediates may have."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

import fuseflow.sparsity as sp
from fuseflow.sparsity.intermediates import own_name


class Activation(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(F.gelu(x).relu())


class Intermediate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.act, self.again = nn.Linear(4, 8), Activation(), Activation()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.again(F.relu(self.act(self.dense(x))))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.intermediate = Intermediate()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.intermediate(x) if x.sum() > 0 else self.intermediate(-x)  # which no trace can follow
        return y


def test_nodes_of_a_trace_have_our_names():
    model = Layer()
    names = {node.name for node in torch.fx.symbolic_trace(model.intermediate).graph.nodes}
    assert {"gelu", "gelu_1", "gelu_2", "gelu_3", "relu", "relu_1"} <= names
    ours = {name: own_name(model, f"intermediate.{name}") for name in ("gelu", "gelu_1", "gelu_2", "gelu_3", "relu_1", "dense")}
    assert ours == {
        "gelu": "intermediate.act.gelu",
        "gelu_1": "intermediate.act.gelu_2",
        "gelu_2": "intermediate.again.gelu",
        "gelu_3": "intermediate.again.gelu_2",
        "relu_1": "intermediate.relu",
        "dense": "intermediate.dense",
    }
    assert set(ours.values()) <= {*sp.names(model, torch.ones(2, 4)).intermediates}


def test_names_that_no_trace_has_stay():
    model = Layer()
    for name in (
        "intermediate.relu",
        "intermediate.*",
        "*",
        "relu",
        "intermediat.gelu",
        "intermediate.gelu_9",
        "intermediate.act",
    ):
        assert own_name(model, name) == name


def test_a_rule_with_a_name_of_torch_fx_is_applied():
    sb = sp.SparsityBuilder()
    sb.set_interm("intermediate.gelu", inline_sparsifier=sp.Threshold(1e9))
    model, seen = sb.get_sparse_model(Layer()), []
    model.intermediate.act.register_forward_hook(lambda module, args, output: seen.append(output))
    model(torch.ones(2, 4))
    assert not seen[0].any()
