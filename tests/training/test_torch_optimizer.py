"""Optimizers of PyTorch are read with their groups, states and steps, and those that do more than a formula are refused."""

from __future__ import annotations

import copy
import types

import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

import fuseflow.sparsity as sp
from fuseflow.errors import TrainingError
from fuseflow.run.training.training_run import load_state
from fuseflow.tensors import Format, pack
from fuseflow.training.optimizers.formulas import SGD, Adam, AdamW
from fuseflow.training.spec import Group, TrainingSpec
from fuseflow.training.torch_optimizer import read_optimizer, require_no_gradient_hooks

NAMES = {"0.weight", "0.bias", "2.weight", "2.bias"}


def network() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))


def take_steps(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    generator = torch.Generator().manual_seed(2)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(3, 4, generator=generator)).square().sum().backward()
        optimizer.step()


MAKERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, dampening=0.2),
    "adam": lambda p: torch.optim.Adam(p, amsgrad=True, fused=True),
    "adamw": lambda p: torch.optim.AdamW(p, foreach=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, momentum=0.5, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr_decay=0.1, initial_accumulator_value=0.1),
}


def test_constants_are_those_of_groups():
    model = network()
    groups = [{"params": model[0].parameters(), "lr": 0.3}, {"params": [model[2].weight], "betas": (0.5, 0.6)}]
    state = read_optimizer(torch.optim.Adam(groups, lr=torch.tensor(0.25), maximize=True), model)
    assert state.groups == (
        Group(Adam(0.3, maximize=True), frozenset({"0.weight", "0.bias"})),
        Group(Adam(0.25, 0.5, 0.6, maximize=True), frozenset({"2.weight"})),
    )
    assert not state.states and set(state.steps.values()) == {0} and state.steps_before(NAMES) == 0
    spec = TrainingSpec.of("mse", state.groups)
    assert spec.trained(dict(model.named_parameters())) == ("0.weight", "0.bias", "2.weight")


def test_adam_with_decoupled_decay_is_adamw():
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1, decoupled_weight_decay=True)
    assert read_optimizer(optimizer, model).groups == (Group(AdamW(weight_decay=0.1), frozenset(NAMES)),)


def test_parameters_that_need_no_gradient_are_left_out():
    model = network()
    model[0].requires_grad_(False)
    assert read_optimizer(torch.optim.SGD(model.parameters()), model).groups == (Group(SGD(), frozenset({"2.weight", "2.bias"})),)


def test_a_schedule_of_learning_rates_is_fine():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    torch.optim.lr_scheduler.StepLR(optimizer, 1)
    assert read_optimizer(optimizer, model).groups == (Group(SGD(0.5), frozenset(NAMES)),)


@pytest.mark.parametrize("kind", MAKERS)
def test_the_next_step_begins_where_pytorch_stopped(kind):
    model = network()
    optimizer = MAKERS[kind](model.parameters())
    take_steps(model, optimizer, 3)
    state = read_optimizer(optimizer, model)
    step = state.steps_before(NAMES) + 1
    assert step == (2 if kind == "sgd" else 4)
    spec = TrainingSpec.of("mse", state.groups)
    scalars = {key: torch.tensor(value) for key, value in spec.scalars(step).items()}
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    take_steps(model, optimizer, 1)
    after = read_optimizer(optimizer, model)
    for name, parameter in model.named_parameters():
        keys = spec.optimizer_of(name).state_names
        states = {key: state.states[f"{name}.{key}"] for key in keys}
        new, new_states = spec.update(name, before[name], parameter.grad, states, scalars)
        torch.testing.assert_close(new, parameter.detach())
        torch.testing.assert_close(new_states, {key: after.states[f"{name}.{key}"] for key in keys})


@pytest.mark.parametrize("kind", MAKERS)
def test_states_go_back_to_pytorch(kind):
    one, two = network(), network()
    first, second = MAKERS[kind](one.parameters()), MAKERS[kind](two.parameters())
    take_steps(one, first, 3)
    carried = {**one.state_dict(), **read_optimizer(first, one).states}
    load_state({name: pack(value.numpy(), Format.dense(value.dim())) for name, value in carried.items()}, 3, two, second)
    take_steps(one, first, 2)
    take_steps(two, second, 2)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_what_was_read_does_not_change_with_the_optimizer():
    model = network()
    optimizer = MAKERS["adam"](model.parameters())
    take_steps(model, optimizer, 1)
    state = read_optimizer(optimizer, model)
    kept = copy.deepcopy(state.states)
    take_steps(model, optimizer, 1)
    torch.testing.assert_close(state.states, kept, rtol=0, atol=0)


def test_parameters_with_other_numbers_of_steps_are_refused_where_these_count():
    model = network()
    model[0].requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters())
    take_steps(model, optimizer, 2)
    model[0].requires_grad_(True)
    state = read_optimizer(optimizer, model)
    assert state.steps_before(["2.weight", "2.bias"]) == 2 and state.steps_before(["0.weight"]) == 0
    with pytest.raises(TrainingError, match=r"has taken 2 steps of `2.weight` and 0 steps of `0.weight`"):
        state.steps_before(["0.weight", "2.weight"])


