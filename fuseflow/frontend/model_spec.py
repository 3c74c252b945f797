"""The user's specification of a model as one value: its source, its inputs and data, its options and its seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from fuseflow.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from fuseflow.einsum.nodes import Program
    from fuseflow.sparsity.spec import SparseSpec
    from fuseflow.training.losses import LossFunction
    from fuseflow.training.optimizers.optimizer import Optimizer

    TorchModel: TypeAlias = torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any]
    Model: TypeAlias = TorchModel | Program | Path | str


@dataclass(frozen=True, slots=True)
class PropagationSpec:
    """Which values of a model are known, before its parts that nothing needs are left out.

    Weights and buffers that are stored sparse have their entries in the same places in every run. So have inputs whose names match a
    pattern in `fixed`. With `constants`, the numbers of weights and buffers are known, too.
    """

    fixed: tuple[str, ...] = ()
    constants: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRequest:
    """That a training step of a model is asked for, and not its forward alone.

    `loss` is a loss by name or a function of the output and the target, and `optimizer` an optimizer by name, of PyTorch, or of this
    package; where they are None, the model file says them. `target` is what the loss compares the output with; where it is None, the
    model file or its data give it. With `gradients`, the gradients of parameters are outputs, too.
    """

    loss: str | LossFunction | None = None
    optimizer: str | Optimizer | torch.optim.Optimizer | None = None
    target: Any = None
    gradients: bool = False


class ModelArguments(TypedDict, total=False):
    """The keyword arguments that define a model, in `fuseflow.compile`, which explains them, and in `fuseflow.autoschedule`."""

    kwargs: Mapping[str, Any] | None
    data: str | None
    data_dir: str | Path | None
    tensors: str | Path | Mapping[str, Any] | None
    formats: Mapping[str, str] | None
    options: Mapping[str, Any] | None
    dims: Mapping[str, int] | None
    seed: int
    fresh: bool
    sparsity: SparseSpec | str | Path | None
    propagate: PropagationSpec | bool
    training: TrainingRequest | None


_HINTS = {
    "fresh": "it is read anew in every run",
    "sparsity": "a PyTorch model is made sparse; a tensor that is sparse already is stored so with `--format`",
    "training": "a PyTorch model is trained",
}
"""Hints where a kind of model does not accept a field, unless the hint is another way to give it inputs."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelSpec:
    """All that determines the program and the tensors of a model.

    `model` is a `torch.nn.Module`, a function of tensors, an exported program, the path of a model file (`.py`), a function that builds a
    model (`file.py:function`, `package.module:function`), the path of an exported program (`.pt2`), of a text program (`.ein`) or of a
    Linalg module (`.mlir`), the text of a program in several lines, or an Einsum program. The first three have their positional arguments
    in `inputs`, or their keyword arguments if it is a mapping, and further keyword arguments in `kwargs`. Files and functions that build a
    model take `data`, `data_dir` and `options`, the keyword arguments of the function. The last five take their inputs from `tensors`,
    which is a YAML file or a mapping from names to arrays, or, but for exported programs, from `inputs`, a mapping or one array after the
    other. A file with an exported program has inputs of its own too; `dims` gives sizes to their dimensions. `formats` gives storage
    formats to tensors that PyTorch holds dense. `seed` fixes random weights and data. A model file is imported again if `fresh`, and else
    only if something that it depends on changed since it was imported last. `sparsity` makes parts of a PyTorch model sparse: a spec, or a
    directory of sparse weights. `propagate` leaves out what the program does not need. With `training`, the program is a training step of
    a PyTorch model.
    """

    model: Model
    inputs: Sequence[Any] | Mapping[str, Any] | None = None
    kwargs: Mapping[str, Any] | None = None
    data: str | None = None
    data_dir: str | Path | None = None
    tensors: str | Path | Mapping[str, Any] | None = None
    formats: Mapping[str, str] | None = None
    options: Mapping[str, Any] | None = None
    fresh: bool = False
    dims: Mapping[str, int] | None = None
    sparsity: SparseSpec | Path | None = None
    seed: int = 0
    propagate: PropagationSpec | None = None
    training: TrainingRequest | None = None

    def refuse_all_but(self, kind: str, *names: str) -> None:
        """Raise `UsageError` if a field is set that this kind of model does not take, so that none is silently ignored. All kinds
        take `seed` and `propagate`. In the message, `kind` is this kind. `names` are the fields that it takes; the first of them
        gives it its inputs."""
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            is_set = bool(value) if name in ("options", "fresh", "dims", "sparsity") else value is not None
            if is_set and name not in ("model", "seed", "propagate", *names):
                hint = _HINTS.get(name, f"its inputs are given by `{names[0]}`")
                raise UsageError(f"{kind} takes no `{name.replace('_', '-')}`", hint=hint)
