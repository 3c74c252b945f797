"""The names of what a model computes, which rules speak of."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import fuseflow.sparsity as sp
from fuseflow.sparsity.spec import IntermediateEntry, OutputFormat, SparseSpec


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.act = nn.Linear(4, 4), nn.ReLU()

    def forward(self, x):
        x = F.relu(self.act(self.fc(x)))
        return (torch.relu(x - 1).relu() @ x.T) / 2


def model():
    return nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), Layer())


NAMES = ["0.0.linear", "0.0", "0.1.relu", "0.1", "0", "1.fc.linear", "1.fc", "1.act.relu", "1.act"]
NAMES += ["1.relu", "1.sub", "1.relu_2", "1.relu_3", "1.matmul", "1.div", "1"]
X = torch.linspace(-2, 2, 12).reshape(3, 4)


def test_names_are_the_paths_of_modules_and_the_functions_that_they_call():
    names = sp.names(model(), X)
    assert names.intermediates == tuple(NAMES)
    assert names.weights == tuple(dict(model().named_parameters()))
    assert str(names).split() == ["weights:", *names.weights, "intermediates:", *NAMES]


def test_a_tied_weight_has_all_its_names():
    tied = model()
    tied[1].fc.weight = tied[0][0].weight
    assert sp.names(tied, X).weights == ("0.0.weight", "1.fc.weight", "0.0.bias", "1.fc.bias")


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_takes_every_name_that_is_listed(name):
    sparse = sp.sparse_copy(model(), SparseSpec((), ((name, IntermediateEntry(OutputFormat(sp.Magnitude(1.0)))),)))
    assert sparse(X).shape == (3, 3)


def test_a_sparse_model_has_the_names_of_the_dense_one():
    everything = IntermediateEntry(
        OutputFormat(sp.Threshold(0.1), external=sp.RandomFraction(0.5)), OutputFormat(sp.Magnitude(0.5))
    )
    sparse = sp.sparse_copy(model(), SparseSpec((), (("*", everything),)))
    assert sp.names(sparse, X) == sp.names(model(), X)


def test_names_inside_a_sparse_module_are_those_of_the_dense_one():
    sparse = model()
    sp.sparsify(sparse[0], SparseSpec((), (("*", IntermediateEntry(OutputFormat(sp.RandomFraction(0.5)))),)))
    assert sp.names(sparse, X) == sp.names(model(), X)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_a_transformer_has_the_same_names_in_training_and_inference(training, grad):
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train(training)
    with torch.set_grad_enabled(grad):
        names = sp.names(encoder, torch.ones(1, 3, 8)).intermediates
    assert {"layers.1.relu", "layers.1.linear1", "layers.1.dropout", "layers.1.norm2", "layers.1"} <= {*names}
    assert len(names) == 40 and names.index("layers.0.linear1") < names.index("layers.0.relu") < names.index("layers.0.linear2")


def test_listing_names_changes_nothing_of_a_model():
    batches = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 4), nn.Dropout())
    before = {name: value.clone() for name, value in batches.state_dict().items()}
    generator = torch.get_rng_state()
    sp.names(batches, X)
    assert torch.equal(torch.get_rng_state(), generator)
    assert all(torch.equal(value, before[name]) for name, value in batches.state_dict().items())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in batches.modules())


def test_what_is_no_tensor_of_real_numbers_has_no_name():
    class Positions(nn.Module):
        def forward(self, x, *, shift):
            return x.argmax(-1) + shift, torch.sigmoid(x), torch.fft.fft(x)

    assert sp.names(nn.Sequential(Positions())[0], X, shift=1).intermediates == ("sigmoid",)


def test_weights_that_torch_stores_sparse_have_names():
    layer = nn.Linear(4, 4)
    layer.weight = nn.Parameter(torch.eye(4).to_sparse_csr())
    assert sp.names(layer, X) == sp.Names(("weight", "bias"), ("linear",))


def test_an_empty_list_says_so_by_its_titles():
    assert str(sp.Names((), ())) == "weights:\nintermediates:"
