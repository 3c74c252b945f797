"""Losses by name, as PyTorch computes them. A loss is a function of the output of the model and the target."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from fuseflow.errors import TrainingError
from fuseflow.sparsity.text_form import parse_text, text_of
from fuseflow.training.optimizers.optimizer import SEPARATOR

if TYPE_CHECKING:
    from torch import Tensor

LossFunction: TypeAlias = Callable[[Any, Any], Any]
"""What makes a loss of the output of the model and the target: a loss by name, a function, or a module such as `nn.BCELoss()`."""
Reduction: TypeAlias = Literal["mean", "sum"]


class Loss(ABC):
    """A loss by name. A subclass is a frozen dataclass of the keyword arguments of PyTorch's function.

    Constants outside of PyTorch's range raise `TrainingError`. Weights of classes are tensors, so that they have no text: such a loss is a
    module, as in `nn.CrossEntropyLoss(weight=...)`.
    """

    __slots__ = ()

    name: ClassVar[str]
    """Its name in texts, such as `cross_entropy`."""
    function: ClassVar[str]
    """The name of PyTorch's function in `torch.nn.functional`."""

    def __call__(self, output: Any, target: Any) -> Any:
        """Return the loss, a tensor without dimensions."""
        import torch.nn.functional

        return getattr(torch.nn.functional, self.function)(output, target, **asdict(self))  # type: ignore[call-overload]

    def __str__(self) -> str:
        return text_of(self.name, self, SEPARATOR)

    def _require(self, key: str, holds: bool, range_text: str) -> None:
        if not holds:
            raise TrainingError(f"`{self.name}`: `{key}` cannot be {getattr(self, key):g}", hint=f"give a number {range_text}")


@dataclass(frozen=True, slots=True)
class CrossEntropy(Loss):
    """Softmax and negative logarithm of the class in the target, or of its probabilities."""

    name = "cross_entropy"
    function = "cross_entropy"

    label_smoothing: float = 0.0
    ignore_index: int = -100
    reduction: Reduction = "mean"

    def __post_init__(self) -> None:
        self._require("label_smoothing", 0 <= self.label_smoothing <= 1, "from 0 to 1")


@dataclass(frozen=True, slots=True)
class NLL(Loss):
    """Negative of the output at the class in the target: the output has logarithms of probabilities."""

    name = "nll"
    function = "nll_loss"

    ignore_index: int = -100
    reduction: Reduction = "mean"


@dataclass(frozen=True, slots=True)
class MSE(Loss):
    """Squares of differences."""

    name = "mse"
    function = "mse_loss"

    reduction: Reduction = "mean"


@dataclass(frozen=True, slots=True)
class L1(Loss):
    """Magnitudes of differences."""

    name = "l1"
    function = "l1_loss"

    reduction: Reduction = "mean"


@dataclass(frozen=True, slots=True)
class SmoothL1(Loss):
    """Magnitudes of differences, and squares of those below `beta`, divided by it."""

    name = "smooth_l1"
    function = "smooth_l1_loss"

    beta: float = 1.0
    reduction: Reduction = "mean"

    def __post_init__(self) -> None:
        self._require("beta", 0 <= self.beta < inf, "of at least 0")


@dataclass(frozen=True, slots=True)
class Huber(Loss):
    """Squares of differences, and `delta` times the magnitude of those above `delta`."""

    name = "huber"
    function = "huber_loss"

    delta: float = 1.0
    reduction: Reduction = "mean"

    def __post_init__(self) -> None:
        self._require("delta", 0 < self.delta < inf, "above 0")


@dataclass(frozen=True, slots=True)
class BCE(Loss):
    """Cross entropy of probabilities of two classes."""

    name = "bce"
    function = "binary_cross_entropy"

    reduction: Reduction = "mean"


@dataclass(frozen=True, slots=True)
class BCEWithLogits(Loss):
    """Cross entropy of two classes, of which the output has the scores."""

    name = "bce_with_logits"
    function = "binary_cross_entropy_with_logits"

    reduction: Reduction = "mean"


@dataclass(frozen=True, slots=True)
class KLDiv(Loss):
    """Kullback-Leibler divergence of the target from the output, which has logarithms. `batchmean` divides by the first dimension."""

    name = "kl_div"
    function = "kl_div"

    log_target: bool = False
    reduction: Literal["mean", "sum", "batchmean"] = "mean"


@dataclass(frozen=True, slots=True)
class ModelLoss(Loss):
    """The output of the model itself, which is its loss. The target is not read."""

    name = "model"

    def __call__(self, output: Any, target: Any) -> Any:
        return output


LOSSES: dict[str, type[Loss]] = {
    cls.name: cls for cls in (CrossEntropy, NLL, MSE, L1, SmoothL1, Huber, BCE, BCEWithLogits, KLDiv, ModelLoss)
}
"""The known losses by name."""


def as_loss(loss: str | LossFunction) -> LossFunction:
    """Return a loss of a text such as `cross_entropy:label_smoothing=0.1`, or of a function or module of the output and the target.

    Raise `TrainingError` for another text, and for what cannot be called with the two.
    """
    if isinstance(loss, str):
        return parse_text(loss, LOSSES, "loss", SEPARATOR, TrainingError)
    if isinstance(loss, type):
        raise TrainingError(f"the loss is the class `{loss.__name__}`", hint=f"make one: `{loss.__name__}()`")
    if not callable(loss):
        raise TrainingError(
            f"the loss is a `{type(loss).__name__}`", hint=f"give a function, a module, or one of {', '.join(LOSSES)}"
        )
    return loss


def require_scalar(loss: object) -> Tensor:
    """Return a loss that a function gave as a tensor without dimensions. Raise `TrainingError` for what is not a single real number."""
    import torch

    hint = 'make it one number, as by `.mean()`; if it is the loss of the model itself, the loss is "model"'
    if not isinstance(loss, torch.Tensor):
        raise TrainingError(f"the loss is a `{type(loss).__name__}`, not a tensor", hint=hint)
    if loss.numel() != 1:
        raise TrainingError(f"the loss has the shape {tuple(loss.shape)}", hint=hint)
    if not loss.is_floating_point():
        raise TrainingError(f"the loss has the type {loss.dtype}", hint="a gradient is of a floating-point number")
    return loss if loss.dim() == 0 else loss.reshape(())
