"""AdamW: Adam with decay of weights beside the gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fuseflow.training.optimizers.adam import Adam


@dataclass(frozen=True, slots=True)
class AdamW(Adam):
    """Adam, where each step first makes a weight smaller by the share `lr * weight_decay` of it."""

    name = "adamw"
    torch_name = "AdamW"
    decoupled: ClassVar[bool] = True

    weight_decay: float = 1e-2
