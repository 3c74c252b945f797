"""The builder makes a sparse model of a dense one, and says what does not fit before anything changes."""

import copy
import io

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.parameter import is_lazy

import fuseflow.sparsity as sp
from fuseflow.errors import SparsityError
from fuseflow.sparsity.spec import IntermediateEntry, OutputFormat, WeightEntry


class Tied(nn.Module):
    """An encoder and a decoder of one weight."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(4, 4), nn.Linear(4, 4)
        self.decoder.weight = self.encoder.weight

    def forward(self, x):
        return self.decoder(torch.relu(self.encoder(x)))


def two_layers():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))


def pruning(name="*.weight", sparsifier=None, **rest):
    builder = sp.SparsityBuilder()
    builder.set_weight(name, sparsifier or sp.Magnitude(0.5), **rest)
    return builder


def snapshot(model):
    """Return all that a failing step must leave: attributes, hooks, parameters as objects and as numbers."""
    modules = [(m, dict(vars(m)), dict(m._parameters), len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]
    return modules, [
        (p, p.dtype, p.requires_grad, None if p.is_meta or is_lazy(p) else p.detach().clone()) for p in model.parameters()
    ]


def require_unchanged(model, before):
    modules, parameters = before
    assert [m for m, *_ in modules] == [*model.modules()]
    for module, attributes, own, hooks, pre_hooks in modules:
        assert vars(module).keys() == attributes.keys()
        assert all(module._parameters[name] is parameter for name, parameter in own.items())
        assert (len(module._forward_hooks), len(module._forward_pre_hooks)) == (hooks, pre_hooks)
    for parameter, dtype, requires_grad, value in parameters:
        assert (parameter.dtype, parameter.requires_grad) == (dtype, requires_grad)
        assert value is None or torch.equal(parameter.detach(), value)


def test_a_sparse_copy_has_the_names_and_the_state_dict_of_the_dense_model():
    model = two_layers()
    before = snapshot(model)
    sparse = pruning().get_sparse_model(model)
    assert [*dict(sparse.named_parameters())] == [*dict(model.named_parameters())]
    assert [*sparse.state_dict()] == [*model.state_dict()]
    assert [int((sparse[k].weight != 0).sum()) for k in (0, 2)] == [12, 12]
    kept = sparse[0].weight != 0
    assert torch.equal(sparse[0].weight[kept], model[0].weight[kept])
    assert model[0].weight.abs()[kept].min() >= model[0].weight.abs()[~kept].max()
    assert type(sparse[0].weight) is nn.Parameter and torch.equal(sparse[0].bias, model[0].bias)
    require_unchanged(model, before)


def test_the_model_itself_becomes_sparse_in_place():
    model = two_layers()
    weight, bias = model[0].weight, model[0].bias
    assert pruning().sparsify_model_inplace(model) is model
    assert model[0].weight is weight and model[0].bias is bias and int((weight == 0).sum()) == 12


def test_two_calls_give_two_models_of_equal_numbers():
    model, builder = two_layers(), pruning()
    first, second = builder.get_sparse_model(model), builder.get_sparse_model(model)
    assert first[0].weight is not second[0].weight and torch.equal(first[0].weight, second[0].weight)


@pytest.mark.parametrize("name", ["encoder.weight", "decoder.weight", "*.weight"])
@pytest.mark.parametrize("inplace", [False, True])
def test_tied_weights_stay_one_parameter_under_any_of_their_names(name, inplace):
    builder, model = pruning(name), Tied()
    sparse = builder.sparsify_model_inplace(model) if inplace else builder.get_sparse_model(model)
    assert sparse.encoder.weight is sparse.decoder.weight
    assert int((sparse.encoder.weight == 0).sum()) == 8
    assert [name for name, *_ in sp.sparse_weights(sparse)] == ["encoder.weight"]


def test_of_two_patterns_for_a_tied_weight_the_last_one_counts():
    builder = pruning("decoder.weight", sp.Magnitude(0.25))
    builder.set_weight("encoder.weight", sp.Magnitude(0.75))
    assert int((builder.get_sparse_model(Tied()).decoder.weight == 0).sum()) == 12


def test_a_state_dict_loads_safely_and_into_the_dense_model():
    sparse, file = pruning().get_sparse_model(two_layers()), io.BytesIO()
    torch.save(sparse.state_dict(), file)
    file.seek(0)
    dense = two_layers()
    dense.load_state_dict(torch.load(file, weights_only=True))
    x = torch.randn(3, 4)
    assert torch.equal(dense(x), sparse(x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_the_type_of_the_numbers_stays(dtype):
    model = two_layers().to(dtype)
    weight = pruning().get_sparse_model(model)[0].weight
    assert weight.dtype == dtype and int((weight != 0).sum()) == 12
    assert torch.equal(weight[weight != 0], model[0].weight[weight != 0])


def test_a_frozen_weight_stays_frozen():
    model = two_layers()
    model[0].weight.requires_grad_(False)
    sparse = pruning().get_sparse_model(model)
    assert not sparse[0].weight.requires_grad and sparse[2].weight.requires_grad


def test_random_masks_follow_the_seed_of_torch():
    def drawn(seed):
        torch.manual_seed(seed)
        return pruning(sparsifier=sp.RandomFraction(0.5)).get_sparse_model(model)[0].weight

    model = nn.Sequential(nn.Linear(16, 16))
    assert torch.equal(drawn(1), drawn(1)) and not torch.equal(drawn(1), drawn(2))


def test_magnitudes_of_all_weights_are_compared_if_the_rule_says_so():
    model = two_layers()
    with torch.no_grad():
        model[0].weight.add_(100)
    sparse = pruning(sparsifier=sp.Magnitude(0.5, scope="model")).get_sparse_model(model)
    assert bool((sparse[0].weight != 0).all()) and not sparse[2].weight.any()


def test_inline_and_external_sparsifiers_select_of_what_the_first_one_kept():
    builder = pruning("0.weight", sp.Magnitude(0.5), inline_sparsifier=sp.Threshold(0.1), external_sparsifier=sp.TopK(2, dim=1))
    model = two_layers()
    weight = builder.get_sparse_model(model)[0].weight.detach()
    halved = model[0].weight * sp.Magnitude(0.5).select(model[0].weight)
    above = halved * (halved.abs() >= 0.1)
    assert torch.equal(weight, above * sp.TopK(2, dim=1).select(above))


def test_without_a_sparsifier_all_of_a_weight_is_kept():
    builder, model = sp.SparsityBuilder(), two_layers()
    builder.set_weight("0.weight")
    sparse = builder.get_sparse_model(model)
    assert torch.equal(sparse[0].weight, model[0].weight)
    assert sp.sparsity_of(sparse).weights["0.weight"].mask.all()
    assert builder.spec().weights == (("0.weight", WeightEntry(update=OutputFormat(layout=sp.Masked()))),)


def test_a_rule_for_a_gradient_alone_leaves_the_weight():
    builder, model = sp.SparsityBuilder(), two_layers()
    builder.set_weight_grad("0.weight", inline_sparsifier=sp.Magnitude(0.5))
    sparse = builder.get_sparse_model(model)
    assert torch.equal(sparse[0].weight, model[0].weight)
    ((name, entry),) = builder.spec().weights
    assert name == "0.weight" and entry.grad == OutputFormat(sp.Magnitude(0.5)) and entry.sparsifier == sp.KeepAll()


def test_a_tensor_and_its_gradient_have_one_entry():
    builder = pruning("0.weight")
    builder.set_weight_grad("0.weight", external_sparsifier=sp.Threshold(0.1))
    builder.set_interm("1", inline_sparsifier=sp.Threshold(0.2))
    builder.set_interm_grad("1", inline_sparsifier=sp.Magnitude(0.5))
    builder.set_interm_grad("2", inline_sparsifier=sp.Magnitude(0.25))
    spec = builder.spec()
    assert dict(spec.weights)["0.weight"].grad == OutputFormat(external=sp.Threshold(0.1))
    assert spec.intermediates == (
        ("1", IntermediateEntry(OutputFormat(sp.Threshold(0.2)), OutputFormat(sp.Magnitude(0.5)))),
        ("2", IntermediateEntry(grad=OutputFormat(sp.Magnitude(0.25)))),
    )


@pytest.mark.parametrize(
    ("given", "layout"),
    [
        (sp.CSR, sp.CSR()),
        (sp.CSR(), sp.CSR()),
        (sp.CsrTensor, sp.CSR()),
        (torch.Tensor, sp.Dense()),
        (sp.NMLayout, sp.NMLayout(2, 4)),
        (sp.NMTensor, sp.NMLayout(2, 4)),
        (sp.NMLayout(3, 4), sp.NMLayout(3, 4)),
        (sp.MaskedSparseTensor, sp.Masked()),
    ],
    ids=str,
)
def test_a_layout_is_named_by_itself_its_class_or_its_tensors(given, layout):
    assert pruning(sparsifier=sp.NM(2, 4), out_format=given).spec().weights[0][1].layout == layout


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "bsc"])
def test_weights_that_torch_stores_sparse_become_dense_and_what_was_not_stored_is_pruned(kind, dtype):
    model = Tied().to(dtype)
    dense = torch.tensor([[0.0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 5], [0, 0, 0, -6]], dtype=dtype)
    stored = getattr(dense, f"to_sparse_{kind}")(*([(2, 2)] if kind[0] == "b" else [])) if kind != "coo" else dense.to_sparse()
    model.encoder.weight = model.decoder.weight = nn.Parameter(stored)
    builder = sp.SparsityBuilder()
    builder.set_weight("encoder.weight", external_sparsifier=sp.Threshold(2), out_format=sp.COO)
    sparse = builder.get_sparse_model(model)
    weight = sparse.encoder.weight
    assert model.encoder.weight.layout != torch.strided and weight.layout == torch.strided and weight is sparse.decoder.weight
    assert torch.equal(weight.detach(), dense * (dense.abs() >= 2)) and weight.requires_grad
    assert torch.equal(sp.sparsity_of(sparse).weights["encoder.weight"].mask, dense.abs() >= 2)


def test_entries_that_are_stored_as_zero_are_kept():
    model = nn.Linear(2, 2, bias=False)
    model.weight = nn.Parameter(torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [3.0, -3.0, 0.0], (2, 2)))
    builder = sp.SparsityBuilder()
    builder.set_weight("weight", out_format=sp.CSR)
    builder.sparsify_model_inplace(model)
    assert sp.sparsity_of(model).weights["weight"].mask.tolist() == [[False, True], [True, False]]
    assert not model.weight.any()


def test_a_copy_of_a_sparse_model_has_masks_of_its_own():
    sparse = pruning().get_sparse_model(two_layers())
    twin = copy.deepcopy(sparse)
    first, second = (sp.sparsity_of(model).weights["0.weight"] for model in (sparse, twin))
    assert first is not second and first.mask is not second.mask and torch.equal(first.mask, second.mask)
    second.mask.fill_(True)
    assert not first.mask.all()


def test_a_model_without_rules_is_copied():
    model = two_layers()
    sparse = sp.SparsityBuilder().get_sparse_model(model)
    assert sparse is not model and torch.equal(sparse[0].weight, model[0].weight)


BAD_RULES = {
    "twice": (lambda b: [b.set_weight("*.weight", sp.Magnitude(0.1)) for _ in "12"], "`*.weight` has a rule already", "once"),
    "gradient twice": (lambda b: [b.set_weight_grad("0.weight") for _ in "12"], "has a rule already", "once"),
    "intermediate twice": (lambda b: [b.set_interm("1") for _ in "12"], "`1` has a rule already", "once"),
    "its gradient twice": (lambda b: [b.set_interm_grad("1") for _ in "12"], "`1` has a rule already", "once"),
    "text": (lambda b: b.set_weight("0.weight", "magnitude:0.9"), "`magnitude:0.9` is no sparsifier", "sp.Magnitude(0.9)"),
    "class": (lambda b: b.set_weight("0.weight", sp.Magnitude), "is no sparsifier", "sp.Magnitude(0.9)"),
    "layout for rule": (lambda b: b.set_interm("1", inline_sparsifier=sp.CSR()), "`csr` is no sparsifier", ""),
    "layout text": (lambda b: b.set_weight("0.weight", out_format="csr"), "`csr` is no layout", "known: Dense, Masked, COO, CSR"),
    "rule for layout": (lambda b: b.set_weight("0.weight", tmp_format=sp.Magnitude(0.5)), "`magnitude:0.5` is no layout", ""),
    "layout list": (lambda b: b.set_interm("1", out_format=[]), "`[]` is no layout", ""),
    "bare layout": (lambda b: b.set_weight("0.weight", out_format=sp.BCSR), "`bcsr` needs parameters", "BCSR(...)"),
    "no name": (lambda b: b.set_weight(0, sp.Magnitude(0.5)), "`0` is no name of a tensor", "as in `layer1.weight`"),
}


@pytest.mark.parametrize(("build", "message", "hint"), BAD_RULES.values(), ids=BAD_RULES)
def test_a_rule_that_is_none_is_refused_when_it_is_set(build, message, hint):
    builder = sp.SparsityBuilder()
    with pytest.raises(SparsityError) as error:
        build(builder)
    assert message in error.value.message and hint in error.value.hint


def convolution():
    return nn.Sequential(nn.Conv2d(2, 2, 3))


def with_weight(weight):
    model = two_layers()
    model[2].weight = nn.Parameter(weight, requires_grad=False)
    return model


def made_in_inference_mode():
    with torch.inference_mode():
        return two_layers()


def row_twice():
    return sp.NMLayout(1, 4)


BAD_WEIGHTS = {
    "no name": (two_layers, pruning("0.wieght"), "no weight is called `0.wieght`", "did you mean `0.weight`?"),
    "no pattern": (two_layers, pruning("fc*"), "no weight is called `fc*`", "`sp.names(model, *inputs)` lists all"),
    "no weights": (nn.ReLU, pruning("*"), "no weight is called `*`", "the model has no weight"),
    "an intermediate": (two_layers, pruning("1"), "no weight is called `1`", "known: `0.bias`"),
    "blocks": (
        two_layers,
        pruning(sparsifier=sp.BlockMagnitude(0.5, (4, 4))),
        "the weight `0.weight`: `block:0.5:4x4`",
        "divides",
    ),
    "dimension": (two_layers, pruning("*", sp.NM(2, 4, dim=1)), "no dimension 1", "pattern that does not name `0.bias`"),
    "layout": (
        two_layers,
        pruning(out_format=sp.BCSR((4, 4))),
        "`0.weight` cannot be stored as `bcsr:4x4`",
        "choose another layout",
    ),
    "first entry": (two_layers, pruning(sparsifier=sp.KeepAll(), out_format=row_twice()), "as `nm:1:4`", "choose another layout"),
    "between": (two_layers, pruning(sparsifier=sp.KeepAll(), tmp_format=row_twice()), "as `nm:1:4`", "choose another layout"),
    "not a matrix": (convolution, pruning(out_format=sp.CSR), "it has 4 dimensions", "choose another layout"),
    "integers": (lambda: with_weight(torch.ones(4, 6).int()), pruning(), "`2.weight` has integers", "real numbers"),
    "bytes": (lambda: with_weight(torch.ones(4, 6).char()), pruning(), "`2.weight` has integers", "real numbers"),
    "truth values": (lambda: with_weight(torch.ones(4, 6) > 0), pruning(), "`2.weight` has integers", "real numbers"),
    "complex": (lambda: with_weight(torch.ones(4, 6) * 1j), pruning(), "`2.weight` has complex numbers", "real numbers"),
    "floats of 8 bits": (
        lambda: with_weight(torch.ones(4, 6).to(torch.float8_e5m2)),
        pruning(),
        "has floats of 8 bits",
        "narrow",
    ),
    "meta": (lambda: two_layers().to("meta"), pruning(), "`0.weight` has no numbers yet", "load the weights first"),
    "lazy": (lambda: nn.Sequential(nn.LazyLinear(3)), pruning(), "`0.weight` has no numbers yet", "run the model once"),
    "inference": (made_in_inference_mode, pruning(), "`0.weight` cannot be changed", "outside of `torch.inference_mode`"),
    "packed": (
        lambda: sp.pack(two_layers(), {"2.weight": (sp.CSR(), torch.ones(4, 6) > 0)}),
        pruning("2.weight"),
        "`2.weight` is packed already",
        "pack it then",
    ),
}


@pytest.mark.parametrize(("make", "builder", "message", "hint"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_a_weight_that_does_not_fit_is_named_and_the_model_stays(make, builder, message, hint):
    model = make()
    before = snapshot(model) if "packed" not in message else None
    with pytest.raises(SparsityError) as error:
        builder.sparsify_model_inplace(model)
    assert message in error.value.message and hint in error.value.hint
    if before is not None:
        require_unchanged(model, before)
    assert sp.sparsity_of(model) is None


def test_a_mask_that_does_not_fit_is_shown_by_its_first_coordinate():
    builder = pruning("2.weight", sp.KeepAll(), out_format=sp.NMLayout(2, 4))
    model = two_layers()
    with pytest.raises(
        SparsityError, match=r"`2.weight` cannot be stored as `nm:2:4`: more than 2 entries are kept at coordinates \(0, 0\.\.3\)"
    ):
        builder.get_sparse_model(model)


def test_a_second_weight_that_does_not_fit_leaves_the_first_one():
    model, builder = two_layers(), pruning("0.weight")
    builder.set_interm("1", external_sparsifier=sp.Threshold(0.1))
    builder.set_weight("2.weight", sp.BlockMagnitude(0.5, (3, 3)))
    before = snapshot(model)
    with pytest.raises(SparsityError, match=r"`2\.weight`"):
        builder.sparsify_model_inplace(model)
    require_unchanged(model, before)


def test_two_models_of_one_builder_do_not_share_rules():
    builder = pruning()
    builder.set_interm("1", external_sparsifier=sp.Threshold(100.0))
    first, second = (builder.get_sparse_model(two_layers()) for _ in range(2))
    sp.clear(first)
    x = torch.randn(2, 4)
    assert torch.equal(second(x), second[2].bias.expand(2, 4)) and not torch.equal(first(x), second(x))


def test_a_sparse_model_trains_like_any_other():
    sparse, x = pruning().get_sparse_model(two_layers()), torch.randn(5, 4)
    loss = F.mse_loss(sparse(x), x)
    loss.backward()
    torch.optim.SGD(sparse.parameters(), 0.1).step()
    assert F.mse_loss(sparse(x), x) < loss


PROPOSED = {
    "magnitude:0.5": sp.Magnitude(0.5),
    "random:0.5": sp.RandomFraction(0.5),
    "threshold:0.1": sp.Threshold(0.1),
    "topk:2": sp.TopK(2),
    "nm:2:4": sp.NM(2, 4),
    "nm:1:3:dim=0": sp.NM(1, 3, dim=0),
    "nmg:1:2:1": sp.NMG(1, 2, 1),
    "block:0.5:2x2": sp.BlockMagnitude(0.5, (2, 2)),
    "filter:0.5": sp.Filter(0.5),
}


@pytest.mark.parametrize("text", PROPOSED)
def test_a_weight_without_a_format_is_stored_as_its_text_says(text):
    builder, model = pruning("0.weight", PROPOSED[text]), two_layers()
    assert builder.spec() == sp.parse_sparsify(f"0.weight={text}")
    assert sp.SparseSpec.from_yaml(builder.spec().to_yaml()) == builder.spec()
    weight = sp.pack(builder.get_sparse_model(model))[0].weight
    assert (
        type(weight.wrapped_tensor) is PROPOSED[text].layout.storage and type(weight.wrapped_tensor) is not sp.MaskedSparseTensor
    )


def test_a_weight_that_keeps_all_is_masked_and_a_format_that_is_given_counts():
    builder = sp.SparsityBuilder()
    builder.set_weight("0.weight")
    builder.set_weight("2.weight", sp.NM(2, 4), out_format=sp.Masked)
    assert [entry.layout for _, entry in builder.spec().weights] == [sp.Masked(), sp.Masked()]


def test_a_weight_that_the_proposed_layout_does_not_fit_is_named():
    with pytest.raises(SparsityError, match=r"`0.weight` cannot be stored as `csr`: it has 4 dimensions") as error:
        pruning("0.weight", sp.Filter(0.5)).get_sparse_model(nn.Sequential(nn.Conv2d(2, 4, 3)))
    assert "`coo` and `masked` hold any mask" in error.value.hint
