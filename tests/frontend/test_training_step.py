"""Training steps of models that say something of their own about gradients, compared with PyTorch's; and models that are refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.errors import FuseFlowError

X = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
Y = torch.randn(6, 3, generator=torch.Generator().manual_seed(2))


class Model(nn.Module):
    """Two linear layers and a vector, which a function computes with."""

    def __init__(self, function):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = nn.Linear(4, 3), nn.Linear(4, 3)
        self.scale = nn.Parameter(torch.randn(3))
        self.register_buffer("mean", torch.zeros(3))
        self._function = function

    def forward(self, x: Tensor) -> Tensor:
        return self._function(self, x)


def step_of(function, loss="mse", optimizer="sgd:lr=0.1", cut="none"):
    schedule = ff.Schedule.fuse(cut)
    return ff.training_step(Model(function), (X,), Y, loss=loss, optimizer=optimizer, gradients=True, schedule=schedule)


def detached(model, x):
    h = model.first(x)
    return h * h.detach()


def without_gradient(model, x):
    with torch.no_grad():
        gate = model.second(x)
    return model.first(x) * gate


def in_inference_mode(model, x):
    with torch.inference_mode():
        gate = model.second(x)
    return model.first(x) * gate.clone()


def running_mean(model, x):
    h = model.first(x)
    model.mean.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)
    return h - model.mean


def rounded(model, x):
    return torch.round(model.first(x)) + model.second(x)


def written_slices(model, x):
    h = model.first(x).clone()
    h[:, 0] = 0
    h[:, 1] *= 2
    return h * model.second(x)


def written_view(model, x):
    h = model.first(x).clone()
    h.view(-1)[3:6].mul_(2)
    return h * model.second(x)


def same_layer_twice(model, x):
    return model.first(x) * model.first(2 * x) + model.scale


@pytest.mark.parametrize(
    ("function", "changed"),
    [
        (detached, {"first.weight", "first.bias"}),
        (without_gradient, {"first.weight", "first.bias"}),
        (in_inference_mode, {"first.weight", "first.bias"}),
        (running_mean, {"first.weight", "first.bias", "mean"}),
        (rounded, {"first.weight", "first.bias", "second.weight", "second.bias"}),
        (written_slices, {"first.weight", "first.bias", "second.weight", "second.bias"}),
        (written_view, {"first.weight", "first.bias", "second.weight", "second.bias"}),
        (same_layer_twice, {"first.weight", "first.bias", "scale"}),
    ],
)
def test_a_step_changes_what_pytorch_changes(function, changed):
    step = step_of(function)
    result = step.run()
    assert {name.removeprefix("next.") for name in result.outputs if name.startswith("next.")} == changed
    assert result.check.passed, result.check
    run = step.run(steps=3)
    assert run.check.passed and set(run.state) == changed


def test_a_gradient_of_zero_decays_and_none_does_not():
    result = step_of(rounded, optimizer="sgd:lr=0.1,weight_decay=0.5").run()
    model = Model(rounded)
    assert not result.outputs["grad.first.weight"].any()
    np.testing.assert_allclose(result.outputs["next.first.weight"], 0.95 * model.first.weight.detach(), rtol=1e-6)
    assert "next.scale" not in result.outputs
    assert any("does not depend on `scale`" in notice for notice in step_of(rounded).source.notices)


def own_backward(model, x):
    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x.sign()

        @staticmethod
        def backward(context, gradient):
            return gradient

    return Sign.apply(model.first(x)) * model.second(x)


def written_weight(model, x):
    model.first.weight.data.mul_(0.9)
    return model.first(x)


def replaced_weight(model, x):
    model.first.weight.data = model.first.weight.data * 2
    return model.first(x)


def inner_gradient(model, x):
    x = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad((model.first(x) ** 2).sum(), x, create_graph=True)
    return gradient[:, :3]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (own_backward, "has its own backward"),
        (written_weight, "`first.weight`"),
        (replaced_weight, "writes to `first.weight`"),
        (inner_gradient, "differentiates or transforms functions"),
        (lambda model, x: model.first(x) + torch.randn(3), "random numbers"),
        (lambda model, x: model.first(x) if model.first(x).sum() > 0 else model.second(x), "control flow depends on data"),
        (lambda model, x: x[:, :3], "does not depend on a trained parameter"),
    ],
)
def test_what_has_no_formula_is_refused(function, message):
    with pytest.raises(FuseFlowError, match=message):
        step_of(function).run()


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda output, target: output - target, "the loss has the shape"),
        (lambda output, target: 1.0, "the loss is a `float`"),
        (lambda output, target: (output - target).round().to(torch.int64).sum(), "the loss has the type"),
    ],
)
def test_a_loss_is_one_number(loss, message):
    with pytest.raises(FuseFlowError, match=message):
        step_of(same_layer_twice, loss)


def test_a_model_that_trains_nothing_is_refused():
    model = Model(same_layer_twice).requires_grad_(False)
    with pytest.raises(FuseFlowError, match="no parameter of the model requires a gradient"):
        ff.training_step(model, (X,), Y, loss="mse")


def test_a_complex_parameter_is_refused():
    model = Model(lambda self, x: self.first(x) * torch.fft.ifft(torch.fft.fft(self.scale) * self.filter).real)
    model.filter = nn.Parameter(torch.ones(3, dtype=torch.complex64))
    with pytest.raises(FuseFlowError, match="the parameter `filter` has complex numbers"):
        ff.training_step(model, (X,), Y, loss="mse")


def test_a_step_owns_its_parameters():
    model = Model(same_layer_twice)
    step = ff.training_step(model, (X,), Y, loss="mse", schedule=ff.Schedule.fuse("none"))
    before = step.run(check=False).outputs["loss"]
    with torch.no_grad():
        model.first.weight.add_(1)
    assert step.run(check=False).outputs["loss"] == before


def test_every_einsum_of_a_step_has_a_path_or_a_phase():
    for einsum in step_of(same_layer_twice).source.program.einsums:
        phase = einsum.name.partition(".")[0]
        assert phase in ("grad", "update", "next", "loss") or einsum.location.path in ("first", "second", "")
        if phase == "update":
            assert einsum.location.path.startswith("update.")


def test_batches_of_inputs_and_targets():
    step = step_of(same_layer_twice)
    other = torch.randn(6, 4, generator=torch.Generator().manual_seed(4))
    run = step.run(steps=2, batches=[{"x": X, "target": Y}, {"x": other}])
    assert run.check.passed
    with pytest.raises(FuseFlowError, match="has no argument `z`"):
        step.run(steps=1, batches=[{"z": X}])
    with pytest.raises(FuseFlowError, match="was compiled for"):
        step.run(steps=1, batches=[{"x": X[:3]}])


def test_batches_of_classes_are_imported_again():
    torch.manual_seed(5)
    classes = torch.randint(0, 3, (6,))
    schedule = ff.Schedule.fuse("none")
    step = ff.training_step(Model(same_layer_twice), (X,), classes, loss="cross_entropy", schedule=schedule)
    assert step.run(steps=2, batches=[{"target": classes}, {"target": classes.flip(0)}]).check.passed


def test_learning_rates_of_steps():
    step = step_of(same_layer_twice, optimizer="adam:lr=0.1")
    run = step.run(steps=3, learning_rates=lambda number: 0.1 / number)
    assert run.check.passed


def test_an_optimizer_with_different_steps_of_its_parameters_is_refused():
    model = Model(same_layer_twice)
    optimizer = torch.optim.Adam(model.parameters())
    for reached in (same_layer_twice, lambda model, x: model.first(x)):
        optimizer.zero_grad()
        reached(model, X).sum().backward()
        optimizer.step()
    with pytest.raises(FuseFlowError, match="the optimizer has taken 2 steps of"):
        ff.training_step(model, (X,), Y, loss="mse", optimizer=optimizer)
