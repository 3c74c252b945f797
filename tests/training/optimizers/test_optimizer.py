"""Optimizers take the same steps as PyTorch's: parameters and all states, with any constants."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fuseflow.errors import TrainingError
from fuseflow.training.optimizers.formulas import OPTIMIZERS, SGD, Adagrad, Adam, AdamW, RMSprop, parse_optimizer
from fuseflow.training.optimizers.optimizer import Optimizer

STEPS = 5
TEXTS = [
    *("sgd", "sgd:lr=0.1,momentum=0.9", "sgd:lr=0.1,momentum=0.9,dampening=0.3,weight_decay=0.01", "sgd:lr=0.1,weight_decay=0.1"),
    *("sgd:lr=0.1,momentum=0.9,nesterov=true", "sgd:lr=0.1,momentum=0.5,dampening=-0.5,maximize=true", "sgd:lr=0"),
    *("adam", "adam:lr=0.1,beta1=0.8,beta2=0.99,weight_decay=0.1", "adam:amsgrad=true,maximize=true", "adam:beta1=0,beta2=0"),
    *("adamw", "adamw:lr=0.1,weight_decay=0.2,amsgrad=true", "adamw:weight_decay=0", "adamw:maximize=true"),
    *(
        "rmsprop",
        "rmsprop:momentum=0.9,centered=true",
        "rmsprop:alpha=0.5,weight_decay=0.1,maximize=true",
        "rmsprop:centered=true",
    ),
    *("adagrad", "adagrad:lr_decay=0.2,weight_decay=0.1", "adagrad:initial_accumulator_value=0.5,maximize=true"),
]

floats = st.floats(0, 2, width=32)
# PyTorch takes 1 - (1 - beta) for beta, which is 0 for a tiny one.
shares = st.just(0.0) | st.floats(1e-3, 0.999)
tiny = st.sampled_from([1e-10, 1e-8, 1e-3])
bools = st.booleans()
sgd = st.builds(SGD, floats, shares, st.floats(-1, 1), floats, maximize=bools)
nesterov = st.builds(SGD, floats, st.floats(0.1, 1), st.just(0.0), floats, st.just(True), bools)
adam = st.builds(Adam, floats, shares, shares, tiny, floats, bools, bools)
adamw = st.builds(AdamW, floats, shares, shares, tiny, floats, bools, bools)
# The variance of a centered RMSprop may cancel, so that rounding decides; `alpha` near 0 makes it so.
rmsprop = st.builds(RMSprop, floats, st.floats(0.3, 0.99), st.sampled_from([1e-8, 1e-3]), floats, shares, bools, bools)
adagrad = st.builds(Adagrad, floats, floats, floats, floats, tiny, bools)
optimizers = st.one_of(sgd, nesterov, adam, adamw, rmsprop, adagrad)


def tensors(seed: int, dtype: torch.dtype) -> list[Tensor]:
    """A parameter of shape (3, 4), and its gradients. The second one is 0."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randn(3, 4, generator=generator, dtype=torch.float64).to(dtype) for _ in range(STEPS + 1)]
    drawn[2] = torch.zeros_like(drawn[2])
    return drawn


def scalar_tensors(scalars: dict[str, float], dtype: torch.dtype) -> dict[str, Tensor]:
    return {key: torch.tensor(value, dtype=dtype) for key, value in scalars.items()}


def largest_error(optimizer: Optimizer, seed: int, dtype: torch.dtype, rates: list[float] | None = None) -> float:
    """Return the largest difference from PyTorch over all steps, of parameters and states, relative to the largest entry."""
    start, *gradients = tensors(seed, dtype)
    theirs = torch.nn.Parameter(start.clone())
    in_torch = optimizer.in_torch([theirs])
    ours, states, error = start.clone(), optimizer.initial(start), 0.0
    for step, gradient in enumerate(gradients, start=1):
        lr = None if rates is None else rates[step - 1]
        if lr is not None:
            in_torch.param_groups[0]["lr"] = lr
        theirs.grad = gradient.clone()
        in_torch.step()
        ours, states = optimizer.update(ours, gradient, states, scalar_tensors(optimizer.scalars(step, lr), dtype))
        state = {key: value for key, value in in_torch.state[theirs].items() if key != "step"}
        assert states.keys() == set(optimizer.state_names) == {key for key, value in state.items() if value is not None}
        pairs = [(ours, theirs.detach()), *((states[key], state[key]) for key in states)]
        error = max(error, *(float((a - b).abs().max() / b.abs().max().clamp(min=1e-30)) for a, b in pairs))
    return error


@pytest.mark.parametrize("text", TEXTS)
def test_five_steps_are_those_of_pytorch(text):
    optimizer = parse_optimizer(text)
    assert largest_error(optimizer, 1, torch.float64) < 1e-13
    assert largest_error(optimizer, 2, torch.float32) < 2e-6


@pytest.mark.parametrize("text", TEXTS)
def test_a_learning_rate_may_change_between_steps(text):
    assert largest_error(parse_optimizer(text), 3, torch.float64, [0.1, 0.2, 0.05, 0.0, 0.3]) < 1e-13


@settings(deadline=None, max_examples=200)
@given(optimizers, st.integers(0, 1000))
def test_any_constants_give_the_steps_of_pytorch(optimizer, seed):
    assert largest_error(optimizer, seed, torch.float64) < 1e-9


@given(optimizers)
def test_an_optimizer_of_pytorch_has_the_same_constants(optimizer):
    in_torch = optimizer.in_torch([torch.nn.Parameter(torch.ones(2))])
    assert type(optimizer).of_group(in_torch.param_groups[0]) == optimizer
    assert parse_optimizer(str(optimizer)) == optimizer and hash(parse_optimizer(str(optimizer))) == hash(optimizer)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_defaults_are_those_of_pytorch(name):
    cls = OPTIMIZERS[name]
    in_torch = getattr(torch.optim, cls.torch_name)([torch.nn.Parameter(torch.ones(2))])
    assert cls.of_group(in_torch.param_groups[0]) == cls()


@given(optimizers, st.integers(1, 9))
def test_nothing_is_written_in_place_and_zeros_stay(optimizer, step):
    zeros = torch.zeros(3, dtype=torch.float64)
    states = {key: zeros.clone() for key in optimizer.state_names}
    new, new_states = optimizer.update(zeros, zeros, states, scalar_tensors(optimizer.scalars(step), torch.float64))
    assert all(not value.any() for value in (zeros, new, *states.values(), *new_states.values()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sgd:lr=-1", "`lr` cannot be -1"),
        ("sgd:lr=nan", "`lr` cannot be nan"),
        ("sgd:lr=inf", "`lr` cannot be inf"),
        ("sgd:dampening=-inf", "`dampening` cannot be -inf"),
        ("sgd:momentum=-0.1", "`momentum` cannot be -0.1"),
        ("sgd:nesterov=true", "needs a momentum"),
        ("sgd:nesterov=true,momentum=0.9,dampening=0.1", "has no dampening"),
        ("adam:beta1=1", "`beta1` cannot be 1"),
        ("adamw:beta2=-0.5", "`beta2` cannot be -0.5"),
        ("adamw:eps=-1", "`eps` cannot be -1"),
        ("rmsprop:alpha=-1", "`alpha` cannot be -1"),
        ("adagrad:lr_decay=-1", "`lr_decay` cannot be -1"),
        ("adagrad:initial_accumulator_value=-1", "`initial_accumulator_value` cannot be -1"),
    ],
)
def test_constants_out_of_the_range_of_pytorch_are_refused(text, message):
    with pytest.raises(TrainingError, match=message):
        parse_optimizer(text)
