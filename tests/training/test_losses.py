"""Losses by name are PyTorch's, and what is no loss is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fuseflow.errors import TrainingError
from fuseflow.training.losses import LOSSES, as_loss, require_scalar


def numbers(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


OUTPUT, CLASSES = numbers(6, 4, seed=1), torch.tensor([0, 3, -100, 1, 2, 2])
REAL = numbers(6, 4, seed=2)
SHARES, LOGARITHMS = torch.softmax(REAL, 1), torch.log_softmax(OUTPUT, 1)

CASES = [
    ("cross_entropy", nn.CrossEntropyLoss(), OUTPUT, CLASSES),
    ("cross_entropy:label_smoothing=0.1", nn.CrossEntropyLoss(label_smoothing=0.1), OUTPUT, CLASSES),
    (
        "cross_entropy:ignore_index=2,reduction=sum",
        nn.CrossEntropyLoss(ignore_index=2, reduction="sum"),
        OUTPUT,
        CLASSES.abs() % 4,
    ),
    ("cross_entropy", nn.CrossEntropyLoss(), OUTPUT, SHARES),
    ("nll", nn.NLLLoss(), LOGARITHMS, CLASSES),
    ("mse", nn.MSELoss(), OUTPUT, REAL),
    ("mse:reduction=sum", nn.MSELoss(reduction="sum"), OUTPUT, REAL),
    ("l1", nn.L1Loss(), OUTPUT, REAL),
    ("smooth_l1:beta=0.5", nn.SmoothL1Loss(beta=0.5), OUTPUT, REAL),
    ("huber:delta=0.5", nn.HuberLoss(delta=0.5), OUTPUT, REAL),
    ("bce", nn.BCELoss(), torch.sigmoid(OUTPUT), SHARES),
    ("bce_with_logits", nn.BCEWithLogitsLoss(), OUTPUT, SHARES),
    ("kl_div:reduction=batchmean", nn.KLDivLoss(reduction="batchmean"), LOGARITHMS, SHARES),
    ("kl_div:log_target=true,reduction=sum", nn.KLDivLoss(reduction="sum", log_target=True), LOGARITHMS, SHARES.log()),
]


@pytest.mark.parametrize(("text", "module", "output", "target"), CASES, ids=[f"{k} {case[0]}" for k, case in enumerate(CASES)])
def test_a_loss_by_name_is_that_of_pytorch(text, module, output, target):
    loss = as_loss(text)
    assert torch.equal(loss(output, target), module(output, target)) and str(as_loss(str(loss))) == str(loss)
    assert as_loss(module) is module


def test_every_loss_has_a_case():
    assert {text.partition(":")[0] for text, *_ in CASES} == LOSSES.keys() - {"model"}


def test_the_loss_of_the_model_is_its_output():
    value = torch.tensor(3.0)
    assert as_loss("model")(value, None) is value


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("crossentropy", "there is no loss `crossentropy`", "did you mean `cross_entropy`?"),
        ("cross_entropy:smoothing=0.1", "there is no `smoothing`", "did you mean `label_smoothing`?"),
        ("cross_entropy:label_smoothing=1.5", "`label_smoothing` cannot be 1.5", "from 0 to 1"),
        ("cross_entropy:weight=1", "there is no `weight`", ""),
        ("mse:reduction=none", "`reduction` cannot be `none`", "'mean' or 'sum'"),
        ("smooth_l1:beta=-1", "`beta` cannot be -1", "of at least 0"),
        ("huber:delta=0", "`delta` cannot be 0", "above 0"),
        (nn.MSELoss, "the loss is the class `MSELoss`", "`MSELoss()`"),
        (3, "the loss is a `int`", "cross_entropy"),
    ],
)
def test_what_is_no_loss_is_refused(text, message, hint):
    with pytest.raises(TrainingError) as error:
        as_loss(text)
    assert message in error.value.message and hint in error.value.hint


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3.0, "the loss is a `float`, not a tensor"),
        ((torch.tensor(1.0), torch.ones(3)), "the loss is a `tuple`"),
        (torch.ones(6), r"the loss has the shape \(6,\)"),
        (torch.tensor(3), "the loss has the type torch.int64"),
    ],
)
def test_a_loss_is_one_real_number(value, message):
    with pytest.raises(TrainingError, match=message):
        require_scalar(value)


def test_a_loss_may_have_a_dimension_of_size_1():
    assert require_scalar(torch.ones(1)).shape == () and require_scalar(torch.tensor(2.0)) == 2
