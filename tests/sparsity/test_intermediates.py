"""Rules of what a model computes: forward, backward, compiled, exported, nested, and after failures."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import _get_current_function_mode_stack
from torch.utils.checkpoint import checkpoint

import fuseflow.sparsity as sp
from fuseflow.errors import SparsityError
from fuseflow.frontend import import_model


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.fc1, self.act, self.fc2 = nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4)
        self.fails: type[BaseException] | None = None

    def forward(self, x):
        hidden = self.act(self.fc1(x))
        if self.fails is not None:
            raise self.fails
        return torch.relu(torch.relu(self.fc2(hidden)) - 0.05)


X = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
RULE = sp.Threshold(0.2)


def builder(name, rule=RULE, **grad):
    made = sp.SparsityBuilder()
    made.set_interm(name, inline_sparsifier=rule)
    if grad:
        made.set_interm_grad(name, **grad)
    return made


def ruled(name, rule=RULE, model=None, **grad):
    return builder(name, rule, **grad).get_sparse_model(model or Layer())


def kept(x, least=0.2):
    return x * (x.abs() >= least)


@pytest.fixture(autouse=True)
def no_mode_stays_behind():
    yield
    assert not _get_current_function_mode_stack()


EXPECTED = {
    "fc1": lambda m: m.fc2(torch.relu(kept(m.fc1(X)))).relu() - 0.05,
    "fc1.linear": lambda m: m.fc2(torch.relu(kept(m.fc1(X)))).relu() - 0.05,
    "act": lambda m: m.fc2(kept(torch.relu(m.fc1(X)))).relu() - 0.05,
    "act.relu": lambda m: m.fc2(kept(torch.relu(m.fc1(X)))).relu() - 0.05,
    "relu": lambda m: kept(m.fc2(torch.relu(m.fc1(X))).relu()) - 0.05,
    "sub": lambda m: kept(m.fc2(torch.relu(m.fc1(X))).relu() - 0.05),
    "relu_2": lambda m: kept((m.fc2(torch.relu(m.fc1(X))).relu() - 0.05).relu()),
    "fc*": lambda m: kept(m.fc2(torch.relu(kept(m.fc1(X))))).relu() - 0.05,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_rule_changes_the_tensor_of_its_name_and_no_other(name):
    if name == "fc*":  # whose modules and functions are the same tensors
        made = builder("fc1")
        made.set_interm("fc2", inline_sparsifier=RULE)
        sparse = made.get_sparse_model(Layer())
    else:
        sparse = ruled(name)
    torch.testing.assert_close(sparse(X), EXPECTED[name](Layer()).relu())
    assert not torch.equal(sparse(X), Layer()(X))


def test_a_relu_in_a_sequential_is_named_by_its_place():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Tanh())
    torch.testing.assert_close(ruled("1", model=model)(X), kept(model[:2](X)).tanh())


def test_of_two_patterns_the_last_one_counts():
    made = builder("*", sp.Threshold(100.0))
    made.set_interm("act", inline_sparsifier=RULE)
    made.set_interm("[!a]*")
    made.set_interm("act.relu")
    torch.testing.assert_close(made.get_sparse_model(Layer())(X), EXPECTED["act"](Layer()).relu())


def test_inline_and_external_rules_are_applied_in_turn():
    made = sp.SparsityBuilder()
    made.set_interm("fc1", inline_sparsifier=RULE, external_sparsifier=sp.TopK(2, dim=1))
    above = kept(Layer().fc1(X))
    expected = above * sp.TopK(2, dim=1).select(above)
    torch.testing.assert_close(made.get_sparse_model(Layer()).fc1(X), expected)


def test_a_single_number_and_an_empty_batch_can_be_sparse():
    class Loss(nn.Module):
        def forward(self, x):
            return x.sum() * 2

    assert ruled("sum", sp.Threshold(100.0), Loss())(X).item() == 0
    assert ruled("act")(X[:0]).shape == (0, 4)


def test_the_same_rules_hold_in_every_run():
    sparse = ruled("relu_2")
    assert all(torch.equal(sparse(X), EXPECTED["relu_2"](Layer())) for _ in range(3))


def test_a_part_of_a_model_has_its_rules_when_it_runs_alone():
    made, model = builder("0.0.linear"), nn.Sequential(nn.Sequential(nn.Linear(4, 4)), nn.ReLU())
    sparse = made.get_sparse_model(model)
    for _ in range(2):
        assert torch.equal(sparse[0](X), kept(model[0](X))) and torch.equal(sparse[0][0](X), kept(model[0](X)))
    assert torch.equal(sparse(X), kept(model[0](X)).relu())


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_a_transformer_takes_its_rules_in_training_and_inference(training, grad):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True)
    encoder, x = nn.TransformerEncoder(layer, 1).train(training), torch.randn(2, 3, 8)
    cut = copy.deepcopy(encoder)
    cut.layers[0].activation = lambda hidden: kept(hidden.relu())
    with torch.set_grad_enabled(grad):
        result = ruled("layers.0.relu", model=encoder)(x)
        for part in (encoder, cut):
            part.train()  # The fast path of inference calls no activation.
        torch.testing.assert_close(result, cut(x))
        assert not torch.allclose(result, encoder(x))


def test_a_gradient_has_the_pattern_of_its_tensor():
    sparse, model, x, y = ruled("fc1"), Layer(), X.clone().requires_grad_(), X.clone().requires_grad_()
    sparse.fc1(x).sum().backward()
    hidden = model.fc1(y)
    hidden.backward((hidden.abs() >= 0.2).float())
    assert torch.equal(x.grad, y.grad) and not bool((hidden.abs() >= 0.2).all())
    torch.testing.assert_close(sparse.fc1.weight.grad, model.fc1.weight.grad)


def test_a_rule_for_the_gradient_selects_of_the_gradient():
    sparse = ruled("0", sp.Threshold(0.5), nn.Sequential(nn.Identity()), inline_sparsifier=sp.Threshold(3.0))
    x = torch.tensor([0.1, 1.0, 0.2, 2.0], requires_grad=True)
    result = sparse(x)
    result.backward(torch.tensor([4.0, 1.0, 2.0, -3.0]))
    assert result.tolist() == [0, 1, 0, 2] and x.grad.tolist() == [4, 0, 0, -3]


def test_a_rule_for_the_gradient_alone_leaves_the_tensor():
    made = sp.SparsityBuilder()
    made.set_interm_grad("act", inline_sparsifier=sp.Magnitude(1.0))
    sparse = made.get_sparse_model(Layer())
    result = sparse(X)
    result.sum().backward()
    assert torch.equal(result, Layer()(X)) and not sparse.fc1.weight.grad.any() and sparse.fc2.weight.grad.any()


def test_gradients_agree_with_differences():
    sparse = ruled("fc1", sp.TopK(3, dim=1)).double()
    assert torch.autograd.gradcheck(sparse, X.double().add(0.03).requires_grad_())


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("name", ["block.1", "block.1.relu"])
def test_checkpoints_compute_again_what_the_run_computed(reentrant, name):
    class Checkpointed(nn.Module):
        def __init__(self, saves):
            super().__init__()
            torch.manual_seed(0)
            self.block, self.saves = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)), saves

        def forward(self, x):
            return checkpoint(self.block, x, use_reentrant=reentrant) if self.saves else self.block(x)

    gradients = []
    for saves in (False, True):
        sparse = ruled(name, model=Checkpointed(saves))
        for _ in range(2):
            sparse(X.clone().requires_grad_()).sum().backward()
        gradients.append(sparse.block[0].weight.grad)
    assert torch.equal(*gradients)


@pytest.mark.parametrize("seeded", [False, True])
def test_a_random_rule_draws_in_every_run_and_follows_the_seed(seeded):
    sparse = ruled("act", sp.RandomFraction(0.5, seed=3 if seeded else None))
    torch.manual_seed(1)
    first, second = sparse(X), sparse(X)
    torch.manual_seed(1)
    assert torch.equal(sparse(X), first) and torch.equal(first, second) == seeded


def test_the_gradient_of_a_random_rule_has_the_mask_that_was_drawn():
    sparse, x = ruled("0", sp.RandomFraction(0.5), nn.Sequential(nn.Identity())), torch.ones(64, requires_grad=True)
    result = sparse(x)
    result.sum().backward()
    assert torch.equal(x.grad, result) and 0 < int(result.sum()) < 64


def test_a_random_rule_can_have_another_one_for_its_gradient():
    model, grad = nn.Sequential(nn.Identity()), {"inline_sparsifier": sp.Threshold(4.0)}
    sparse, x = ruled("0", sp.RandomFraction(0.5, seed=1), model, **grad), torch.ones(8, requires_grad=True)
    result = sparse(x)
    result.backward(torch.arange(8.0))
    drawn = sp.RandomFraction(0.5, seed=1).select(x)
    assert torch.equal(result, drawn.float()) and not x.grad[:4].any()
    assert torch.equal(x.grad[drawn], torch.tensor([0.0] * 4 + [4, 5, 6, 7])[drawn])
    assert 0 < int(drawn[4:].sum()) < 4


def test_a_random_rule_and_another_one_are_applied_in_turn():
    made, x = sp.SparsityBuilder(), torch.arange(64.0)
    made.set_interm("0", inline_sparsifier=sp.RandomFraction(0.5, seed=1), external_sparsifier=sp.Magnitude(0.75))
    drawn = x * sp.RandomFraction(0.5, seed=1).select(x)
    result = made.get_sparse_model(nn.Sequential(nn.Identity()))(x)
    assert torch.equal(result, drawn * sp.Magnitude(0.75).select(drawn))


@pytest.mark.parametrize(("name", "rule"), [("relu", RULE), ("act", RULE), ("fc1", sp.Magnitude(0.5))])
def test_an_exported_graph_has_one_node_for_a_rule(name, rule):
    sparse = ruled(name, rule)
    exported = torch.export.export(sparse, (X,))
    nodes = [node for node in exported.graph.nodes if node.op == "call_function" and "fuseflow" in str(node.target)]
    assert [str(node.target) for node in nodes] == ["fuseflow.keep.default"]
    assert nodes[0].args[1] == (f"{rule}|dense|keepall|dense")
    assert [*exported.state_dict] == [*Layer().state_dict()]
    torch.testing.assert_close(exported.module()(X), sparse(X))


@pytest.mark.parametrize(
    ("rule", "made"), [(RULE, "layers.0.keep"), (sp.RandomFraction(0.5, seed=1), "layers.0.masked")], ids=str
)
def test_an_imported_transformer_has_the_rule_behind_its_tensor(rule, made):
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), 1).eval()
    program = import_model(ruled("layers.0.relu", rule, encoder), (torch.ones(1, 3, 8),)).program
    names = [einsum.name for einsum in program.einsums]
    place = names.index("layers.0.relu")
    assert names[place + 1 : place + 3] == [made, "layers.0.linear2.matmul"]
    assert not [name for name in names if "keep" in name or "masked" in name][1:]


def test_an_exported_random_rule_is_the_mask_that_was_drawn():
    sparse = ruled("act", sp.RandomFraction(0.5, seed=1))
    exported = torch.export.export(sparse, (X,))
    targets = [str(node.target) for node in exported.graph.nodes if node.op == "call_function"]
    assert targets.count("fuseflow.masked.default") == 1 and not any("grad_enabled" in target for target in targets)
    torch.testing.assert_close(exported.module()(X), sparse(X))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("rule", [RULE, sp.RandomFraction(0.5)], ids=str)
@pytest.mark.parametrize("grad", [{}, {"inline_sparsifier": sp.Magnitude(0.5)}], ids=["", "grad"])
def test_a_compiled_model_agrees(rule, grad, backend):
    sparse = ruled("relu", rule, **grad)
    compiled, results = torch.compile(sparse, backend=backend), []
    for model in (sparse, compiled, compiled):
        torch.manual_seed(2)
        sparse.zero_grad()
        result = model(X)
        result.square().sum().backward()
        results.append((result, sparse.fc1.weight.grad))
    for result in results[1:]:
        torch.testing.assert_close(result, results[0])


def test_a_model_that_fails_runs_again(recwarn):
    sparse = ruled("relu_2")
    for fails in (ValueError, KeyError):
        sparse.fails = fails
        with pytest.raises(fails):
            sparse(X)
        assert not _get_current_function_mode_stack() and not recwarn
    x = torch.relu(X)  # A function that no model calls.
    assert torch.equal(x, X.clamp(min=0))
    sparse.fails = None
    torch.testing.assert_close(sparse(X), EXPECTED["relu_2"](Layer()))


def test_a_failure_that_the_model_itself_catches_does_no_harm():
    class Catching(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = Layer()

        def forward(self, x):
            try:
                x = self.layer(x)
            except ValueError:
                x = torch.tanh(x)
            return torch.relu(x)

    sparse = ruled("relu", model=Catching())
    sparse.layer.fails = ValueError
    torch.testing.assert_close(sparse(X), kept(torch.relu(torch.tanh(X))))


def test_a_run_that_was_interrupted_leaves_the_next_one_right():
    sparse = ruled("relu_2")
    sparse.fails = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        sparse(X)
    sparse.fails = None
    torch.testing.assert_close(sparse(X), EXPECTED["relu_2"](Layer()))
    while _get_current_function_mode_stack():  # PyTorch calls no hooks after an interrupt, so that the mode stays.
        _get_current_function_mode_stack()[-1].__exit__(None, None, None)


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("atc", "the model makes no intermediate called `atc`", "did you mean `act`? (`sp.names(model, *inputs)` lists all)"),
        ("fc1.weight", "no intermediate called `fc1.weight`", "lists all"),
        ("relu_3", "no intermediate called `relu_3`", "did you mean `relu_2`?"),
    ],
)
def test_a_tensor_that_is_never_made_is_named_after_the_run(name, message, hint):
    sparse = ruled(name)
    for _ in range(2):
        with pytest.raises(SparsityError) as error:
            sparse(X)
        assert message in error.value.message and hint in error.value.hint
    sp.clear(sparse)
    assert torch.equal(sparse(X), Layer()(X))


def test_one_of_two_rules_without_a_tensor_is_named():
    made = builder("act")
    made.set_interm("gelu*", inline_sparsifier=RULE)
    with pytest.raises(SparsityError, match=r"no intermediate called `gelu\*`"):
        made.get_sparse_model(Layer())(X)


def test_a_tensor_that_is_made_twice_is_refused_and_other_rules_hold():
    shared = nn.Linear(4, 4)
    model = nn.Sequential(shared, nn.ReLU(), nn.Sequential(shared), nn.Tanh())
    twice = ruled("0", model=model)
    for _ in range(2):
        with pytest.raises(SparsityError, match="the intermediate `0` is made twice in one run") as error:
            twice(X)
        assert "made once" in error.value.hint
    torch.testing.assert_close(ruled("3", model=model)(X), kept(model(X)))


def test_a_module_and_a_function_of_one_name_are_two_tensors():
    class Twins(nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()

        def forward(self, x):
            return F.relu(self.relu(x))

    with pytest.raises(SparsityError, match="the intermediate `relu` is made twice"):
        ruled("relu", model=Twins())(X)
    assert torch.equal(ruled("relu.relu", model=Twins())(X), kept(X.relu()))


@pytest.mark.parametrize(
    ("rule", "layout", "message"),
    [
        (sp.NM(2, 4, dim=3), sp.Dense, "the intermediate `act`: `nm:2:4:dim=3`: a tensor of shape [8, 6] has no dimension 3"),
        (sp.BlockMagnitude(0.5, (4, 4)), sp.Dense, "the intermediate `act`: `block:0.5:4x4`: a tensor of 8 x 6 does not divide"),
        (None, sp.NMLayout(1, 3), "the intermediate `act`: `the tensor` cannot be stored as `nm:1:3`: more than 1 entries"),
    ],
)
def test_a_tensor_that_does_not_fit_its_rule_is_named(rule, layout, message):
    made = sp.SparsityBuilder()
    made.set_interm("act", inline_sparsifier=rule, out_format=layout)
    sparse = made.get_sparse_model(Layer())
    with pytest.raises(SparsityError) as error:
        sparse(X)
    assert message in error.value.message and error.value.hint


def test_a_copy_of_a_model_with_rules_has_its_own():
    sparse = ruled("act")
    twin = copy.deepcopy(sparse)
    sp.clear(sparse)
    assert torch.equal(sparse(X), Layer()(X)) and torch.equal(twin(X), ruled("act")(X))
    again = copy.deepcopy(twin)
    again.fails = ValueError
    with pytest.raises(ValueError):  # noqa: PT011
        again(X)
    assert torch.equal(twin(X), ruled("act")(X))


def test_models_with_rules_stand_in_models_with_rules():
    inner = ruled("relu")
    outer = nn.Sequential(inner, nn.Tanh())
    alone = outer(X)
    made = builder("1.tanh", sp.Threshold(0.5))
    made.set_interm("0.relu_2", inline_sparsifier=sp.Threshold(0.6))
    both = made.get_sparse_model(outer)
    expected = kept(EXPECTED["relu"](Layer()).relu(), 0.6)
    torch.testing.assert_close(both(X), kept(expected.tanh(), 0.5))
    assert torch.equal(outer(X), alone) and torch.equal(both[0](X), expected)
    both[0].fails = ValueError
    with pytest.raises(ValueError):  # noqa: PT011
        both(X)


def test_two_models_run_one_after_the_other_inside_of_a_third():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = ruled("act"), ruled("relu")

        def forward(self, x):
            return self.left(x) + self.right(x)

    torch.testing.assert_close(Pair()(X), ruled("act")(X) + ruled("relu")(X))


def test_the_type_of_the_numbers_stays():
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        assert ruled("act").to(dtype)(X.to(dtype)).dtype == dtype
    with torch.autocast("cpu", torch.bfloat16), torch.inference_mode():
        assert ruled("fc1")(X).dtype == torch.bfloat16
