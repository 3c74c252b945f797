"""Training with masks that hold: every layout with two optimizers, fixed and new masks, gradients, schedules, failures."""

import copy
import itertools
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import fuseflow as ff
import fuseflow.sparsity as sp
from fuseflow.errors import SparsityError

RULES = {
    "dense": "magnitude:0.5:dense",
    "masked": "magnitude:0.5:masked",
    "coo": "magnitude:0.5:coo",
    "csr": "magnitude:0.5:csr",
    "csc": "magnitude:0.5:csc",
    "bcsr": "block:0.5:2x2",
    "ell": "magnitude:0.5:ell",
    "nm": "nm:2:4",
    "nmg": "nmg:2:4:2",
}
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.2, weight_decay=0.1),
}
FIRST, SECOND = "0.weight", "2.weight"


def network() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 12))


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    generator = torch.Generator().manual_seed(2)
    for _ in range(steps):
        x, y = torch.randn(8, 16, generator=generator), 10 * torch.randn(8, 12, generator=generator)
        optimizer.zero_grad()
        functional.mse_loss(model(x), y).backward()
        optimizer.step()


def spec_of(rule: str, pattern: str = "*.weight") -> sp.SparseSpec:
    return sp.parse_sparsify(f"{pattern}={rule}")


def test_the_rules_cover_every_layout() -> None:
    assert {str(spec_of(rule).weights[0][1].layout).split(":")[0] for rule in RULES.values()} == set(RULES)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("layout", RULES)
def test_fixed_masks_hold_and_values_move(layout: str, optimizer: str) -> None:
    model = network()
    steps = OPTIMIZERS[optimizer](model.parameters())
    handle = sp.attach(model, spec_of(RULES[layout]), steps)
    masks = {name: mask.clone() for name, mask in handle.masks.items()}
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    train(model, steps, 10)
    for name, mask in masks.items():
        weight = model.get_parameter(name).detach()
        assert torch.equal(handle.masks[name], mask)
        assert (weight[~mask] == 0).all()
        assert int((weight != 0).sum()) == int(mask.sum())
        assert (weight[mask] != before[name][mask]).all()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("layout", RULES)
def test_new_masks_hold_the_fraction_and_move(layout: str, optimizer: str) -> None:
    model = network()
    steps = OPTIMIZERS[optimizer](model.parameters())
    handle = sp.attach(model, spec_of(RULES[layout]), steps, when="new")
    masks = {name: mask.clone() for name, mask in handle.masks.items()}
    train(model, steps, 10)
    for name, mask in handle.masks.items():
        weight = model.get_parameter(name).detach()
        assert torch.equal(weight != 0, mask)
        assert int(mask.sum()) == int(masks[name].sum()) == mask.numel() // 2
    assert any(not torch.equal(mask, masks[name]) for name, mask in handle.masks.items())


def test_a_masked_model_trains_as_one_whose_gradients_are_masked() -> None:
    """The oracle is plain PyTorch: without momentum of pruned entries, masking the gradient is the same as projecting the weight."""
    model, other = network(), network()
    steps, plain = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, other))
    mask = sp.attach(model, spec_of("nm:2:4", FIRST), steps).masks[FIRST]
    other[0].weight.register_hook(lambda gradient: gradient * mask)
    with torch.no_grad():
        other[0].weight.mul_(mask)
    train(model, steps, 10)
    train(other, plain, 10)
    assert torch.equal(model[0].weight, other[0].weight)
    assert torch.equal(model[2].weight, other[2].weight)


def test_masks_are_selected_every_few_steps() -> None:
    model = network()
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    handle = sp.attach(model, spec_of("magnitude:0.7", SECOND), optimizer, when="new", every=3)
    seen = [handle.masks[SECOND]]
    for _ in range(6):
        train(model, optimizer, 1)
        seen.append(handle.masks[SECOND])
    changes = [not torch.equal(a, b) for a, b in itertools.pairwise(seen)]
    assert changes[0] is changes[1] is changes[3] is changes[4] is False
    assert changes[2]
    assert handle.steps == 6


