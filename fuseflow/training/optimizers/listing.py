"""The optimizers by name."""

from __future__ import annotations

from fuseflow.errors import TrainingError
from fuseflow.sparsity.text_form import parse_text
from fuseflow.training.optimizers.adagrad import Adagrad
from fuseflow.training.optimizers.adam import Adam
from fuseflow.training.optimizers.adamw import AdamW
from fuseflow.training.optimizers.optimizer import SEPARATOR, Optimizer
from fuseflow.training.optimizers.rmsprop import RMSprop
from fuseflow.training.optimizers.sgd import SGD

OPTIMIZERS: dict[str, type[Optimizer]] = {cls.name: cls for cls in (SGD, Adam, AdamW, RMSprop, Adagrad)}
"""The known optimizers by name."""


def parse_optimizer(text: str) -> Optimizer:
    """Return the optimizer that a text names, such as `sgd:lr=0.2,momentum=0.9`. Raise `TrainingError` for another text.

    >>> str(parse_optimizer("adamw:lr=1e-3,weight_decay=0.1"))
    'adamw:weight_decay=0.1'
    """
    return parse_text(text, OPTIMIZERS, "optimizer", SEPARATOR, TrainingError)
