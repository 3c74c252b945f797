"""A task that a small network learns in seconds: ten classes of 32 features, as a random network with fixed weights assigns them.

A network of two hidden layers of 160 learns it for 30 epochs, its first two layers are pruned, and it learns on for 15 or 16.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn

TRAIN, TEST, BATCH = 3000, 1000, 100
DENSE_EPOCHS, TUNING_EPOCHS = 30, 15


@dataclass(frozen=True, slots=True)
class Task:
    """Features and classes of all examples, the first `TRAIN` of which are for training."""

    x: torch.Tensor
    y: torch.Tensor

    def accuracy(self, model: nn.Module) -> float:
        return float((model(self.x[TRAIN:]).argmax(1) == self.y[TRAIN:]).float().mean())

    def train(self, model: nn.Module, optimizer: torch.optim.Optimizer, epochs: int, seed: int) -> None:
        import torch
        from torch.nn import functional

        order = torch.Generator().manual_seed(seed)
        for _ in range(epochs):
            for batch in torch.randperm(TRAIN, generator=order).split(BATCH):
                optimizer.zero_grad()
                functional.cross_entropy(model(self.x[batch]), self.y[batch]).backward()
                optimizer.step()


def task() -> Task:
    """Return the task, which is always the same."""
    import torch
    from torch import nn

    with torch.random.fork_rng():
        torch.manual_seed(0)
        generator = torch.Generator().manual_seed(0)
        teacher = nn.Sequential(nn.Linear(32, 48), nn.Tanh(), nn.Linear(48, 10))
        x = torch.randn(TRAIN + TEST, 32, generator=generator)
    with torch.no_grad():
        teacher[0].weight.mul_(3)
        teacher[2].weight.mul_(3)
        return Task(x, teacher(x).argmax(1))


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    import torch

    return torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=1e-3)


def dense_network(task: Task, seed: int) -> Any:
    """Return a network that has learnt the task."""
    import torch
    from torch import nn

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(32, 160), nn.ReLU(), nn.Linear(160, 160), nn.ReLU(), nn.Linear(160, 10))
    task.train(model, optimizer_of(model), DENSE_EPOCHS, seed)
    return model


def accuracy_after(
    task: Task, dense: nn.Module, seed: int, prune: Callable[[nn.Module, torch.optim.Optimizer, Callable[[int], None]], object]
) -> float:
    """Return the accuracy of a copy of a network after it was pruned and trained. `prune` is given the copy, its optimizer, and a function
    that trains it for so many epochs."""
    model = copy.deepcopy(dense)
    optimizer = optimizer_of(model)
    prune(model, optimizer, lambda epochs: task.train(model, optimizer, epochs, seed))
    return task.accuracy(model)