def test_a_fraction_rises_as_zhu_and_gupta_say() -> None:
    model = network()
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    handle = sp.attach(model, spec_of("magnitude:0.1"), optimizer, schedule=sp.Cubic(0.0, 0.8, steps=4))
    kept = [int(handle.masks[FIRST].sum())]
    for _ in range(6):
        train(model, optimizer, 1)
        kept.append(int(handle.masks[FIRST].sum()))
    size = 16 * 24
    fractions = [0.8 - 0.8 * (1 - k / 4) ** 3 for k in (0, 1, 2, 3, 4)]
    assert kept == [*(size - int(f * size + 1e-9) for f in fractions), kept[4], kept[4]]
    assert str(handle.report()[0].rule) == "magnitude:0.8"


def test_the_last_step_of_a_schedule_counts_where_it_is_between_selections() -> None:
    model = network()
    optimizer = OPTIMIZERS["sgd"](model.parameters())
    handle = sp.attach(model, spec_of("magnitude:0.1"), optimizer, every=3, schedule=sp.Cubic(0.0, 0.5, steps=4))
    train(model, optimizer, 4)
    assert int(handle.masks[FIRST].sum()) == 16 * 24 // 2


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_what_falls_out_leaves_no_momentum(optimizer: str) -> None:
    model = network()
    steps = OPTIMIZERS[optimizer](model.parameters())
    train(model, steps, 3)
    handle = sp.attach(model, spec_of("magnitude:0.5"), steps)
    train(model, steps, 1)
    before = handle.masks[FIRST].clone()
    handle.select(0.9)
    left = before & ~handle.masks[FIRST]
    stored = [value for value in steps.state[model[0].weight].values() if value.shape == left.shape]
    assert left.any()
    assert stored
    assert all((value[left] == 0).all() and (value[handle.masks[FIRST]] != 0).any() for value in stored)


