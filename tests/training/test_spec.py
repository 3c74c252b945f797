"""The spec of a training step: groups of parameters, numbers of a step by name, texts."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from training_cases import CASES, prepared, recorded

from fuseflow.errors import TrainingError
from fuseflow.training.optimizers.formulas import SGD, Adam
from fuseflow.training.spec import Group, TrainingSpec
from fuseflow.training.torch_optimizer import read_optimizer

TWO = (Group(SGD(0.2, 0.9), frozenset({"b", "a"})), Group(SGD(0.1), frozenset({"c"})))


def test_a_text_tells_specs_apart():
    assert TrainingSpec.of("mse").text == "loss mse\noptimizer sgd:lr=0.1"
    text = "loss mse\noptimizer sgd:lr=0.2,momentum=0.9 of a b\noptimizer sgd:lr=0.1 of c\ngradients"
    assert TrainingSpec.of("mse", TWO, True).text == text
    assert TrainingSpec.of(nn.MSELoss(), TWO).text is None


def test_a_group_has_its_own_numbers():
    assert TrainingSpec.of("mse", Adam(lr=0.1)).scalars(1) == Adam(lr=0.1).scalars(1)
    spec = TrainingSpec.of("mse", TWO)
    assert spec.scalars(1) == {"group0.lr": 0.2, "group1.lr": 0.1}
    assert spec.scalars(1, [0.3, 0.4]) == {"group0.lr": 0.3, "group1.lr": 0.4} and set(spec.scalars(1, 0.5).values()) == {0.5}
    with pytest.raises(TrainingError, match="there are 1 learning rate for 2 groups"):
        spec.scalars(1, [0.3])


def test_a_parameter_is_updated_by_its_group():
    spec, ones = TrainingSpec.of("mse", TWO), torch.ones(2)
    states = spec.initial({"a": ones, "c": ones, "free": ones})
    assert states.keys() == {"a.momentum_buffer"} and not states["a.momentum_buffer"].any()
    numbers = {key: torch.tensor(value) for key, value in spec.scalars(1).items()}
    new, new_states = spec.update("a", ones, ones, {"momentum_buffer": states["a.momentum_buffer"]}, numbers)
    assert new.tolist() == pytest.approx([0.8, 0.8]) and new_states["momentum_buffer"].tolist() == [1, 1]
    assert spec.update("c", ones, ones, {}, numbers)[0].tolist() == pytest.approx([0.9, 0.9])
    assert spec.trained(["free", "a", "b", "c"]) == ("a", "b", "c") and spec.optimizer_of("free") is None
    with pytest.raises(TrainingError, match="`free` has no optimizer"):
        spec.update("free", ones, ones, {}, numbers)
    assert TrainingSpec.of("mse").trained(["free", "a"]) == ("free", "a")


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ((), "no parameter has an optimizer"),
        ((*TWO, Group(SGD())), "a group of all parameters stands beside others"),
        ((*TWO, Group(SGD(), frozenset({"b"}))), "the parameter `b` is in two groups"),
    ],
)
def test_groups_that_contradict_each_other_are_refused(groups, message):
    with pytest.raises(TrainingError, match=message):
        TrainingSpec.of("mse", groups)


def test_a_group_names_parameters_of_the_model():
    with pytest.raises(TrainingError, match="no parameter `b`") as error:
        TrainingSpec.of("mse", TWO).trained(["a", "bb", "c"])
    assert error.value.hint == "did you mean `bb`?"


@pytest.mark.parametrize("name", CASES)
def test_recorded_gradients_give_the_recorded_step(name):
    case, values = prepared(name), recorded(name)
    optimizer = case.optimizer([p for p in case.model.parameters() if p.requires_grad])
    spec = TrainingSpec.of(case.loss, read_optimizer(optimizer, case.model).groups)
    parameters = dict(case.model.named_parameters())
    states, scalars = spec.initial(parameters), {key: torch.tensor(value) for key, value in spec.scalars(1).items()}
    trained = spec.trained(parameters)
    assert {f"grad/{name}" for name in trained} == {key for key in values if key.startswith("grad/")}
    for name in trained:
        own = {key: states[full] for full, key in spec.state_names(name).items()}
        new, new_states = spec.update(name, parameters[name].detach(), values[f"grad/{name}"], own, scalars)
        torch.testing.assert_close(new, values[f"step1/model/{name}"], rtol=2e-6, atol=1e-8)
        for key, state in new_states.items():
            torch.testing.assert_close(state, values[f"step1/state/{name}/{key}"], rtol=2e-6, atol=1e-12)
