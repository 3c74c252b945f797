"""What a model is, in the words of its user: where it comes from, its inputs and data, its options and its seed, as one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fuseflow.errors import UsageError

if TYPE_CHECKING:
    import torch

    from fuseflow.einsum.nodes import Program

    Model: TypeAlias = torch.nn.Module | Program | Path | str


@dataclass(frozen=True, slots=True, eq=False)
class ModelSpec:
    """Everything that decides which program and which numbers a model becomes.

    `model` is a `torch.nn.Module` with its `inputs`, the path of a model file (`.py`, with `data`, `data_dir` and `options`, the keyword
    arguments of its `build`), of a text program (`.ein`) or of a Linalg module (`.mlir`), or an Einsum program; the last three take their
    inputs from `tensors`: a YAML file or arrays by name. `formats` annotates tensors that PyTorch holds dense. `seed` fixes random
    weights and data.
    """

    model: Model
    inputs: Sequence[Any] | None = None
    data: str | None = None
    data_dir: str | Path | None = None
    tensors: str | Path | Mapping[str, Any] | None = None
    formats: Mapping[str, str] | None = None
    options: Mapping[str, Any] | None = None
    seed: int = 0

    def refuse(self, what: str, source: str, *names: str) -> None:
        """Raise `UsageError` if one of the arguments called `names` is there, which `what` does not take: none is silently ignored.
        `source` is the argument that gives such a model its inputs."""
        for name in names:
            value = getattr(self, name)
            if value is not None and (name != "options" or value):
                raise UsageError(f"{what} takes no `{name.replace('_', '-')}`", hint=f"its inputs are given by `{source}`")