class Own(torch.optim.SGD):
    """An optimizer of a user."""


def refused(optimizer, model=None) -> TrainingError:
    with pytest.raises(TrainingError) as error:
        read_optimizer(optimizer, network() if model is None else model)
    assert error.value.hint
    return error.value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (torch.optim.LBFGS, "the optimizer `LBFGS` has no formula"),
        (torch.optim.NAdam, "the optimizer `NAdam` has no formula"),
        (torch.optim.Adadelta, "the optimizer `Adadelta` has no formula"),
        (Own, "the optimizer `Own` is a subclass of `SGD`, whose steps may be others"),
        (lambda p: torch.optim.lr_scheduler.StepLR(torch.optim.SGD(p), 1), "`StepLR` is a schedule of learning rates"),
        (lambda p: [torch.optim.SGD(p), torch.optim.SGD(p)], "there are 2 optimizers"),
        (lambda p: torch.amp.GradScaler("cpu"), "a `GradScaler` scales the loss"),
        (lambda p: torch.optim.SGD, "`type` is no optimizer of PyTorch"),
    ],
)
def test_an_optimizer_without_a_formula_is_refused(make, message):
    model = network()
    assert message in refused(make(list(model.parameters())), model).message


def test_an_optimizer_that_has_a_formula_is_named():
    known = "`torch.optim.SGD`, `torch.optim.Adam`, `torch.optim.AdamW`, `torch.optim.RMSprop`, `torch.optim.Adagrad`"
    assert known in refused(torch.optim.LBFGS(network().parameters())).hint


def test_parameters_of_another_model_are_refused():
    assert (
        "a parameter of shape [8, 4] in group 0 that is not of the model"
        in refused(torch.optim.SGD(network().parameters())).message
    )


def test_a_parameter_in_two_groups_is_refused():
    model = network()
    optimizer = torch.optim.SGD(model.parameters())
    optimizer.param_groups.append({**optimizer.param_groups[0], "params": [model[0].bias]})
    assert "`0.bias` is in two groups" in refused(optimizer, model).message


def test_a_schedule_that_changes_momentum_is_refused():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=9)
    assert "changes its momentum" in refused(optimizer, model).message


def test_a_step_of_the_user_is_refused():
    model = network()
    optimizer = torch.optim.SGD(model.parameters())
    optimizer.step = types.MethodType(lambda self: None, optimizer)
    assert "the `step` of this `SGD` was replaced" in refused(optimizer, model).message


def clip(*_args: object) -> None:
    """A hook of a user."""


@pytest.mark.parametrize("register", ["register_step_pre_hook", "register_step_post_hook"])
def test_hooks_on_steps_are_refused(register):
    model = network()
    optimizer = torch.optim.SGD(model.parameters())
    getattr(optimizer, register)(clip)
    assert "the hook `clip` runs with each step" in refused(optimizer, model).message


def test_hooks_on_the_steps_of_all_optimizers_are_refused():
    model = network()
    hook = register_optimizer_step_post_hook(clip)
    try:
        assert "the hook `clip` runs with each step" in refused(torch.optim.SGD(model.parameters()), model).message
    finally:
        hook.remove()


def spec_of(text: str) -> sp.SparseSpec:
    return sp.SparseSpec.from_yaml(f"weights:\n  '*.weight': {text}")


def test_a_handle_that_holds_fixed_masks_is_taken_over():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    handle = sp.attach(model, spec_of("{sparsifier: magnitude:0.5}"), optimizer)
    assert handle.is_fixed and read_optimizer(optimizer, model).groups[0].parameters == NAMES


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("{sparsifier: magnitude:0.5}", {"when": "new"}),
        ("{sparsifier: magnitude:0.5}", {"schedule": sp.Cubic(0.0, 0.5, 10)}),
        ("{sparsifier: movement:0.5}", {}),
        ("{sparsifier: magnitude:0.5, grad: {external: threshold:0.1}}", {}),
        ("{sparsifier: magnitude:0.5, external: magnitude:0.6}", {}),
    ],
)
def test_a_handle_that_changes_masks_or_gradients_is_refused(text, options):
    model = network()
    optimizer = torch.optim.SGD(model.parameters())
    handle = sp.attach(model, spec_of(text), optimizer, **options)
    assert not handle.is_fixed and "the handle on the optimizer changes" in refused(optimizer, model).message


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (lambda model: model[0].weight.register_hook(clip), "the parameter `0.weight` has the hook `clip`"),
        (lambda model: model[2].bias.register_post_accumulate_grad_hook(clip), "the parameter `2.bias` has the hook `clip`"),
        (lambda model: model[1].register_full_backward_hook(clip), "the module `1` has the hook `clip`"),
        (lambda model: model.register_full_backward_pre_hook(clip), "the model has the hook `clip`"),
    ],
)
def test_hooks_on_gradients_are_refused_until_they_are_removed(register, message):
    model = network()
    hook = register(model)
    with pytest.raises(TrainingError, match=message):
        require_no_gradient_hooks(model)
    hook.remove()
    require_no_gradient_hooks(model)
