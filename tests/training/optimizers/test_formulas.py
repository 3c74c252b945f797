"""Texts of optimizers, as on the command line."""

from __future__ import annotations

import pytest

from fuseflow.errors import TrainingError
from fuseflow.training.optimizers.formulas import SGD, Adam, AdamW, parse_optimizer


@pytest.mark.parametrize(
    ("text", "optimizer", "canonical"),
    [
        ("sgd:lr=0.2,momentum=0.9", SGD(0.2, 0.9), "sgd:lr=0.2,momentum=0.9"),
        ("sgd:momentum=0.9,lr=2e-1", SGD(0.2, 0.9), "sgd:lr=0.2,momentum=0.9"),
        ("sgd:0.2", SGD(0.2), "sgd:lr=0.2"),
        ("sgd:lr=1", SGD(1), "sgd:lr=1.0"),
        ("adamw:lr=1e-3,weight_decay=0.1", AdamW(weight_decay=0.1), "adamw:weight_decay=0.1"),
        ("adam:beta1=0.8,amsgrad=yes", Adam(beta1=0.8, amsgrad=True), "adam:beta1=0.8,amsgrad=True"),
        ("adam", Adam(), "adam"),
    ],
)
def test_a_text_says_the_optimizer(text, optimizer, canonical):
    assert parse_optimizer(text) == optimizer and str(optimizer) == canonical


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("sdg", "there is no optimizer `sdg`", "did you mean `sgd`?"),
        ("Adam", "there is no optimizer `Adam`", "did you mean `adam`?"),
        ("lbfgs", "there is no optimizer `lbfgs`", "known: `adagrad`, `adam`, `adamw`, `rmsprop`, `sgd`"),
        ("sgd:momentun=0.9", "`sgd:momentun=0.9`: there is no `momentun`", "did you mean `momentum`?"),
        ("sgd:lr=fast", "`sgd:lr=fast`: `lr` cannot be `fast`", "number"),
        ("sgd:lr=0.1,lr=0.2", "says `lr` twice", ""),
        ("adam:amsgrad=2", "`amsgrad` cannot be `2`", "boolean"),
        ("sgd:", "`lr` cannot be ``", "number"),
        ("adamw:betas=0.9", "there is no `betas`", "did you mean `beta"),
    ],
)
def test_other_texts_are_refused_in_words(text, message, hint):
    with pytest.raises(TrainingError) as error:
        parse_optimizer(text)
    assert message in error.value.message and hint in error.value.hint
