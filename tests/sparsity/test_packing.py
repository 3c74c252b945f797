"""Packing of models."""

from __future__ import annotations

import copy
import dataclasses
import io
import subprocess
import sys
import types

import pytest
import torch
from packed_layouts import IDS, LAYOUTS, mask_for

import fuseflow.sparsity as sp
from fuseflow.errors import SparsityError


class Tied(torch.nn.Module):
    """Two layers that share a weight."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_tied_weights_stay_tied_and_names_stay(layout):
    model, mask = Tied(), mask_for(layout, (6, 6))
    packed = sp.pack(model, {"first.weight": (layout, mask)})
    assert type(model.first.weight) is torch.nn.Parameter
    assert packed.first.weight is packed.second.weight and type(packed.first.weight.wrapped_tensor) is layout.storage
    assert [*packed.state_dict()] == [*model.state_dict()] and len([*packed.parameters()]) == len([*model.parameters()])
    with torch.no_grad():
        model.first.weight *= mask
    x = torch.randn(2, 6)
    with sp.set_dispatch_failure("raise"):
        result = packed(x)
    torch.testing.assert_close(result, model(x))
    result.sum().backward()
    torch.optim.SGD(packed.parameters(), 0.1).step()
    assert packed.first.weight is packed.second.weight
    twin = copy.deepcopy(packed)
    assert twin.first.weight is twin.second.weight and twin.first.weight is not packed.first.weight


def test_a_state_dict_is_one_of_the_dense_model_and_loads_safely():
    model, mask = Tied(), mask_for(sp.CSR(), (6, 6))
    packed, file = sp.pack(model, {"first.weight": (sp.CSR(), mask)}), io.BytesIO()
    torch.save(packed.state_dict(), file)
    program = "import sys, io, torch; print(sorted(torch.load(io.BytesIO(sys.stdin.buffer.read()), weights_only=True)))"
    done = subprocess.run([sys.executable, "-c", program], input=file.getvalue(), capture_output=True, check=True)
    assert "first.weight" in done.stdout.decode()  # A process that knows nothing of fuseflow.
    file.seek(0)
    state = torch.load(file, weights_only=True)
    Tied().load_state_dict(state)
    fresh = sp.pack(Tied(), {"first.weight": (sp.CSR(), mask)})
    fresh.load_state_dict(state)
    torch.testing.assert_close(fresh.first.weight.stored_dense(), model.first.weight.detach() * mask)
    assert isinstance(packed.state_dict(keep_vars=True)["first.weight"], sp.PackedParameter)


@pytest.mark.parametrize("layout", [*LAYOUTS[:4], sp.BCSR((4, 4)), sp.NMLayout(2, 4)], ids=str)
def test_a_weight_needs_hardly_more_than_what_is_stored(layout):
    shape = (768, 3072)
    mask = mask_for(layout, shape, 0.1)
    weight = sp.pack(torch.nn.Linear(*shape[::-1]), {"weight": (layout, mask)}).weight
    storage = weight.wrapped_tensor
    tensors = [t for f in dataclasses.fields(storage) if isinstance(t := getattr(storage, f.name), torch.Tensor)]
    held = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    stored = storage.values.numel()
    expected = {
        "csr": stored * 8 + (shape[0] + 1) * 4,
        "csc": stored * 8 + (shape[1] + 1) * 4,
        "coo": stored * 12,
        "ell": stored * 8,
        "bcsr": stored * 4 + stored // 16 * 4 + 193 * 4,
        "nm": stored * 5,
    }
    assert held <= 1.1 * expected[layout.name]


@pytest.mark.parametrize("training", [False, True])
def test_a_transformer_encoder(training):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True)
    dense = torch.nn.TransformerEncoder(layer, 2).train(training)
    masks = {name: torch.rand_like(p) < 0.5 for name, p in dense.named_parameters() if p.dim() == 2}
    packed = sp.pack(dense, {name: (sp.CSR(), mask) for name, mask in masks.items()})
    with torch.no_grad():
        for name, mask in masks.items():
            dense.get_parameter(name).mul_(mask)
    x = torch.randn(2, 3, 8)
    with sp.set_dispatch_failure("silent"), torch.set_grad_enabled(training):
        result = packed(x)
    torch.testing.assert_close(result, dense(x), atol=1e-5, rtol=1e-4)
    if training:
        result.sum().backward()
        assert all(isinstance(packed.get_parameter(name).grad, sp.PackedTensor) for name in masks)


def test_what_does_not_fit_is_named():
    model = torch.nn.Linear(6, 4)
    with pytest.raises(SparsityError, match="the model has no weight `wieght`") as error:
        sp.pack(model, {"wieght": (sp.CSR(), torch.ones(4, 6, dtype=torch.bool))})
    assert "did you mean `weight`?" in error.value.hint
    with pytest.raises(SparsityError, match=r"the mask of `weight` has shape \[6, 4\], and the weight has \[4, 6\]"):
        sp.pack(model, {"weight": (sp.CSR(), torch.ones(6, 4, dtype=torch.bool))})
    with pytest.raises(SparsityError, match="`weight` cannot be stored as `nm:2:4`"):
        sp.pack(model, {"weight": (sp.NMLayout(2, 4), torch.ones(4, 6, dtype=torch.bool))})
    assert type(model.weight) is torch.nn.Parameter


def test_products_of_packed_weights_have_the_type_of_autocast():
    model = sp.pack(torch.nn.Linear(6, 4), {"weight": (sp.CSR(), mask_for(sp.CSR(), (4, 6)))})
    x, dense = torch.randn(2, 6), model.weight.stored_dense()
    with sp.set_dispatch_failure("raise"), torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(model(x), torch.nn.functional.linear(x, dense, model.bias))
        assert model(x).dtype == torch.bfloat16


RULES = (
    "magnitude:0.5:csr",
    "magnitude:0.5:csc",
    "magnitude:0.5:coo",
    "magnitude:0.5:ell",
    "block:0.5:2x2",
    "nm:2:4",
    "nmg:2:4:2",
)


def sparse_network(rule):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 24), torch.nn.ReLU(), torch.nn.Linear(24, 8))
    return sp.sparse_copy(model, sp.parse_sparsify(f"*.weight={rule}"))


@pytest.mark.parametrize("rule", RULES)
def test_a_sparse_model_is_packed_as_its_rules_say(rule):
    sparse = sparse_network(rule)
    packed = sp.pack(sparse)
    x = torch.randn(5, 8)
    assert all(isinstance(packed[k].weight, sp.PackedTensor) for k in (0, 2))
    with sp.set_dispatch_failure("raise"):
        torch.testing.assert_close(packed(x), sparse(x), atol=1e-5, rtol=1e-5)
    assert list(packed.state_dict()) == list(sparse.state_dict())
    assert all(torch.equal(value, packed.state_dict()[name]) for name, value in sparse.state_dict().items())
    assert type(sparse[0].weight) is torch.nn.Parameter


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
@pytest.mark.parametrize("rule", RULES)
def test_a_packed_model_trains_where_it_has_entries(rule, optimizer):
    packed, sparse = sp.pack(sparse_network(rule)), sparse_network(rule)
    handle = sp.attach(sparse, optimizer=optimizer(sparse.parameters(), lr=0.01))
    for model, steps in ((packed, optimizer(packed.parameters(), lr=0.01)), (sparse, handle._optimizer)):
        generator = torch.Generator().manual_seed(1)
        for _ in range(5):
            steps.zero_grad()
            model(torch.randn(4, 8, generator=generator)).square().sum().backward()
            steps.step()
    for name, value in sparse.state_dict().items():
        ours = packed.state_dict()[name]
        torch.testing.assert_close(ours * (value != 0), value, atol=1e-4, rtol=1e-3)
        if name in handle.masks and "nm" not in rule and "block" not in rule:
            assert int((ours != 0).sum()) == int(handle.masks[name].sum())


def test_rules_of_intermediates_stay_with_a_packed_model():
    builder = sp.SparsityBuilder()
    builder.set_weight("0.weight", sp.Magnitude(0.5), out_format=sp.CSR)
    builder.set_interm("1", external_sparsifier=sp.TopK(2))
    sparse = builder.get_sparse_model(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()))
    x = torch.randn(5, 8)
    torch.testing.assert_close(sp.pack(sparse)(x), sparse(x))
    assert int((sp.pack(sparse)(x) != 0).sum(1).max()) <= 2


def test_weights_that_are_stored_dense_stay_ordinary_parameters():
    packed = sp.pack(sparse_network("magnitude:0.5:masked"))
    assert type(packed[0].weight) is torch.nn.Parameter


def test_what_cannot_be_packed_is_refused():
    with pytest.raises(SparsityError, match="the model is dense") as error:
        sp.pack(torch.nn.Linear(4, 4))
    assert "SparsityBuilder" in error.value.hint
    moved = sparse_network("magnitude:0.5:csr")
    with torch.no_grad():
        moved[0].weight.add_(1)
    with pytest.raises(SparsityError, match=r"`0.weight` is not 0 at"):
        sp.pack(moved)


def scaled(tensors, factor):
    """A function that reads the memory of its tensors."""
    for tensor in tensors:
        tensor.numpy()[...] *= factor
    return tensors[0]


def module() -> types.ModuleType:
    made = types.ModuleType("extension")
    made.scaled, made.alias, made.Keeper = scaled, scaled, type("Keeper", (), {"function": scaled})
    return made


def packed(value: float) -> sp.PackedTensor:
    return sp.torch_tensor_to_csr(sp.KeepAll(), value * torch.eye(3))


def test_a_function_gets_dense_copies_that_are_read_back():
    extension, x, y = module(), packed(2.0), torch.ones(3, 3)
    undo = sp.patch(scaled, module_scope=[extension])
    with pytest.warns(sp.DispatchWarning, match="scaled"):
        assert extension.scaled([x, y], 3.0) is x
    assert torch.equal(x.stored_dense(), 6 * torch.eye(3)) and torch.equal(y, 3 * torch.ones(3, 3))
    assert extension.alias is not scaled and extension.Keeper.function is not scaled
    undo.close()
    assert extension.scaled is extension.alias is extension.Keeper.function is scaled


def test_a_function_is_replaced_by_another_one_for_a_while():
    old = torch.nn.functional.hardtanh
    with sp.patch(old, lambda x: "mine"):
        assert torch.nn.functional.hardtanh(packed(1.0)) == "mine"
    assert torch.nn.functional.hardtanh is old


def test_a_function_that_no_module_holds_is_refused():
    with pytest.raises(SparsityError, match="no module holds `scaled`") as error:
        sp.patch(scaled)
    assert "module_scope" in error.value.hint
    with pytest.raises(SparsityError, match=r"no module holds `torch\.Tensor\.add`"):
        sp.patch(torch.Tensor.add)
