"""Steps in PyTorch agree with those that were recorded, and leave the user's model alone."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from training_cases import CASES, prepared, recorded

from fuseflow.errors import TrainingError
from fuseflow.training.optimizers.formulas import SGD, Adam
from fuseflow.training.reference import Reference, StepValues
from fuseflow.training.spec import Group, TrainingSpec
from fuseflow.training.torch_optimizer import read_optimizer

STEPS = 5


def random_state(step: int) -> Tensor:
    return torch.Generator().manual_seed(step).get_state()


def spec_of(case) -> TrainingSpec:
    optimizer = case.optimizer([p for p in case.model.parameters() if p.requires_grad])
    return TrainingSpec.of(case.loss, read_optimizer(optimizer, case.model).groups)


def steps(name: str, dtype: torch.dtype | None) -> list[StepValues]:
    """Take five steps of a case, from recorded parameters and buffers."""
    case = prepared(name)
    reference = Reference(case.model.train(), spec_of(case), case.masks, dtype)
    carried, taken = reference.initial, list[StepValues]()
    for step in range(1, STEPS + 1):
        inputs = list(case.inputs.values())
        taken.append(reference.step(carried, step, inputs, case.target, random_state=random_state(step)))
        carried = taken[-1].carried
    return taken


def recorded_results(values: dict[str, Tensor], step: int) -> dict[str, Tensor]:
    """Return the parameters, buffers and states that were recorded after a step, by the names of results."""
    results = {}
    for prefix in (f"step{step}/model/", f"step{step}/state/"):
        found = {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}
        results |= {f"next.{key.replace('/', '.')}": value for key, value in found.items() if not key.endswith("/step")}
    return results


@pytest.mark.parametrize("name", CASES)
def test_recorded_steps_come_again(name):
    values, taken = recorded(name), steps(name, None)
    torch.testing.assert_close(torch.stack([step.loss for step in taken]), values["loss"], rtol=1e-6, atol=0)
    for gradient in [key for key in values if key.startswith("grad/")]:
        torch.testing.assert_close(taken[0].gradients[gradient.removeprefix("grad/")], values[gradient], rtol=1e-5, atol=1e-7)
    for step in (1, STEPS):
        results = recorded_results(values, step)
        if name == "embedding_tied_sgd":
            del results["next.out.weight"]  # the second name of a tied weight
        assert results.keys() <= taken[step - 1].results.keys()
        for key, value in results.items():
            if "k.bias" not in key:  # whose gradient is rounding alone
                torch.testing.assert_close(taken[step - 1].results[key], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_recorded_losses_in_f64_come_again(name):
    values = recorded(name)
    losses = torch.stack([step.loss for step in steps(name, torch.float64)])
    torch.testing.assert_close(losses, values["loss"].double() + values["f64/loss"], rtol=1e-9, atol=0)


def network() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 2))


X, Y = torch.randn(5, 4, generator=torch.Generator().manual_seed(4)), torch.tensor([0, 1, 1, 0, 1])


def test_the_model_of_the_user_and_the_generator_stay_as_they_are():
    model = network()
    before, generator = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    reference = Reference(model, TrainingSpec.of("cross_entropy", "adam:lr=0.1"))
    start = reference.initial
    kept = copy.deepcopy(start)
    first, second = (reference.step(start, 1, (X,), Y) for _ in range(2))
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    torch.testing.assert_close(start, kept, rtol=0, atol=0)
    torch.testing.assert_close(first.results, second.results, rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), generator) and all(p.grad is None for p in model.parameters())


def test_f32_and_f64_draw_the_same_masks():
    steps = [Reference(network(), TrainingSpec.of("cross_entropy"), None, dtype) for dtype in (None, torch.float64)]
    one, other = (r.step(r.initial, 1, (X,), Y, random_state=random_state(7)) for r in steps)
    assert other.loss.dtype == torch.float64 and one.loss == pytest.approx(other.loss.item(), rel=1e-6)


def test_a_parameter_without_a_gradient_is_not_touched():
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused, self.zero = nn.Linear(4, 2), nn.Linear(4, 2), nn.Parameter(torch.ones(2))

        def forward(self, x: Tensor) -> Tensor:
            return self.used(x) + 0 * self.zero

    reference = Reference(Half(), TrainingSpec.of("cross_entropy", "sgd:lr=0.1,momentum=0.9,weight_decay=0.1"))
    start = reference.initial
    step = reference.step(start, 1, (X,), Y)
    assert step.gradients["unused.weight"] is None and "grad.unused.weight" not in step.results
    assert all(torch.equal(step.carried[name], start[name]) for name in start if name.startswith("unused."))
    assert not step.gradients["zero"].any() and not torch.equal(step.parameters["zero"], start["zero"])


def test_groups_have_their_own_constants_and_learning_rates():
    names = [frozenset({"0.weight", "0.bias"}), frozenset({"3.weight"})]
    groups = [Group(SGD(0.5), names[0]), Group(Adam(0.1), names[1])]
    reference = Reference(network().eval(), TrainingSpec.of("cross_entropy", groups))
    start = reference.initial
    assert start.keys() - dict(network().state_dict()).keys() == {"3.weight.exp_avg", "3.weight.exp_avg_sq"}
    one, other = reference.step(start, 1, (X,), Y), reference.step(start, 1, (X,), Y, lr=[0.25, 0.0])
    assert torch.allclose(start["0.weight"] - one.parameters["0.weight"], 0.5 * one.gradients["0.weight"], atol=1e-7)
    assert torch.allclose(start["0.weight"] - other.parameters["0.weight"], 0.25 * one.gradients["0.weight"], atol=1e-7)
    assert torch.equal(other.parameters["3.weight"], start["3.weight"]) and torch.equal(one.parameters["3.bias"], start["3.bias"])


@pytest.mark.parametrize("optimizer", ["sgd:lr=0.1,momentum=0.9", "adagrad:initial_accumulator_value=0.1,eps=0", "rmsprop"])
def test_pruned_entries_stay_0(optimizer):
    model, mask = network(), torch.arange(24).reshape(6, 4) % 3 == 0
    reference = Reference(model, TrainingSpec.of("cross_entropy", optimizer), {"0.weight": mask})
    carried = reference.initial
    assert not carried["0.weight"][~mask].any() and carried["0.weight"][mask].all()
    for step in (1, 2):
        taken = reference.step(carried, step, (X,), Y)
        carried = taken.carried
        for name, value in taken.results.items():
            if "0.weight" in name:
                assert value.shape != mask.shape or (not value[~mask].any() and value[mask].any()), name


def test_a_mask_of_a_weight_that_is_not_trained_does_nothing_and_one_of_no_weight_is_refused():
    model = network()
    model[0].requires_grad_(False)
    reference = Reference(model, TrainingSpec.of("cross_entropy", "adam"), {"0.weight": torch.zeros(6, 4, dtype=torch.bool)})
    assert torch.equal(reference.step(reference.initial, 1, (X,), Y).parameters["0.weight"], model[0].weight)
    with pytest.raises(TrainingError, match="which has a mask"):
        Reference(model, TrainingSpec.of("cross_entropy"), {"0.wieght": torch.ones(6, 4, dtype=torch.bool)})


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo])
def test_a_weight_that_pytorch_stores_sparse_trains_as_there(layout):
    class Sparse(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter((torch.eye(4)[:2] + torch.eye(4)[1:3]).to_sparse(layout=layout))

        def forward(self, x: Tensor) -> Tensor:
            return torch.sparse.mm(self.weight, x.T).T

    spec = TrainingSpec.of("cross_entropy", "sgd:lr=0.1,momentum=0.9")
    reference = Reference(Sparse(), spec)
    start = reference.initial
    step = reference.step(start, 1, (X,), Y)
    assert step.parameters["weight"].layout == layout and step.parameters["weight"]._nnz() == 4
    again = reference.step({**start, "weight": start["weight"].to_dense()}, 1, (X,), Y)
    torch.testing.assert_close(again.parameters["weight"].to_dense(), step.parameters["weight"].to_dense(), rtol=0, atol=0)


def test_real_numbers_anywhere_in_the_model_get_the_type():
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.parts = nn.LSTM(4, 2), {"scale": torch.full((2,), 3.0), "count": torch.tensor(3)}

        def forward(self, x: Tensor) -> Tensor:
            return self.lstm(x)[0] @ torch.eye(2) * self.parts["scale"]

    reference = Reference(Scaled(), TrainingSpec.of(nn.CrossEntropyLoss(torch.ones(2))), dtype=torch.float64)
    step = reference.step(reference.initial, 1, [X], Y)
    assert {value.dtype for value in step.results.values()} == {torch.float64} and torch.get_default_dtype() == torch.float32
    assert all(gradient is not None for gradient in step.gradients.values())


def test_a_model_may_return_its_loss_and_take_names():
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x: Tensor, *, labels: Tensor) -> Tensor:
            return functional.cross_entropy(self.layer(x), labels)

    reference = Reference(Own(), TrainingSpec.of("model"))
    start = reference.initial
    one, other = reference.step(start, 1, {"x": X, "labels": Y}), reference.step(start, 1, [X], kwargs={"labels": Y})
    torch.testing.assert_close(one.results, other.results, rtol=0, atol=0)


def test_what_cannot_be_trained_is_refused():
    frozen = network().requires_grad_(False)
    with pytest.raises(TrainingError, match="no parameter that has an optimizer requires a gradient"):
        Reference(frozen, TrainingSpec.of("cross_entropy"))
    reference = Reference(network(), TrainingSpec.of(lambda output, target: output.detach().sum()))
    with pytest.raises(TrainingError, match="the loss does not depend on a trained parameter"):
        reference.step(reference.initial, 1, (X,), Y)
    reference = Reference(network(), TrainingSpec.of("cross_entropy"))
    with pytest.raises(TrainingError, match="PyTorch cannot compute this step: Expected input batch_size"):
        reference.step(reference.initial, 1, (X,), Y[:3])


def test_a_model_that_cannot_be_copied_is_refused():
    model = nn.utils.weight_norm(nn.Linear(4, 2))
    model(X)
    with pytest.raises(TrainingError, match="PyTorch cannot copy the model: Only Tensors created explicitly"):
        Reference(model, TrainingSpec.of("cross_entropy"))


@pytest.mark.parametrize("masked", [False, True])
def test_a_gradient_may_be_stored_sparse(masked):
    class Words(nn.Module):
        def __init__(self, sparse: bool) -> None:
            super().__init__()
            torch.manual_seed(5)
            self.table, self.out = nn.Embedding(6, 3, sparse=sparse), nn.Linear(3, 2)

        def forward(self, words: Tensor) -> Tensor:
            return self.out(self.table(words))

    masks = {"table.weight": torch.arange(18).reshape(6, 3) % 2 == 0} if masked else {}
    words, spec = torch.tensor([0, 3, 3, 1, 0]), TrainingSpec.of("cross_entropy", "sgd:lr=0.1,momentum=0.9")
    taken = []
    for sparse in (True, False):
        reference = Reference(Words(sparse), spec, masks)
        first = reference.step(reference.initial, 1, (words,), Y)
        taken.append(reference.step(first.carried, 2, (words,), Y))
    results = [{name: value.to_dense() for name, value in step.results.items()} for step in taken]
    torch.testing.assert_close(*results)
    assert taken[0].gradients["table.weight"].is_sparse != masked