def test_movement_keeps_what_training_moves_away_from_zero() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = sp.attach(model, spec_of("movement:0.5", FIRST), optimizer, when="new")
    assert handle.masks[FIRST].all()
    weight = model[0].weight.detach().clone()
    train(model, optimizer, 1)
    gradient = model[0].weight.grad
    scores = (-weight * gradient).reshape(-1)
    kept = torch.zeros(scores.numel(), dtype=torch.bool)
    kept[torch.argsort(scores, descending=True, stable=True)[: scores.numel() // 2]] = True
    assert torch.equal(handle.masks[FIRST].reshape(-1), kept)


def test_a_rule_for_updates_selects_after_each_step() -> None:
    builder = sp.SparsityBuilder()
    builder.set_weight(FIRST, sp.Magnitude(0.2), inline_sparsifier=sp.Magnitude(0.5), out_format=sp.CSR)
    model = network()
    optimizer = OPTIMIZERS["sgd"](model.parameters())
    builder.sparsify_model_and_optimizer_inplace(model, optimizer)
    train(model, optimizer, 3)
    assert int((model[0].weight != 0).sum()) == 16 * 24 // 2


def test_a_rule_for_gradients_acts_before_the_step() -> None:
    builder = sp.SparsityBuilder()
    builder.set_weight_grad(FIRST, inline_sparsifier=sp.NM(2, 4))
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model[0].weight.detach().clone()
    assert builder.sparsify_model_and_optimizer_inplace(model, optimizer) == (model, optimizer)
    train(model, optimizer, 1)
    dense = network()
    train(dense, torch.optim.SGD(dense.parameters(), lr=0.1), 1)
    kept = sp.NM(2, 4).select(dense[0].weight.grad)
    assert torch.equal(model[0].weight.grad, dense[0].weight.grad * kept)
    assert torch.equal(model[0].weight, torch.where(kept, dense[0].weight, before))


def test_a_closure_has_its_gradients_treated() -> None:
    builder = sp.SparsityBuilder()
    builder.set_weight_grad(FIRST, inline_sparsifier=sp.NM(2, 4))
    builder.set_weight(SECOND, sp.Magnitude(0.5))
    model = network()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)
    builder.sparsify_model_and_optimizer_inplace(model, optimizer)
    x, y = torch.randn(8, 16), torch.randn(8, 12)
    calls = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        calls.append(model[0].weight.grad)
        return loss

    for step in (lambda: optimizer.step(closure), lambda: optimizer.step(closure=closure)):
        step()
        assert int((calls[-1] != 0).sum()) <= 16 * 24 // 2
        assert int((model[2].weight != 0).sum()) == 24 * 12 // 2


def test_infinite_and_undefined_values_of_pruned_entries_become_zero() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    mask = sp.attach(model, spec_of("magnitude:0.5", FIRST), optimizer).masks[FIRST]
    model[0].weight.grad = torch.where(mask, 0.0, float("nan"))
    optimizer.step()
    assert (model[0].weight[~mask] == 0).all()


def test_tied_weights_stay_tied() -> None:
    model = network()
    model.append(nn.Linear(24, 12))
    model[3].weight = model[2].weight
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    handle = sp.attach(model, spec_of("magnitude:0.5", "3.weight"), optimizer)
    train(model[:3], optimizer, 10)
    assert model[3].weight is model[2].weight
    assert list(handle.masks) == [SECOND]
    assert int((model[3].weight != 0).sum()) == 24 * 12 // 2


def test_names_and_state_are_those_of_the_dense_model() -> None:
    model = network()
    keys = list(model.state_dict())
    sp.attach(model, spec_of("magnitude:0.5"), OPTIMIZERS["adamw"](model.parameters()))
    assert list(model.state_dict()) == keys
    assert [name for name, _ in model.named_parameters()] == keys


def test_a_weight_that_pytorch_stores_sparse_trains() -> None:
    """Its dense parameter takes its place in the optimizer, too."""
    model = network()
    pruned = model[0].weight.detach() * (torch.arange(16) % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch says that its CSR layout is new.
        model[0].weight = nn.Parameter(pruned.to_sparse_csr())
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    handle = sp.attach(model, spec_of("keepall:csr", FIRST), optimizer)
    train(model, optimizer, 10)
    assert torch.equal(model[0].weight != 0, pruned != 0)
    assert torch.equal(handle.masks[FIRST], pruned != 0)
    assert (model[0].weight[pruned != 0] != pruned[pruned != 0]).all()


def test_a_hold_ends() -> None:
    model = network()
    optimizer = OPTIMIZERS["sgd"](model.parameters())
    handle = sp.attach(model, spec_of("magnitude:0.5"), optimizer)
    handle.remove()
    handle.remove()
    train(model, optimizer, 1)
    assert (model[0].weight[~handle.masks[FIRST]] != 0).any()
    again = sp.attach(model, optimizer=optimizer)
    assert torch.equal(model[0].weight != 0, again.masks[FIRST])


def test_without_an_optimizer_one_projects_by_hand() -> None:
    model = network()
    handle = sp.attach(model, spec_of("magnitude:0.5"))
    with torch.no_grad():
        model[0].weight.add_(1)
    handle.project()
    assert (model[0].weight[~handle.masks[FIRST]] == 0).all()


def test_copies_train_on_their_own() -> None:
    model = network()
    optimizer = OPTIMIZERS["sgd"](model.parameters())
    handle = sp.attach(model, spec_of("magnitude:0.5"), optimizer, when="new")
    other = copy.deepcopy(model)
    train(model, optimizer, 3)
    mine = sp.attach(other, optimizer=OPTIMIZERS["sgd"](other.parameters()))
    assert not torch.equal(mine.masks[FIRST], handle.masks[FIRST])


def test_a_model_that_was_trained_without_its_masks_is_not_compiled_or_saved(tmp_path: Path) -> None:
    """It could only be compiled to something else than it computes."""
    builder = sp.SparsityBuilder()
    builder.set_weight("*.weight", sp.Magnitude(0.5), out_format=sp.CSR)
    model = builder.get_sparse_model(network())
    train(model, OPTIMIZERS["sgd"](model.parameters()), 1)
    for use in (lambda: ff.compile(model.eval(), (torch.randn(2, 16),)), lambda: sp.save_sparsity(model, tmp_path / "sparse")):
        with pytest.raises(SparsityError, match=r"`0.weight` is not 0 at \(\d+, \d+\), where it is pruned"):
            use()
    assert not list(tmp_path.iterdir())
    sp.attach(model).project()
    sp.save_sparsity(model, tmp_path / "sparse")


class TestRefusals:
    """What is refused leaves the model and the optimizer as they were."""

    def refuse(self, spec: sp.SparseSpec | None, message: str, **options: object) -> None:
        model = network()
        optimizer = options.pop("optimizer", None) or torch.optim.SGD(model.parameters(), lr=0.1)
        before = copy.deepcopy(model.state_dict())
        with pytest.raises(SparsityError, match=message) as refusal:
            sp.attach(model, spec, optimizer, **options)
        assert refusal.value.hint
        assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
        assert sp.sparsity_of(model) is None
        assert not optimizer._optimizer_step_pre_hooks
        assert not optimizer._optimizer_step_post_hooks

    def test_an_optimizer_that_does_not_hold_the_weight(self) -> None:
        other = torch.optim.SGD(network().parameters(), lr=0.1)
        self.refuse(spec_of("magnitude:0.5"), "does not hold the weight `0.weight`", optimizer=other)

    def test_a_dense_model_without_a_spec(self) -> None:
        self.refuse(None, "dense")

    def test_a_pattern_that_names_nothing(self) -> None:
        self.refuse(spec_of("magnitude:0.5", "0.wight"), "no weight is called `0.wight`")

    def test_a_mask_that_does_not_fit(self) -> None:
        self.refuse(spec_of("magnitude:0.5:nm:2:4"), "cannot be stored as `nm:2:4`")

    def test_a_schedule_without_a_fraction(self) -> None:
        self.refuse(spec_of("nm:2:4"), "no fraction", schedule=sp.Cubic(0, 0.5, 10))

    def test_a_schedule_beside_a_rule_for_updates(self) -> None:
        builder = sp.SparsityBuilder()
        builder.set_weight(FIRST, sp.Magnitude(0.2), inline_sparsifier=sp.Magnitude(0.5))
        self.refuse(builder.spec(), "rule for updates", schedule=sp.Cubic(0, 0.5, 10))

    def test_unknown_masks(self) -> None:
        self.refuse(spec_of("magnitude:0.5"), "`old`", when="old")

    def test_steps_below_one(self) -> None:
        self.refuse(spec_of("magnitude:0.5"), "every 0 steps", every=0)


@pytest.mark.parametrize("values", [(0.5, 0.2, 10), (-0.1, 0.2, 10), (0.0, 1.2, 10), (0.0, 0.5, 0)])
def test_a_schedule_that_cannot_be(values: tuple[float, float, int]) -> None:
    with pytest.raises(SparsityError) as refusal:
        sp.Cubic(*values)
    assert refusal.value.hint


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_a_step_that_fails_is_undone(optimizer: type[torch.optim.Optimizer]) -> None:
    """The largest half of the entries is two of every four at first. The step makes a third one of them larger."""
    model = network()
    with torch.no_grad():
        model[0].weight[:, 0::4], model[0].weight[:, 1::4] = 5, 6
    spec = sp.SparseSpec(((FIRST, sp.WeightEntry(update=sp.OutputFormat(sp.Magnitude(0.5), layout=sp.NMLayout(2, 4)))),))
    steps = optimizer(model.parameters(), lr=10.0)
    handle = sp.attach(model, spec, steps)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 1e-30)
    steps.step()
    before, state = copy.deepcopy(model.state_dict()), copy.deepcopy(steps.state_dict()["state"])
    model[0].weight.grad[:, 2] = -1.0
    with pytest.raises(SparsityError, match=r"cannot be stored as `nm:2:4`"):
        steps.step()
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert torch.equal(handle.masks[FIRST], before[FIRST] != 0)
    assert handle.steps == 1
    now = steps.state_dict()["state"]
    assert state.keys() == now.keys()
    assert all(
        torch.equal(torch.as_tensor(value), torch.as_tensor(now[k][n])) for k, s in state.items() for n, value in s.items()
    )


def test_a_rule_of_gradients_that_fails_changes_nothing() -> None:
    model = network()
    spec = sp.SparseSpec(((FIRST, sp.WeightEntry(grad=sp.OutputFormat(sp.Magnitude(0.5), layout=sp.NMLayout(2, 4)))),))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sp.attach(model, spec, optimizer)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(SparsityError, match="the gradient of"):
        train(model, optimizer, 1)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
