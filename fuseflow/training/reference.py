"""Training steps in PyTorch alone, with which those of a program are compared. They work on a copy of the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from fuseflow.errors import FuseFlowError, TrainingError, did_you_mean
from fuseflow.sparsity.weights import replica
from fuseflow.training.losses import require_scalar
from fuseflow.training.optimizers.optimizer import Optimizer
from fuseflow.training.spec import TrainingSpec

_ALONE = "the step must run in PyTorch alone"


@dataclass(frozen=True, slots=True)
class StepValues:
    """What a step computed, by the names of the model: parameters such as `layer1.weight`, buffers, and states of the optimizer such as
    `layer1.weight.momentum_buffer`.

    `gradients` are those of trained parameters, or None for one that the loss does not reach. No tensor shares memory with another step.
    """

    loss: Tensor
    gradients: Mapping[str, Tensor | None]
    parameters: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]
    states: Mapping[str, Tensor]

    @property
    def carried(self) -> dict[str, Tensor]:
        """What the next step begins with: parameters, buffers and states."""
        return {**self.parameters, **self.buffers, **self.states}

    @property
    def results(self) -> dict[str, Tensor]:
        """All values by the names that they have as results of a program: `loss`, `grad.layer1.weight`, `next.layer1.weight`."""
        gradients = {f"grad.{name}": gradient for name, gradient in self.gradients.items() if gradient is not None}
        return {"loss": self.loss, **gradients, **{f"next.{name}": value for name, value in self.carried.items()}}


class Reference:
    """Training steps of a model in PyTorch, each from values that it is given.

    The model runs in the mode, training or evaluation, in which it is. `masks` are the patterns of pruned weights by name, true where an
    entry is kept: elsewhere gradients, weights and states are 0. With a `dtype`, such as `torch.float64`, all real numbers of the
    model, of inputs and of targets have that type; without one, they keep theirs. Raise `TrainingError` if nothing is trained.
    """

    def __init__(
        self, model: nn.Module, spec: TrainingSpec, masks: Mapping[str, Tensor] | None = None, dtype: torch.dtype | None = None
    ) -> None:
        self._spec, self._dtype = spec, dtype
        with _pytorch_errors("copy the model"):
            self._model = replica(model)
            self._loss = replica(spec.loss) if isinstance(spec.loss, nn.Module) else spec.loss
        if dtype is not None:
            for module in (self._model, self._loss):
                if isinstance(module, nn.Module):
                    convert_floats(module, dtype)
        parameters = dict(self._model.named_parameters())
        self._trained = {name: parameters[name] for name in spec.trained(parameters) if parameters[name].requires_grad}
        if not self._trained:
            raise TrainingError("no parameter that has an optimizer requires a gradient", hint="call `requires_grad_()` on some")
        _require_names(masks or {}, parameters)
        # A weight that PyTorch stores sparse has a pattern of its own, and one that is not trained does not change.
        dense = {name for name, parameter in self._trained.items() if parameter.layout == torch.strided}
        self._masks = {name: mask for name, mask in (masks or {}).items() if name in dense}
        self._initial = self._values_of_model()

    @property
    def initial(self) -> dict[str, Tensor]:
        """Parameters and buffers of the model, and states before the first step, by name."""
        return dict(self._initial)

    def step(
        self,
        values: Mapping[str, Tensor],
        step: int,
        inputs: Sequence[Any] | Mapping[str, Any],
        target: Any = None,
        *,
        kwargs: Mapping[str, Any] | None = None,
        lr: float | Sequence[float] | None = None,
        random_state: Tensor | None = None,
    ) -> StepValues:
        """Return what step `step`, counted from 1, computes of `values`: parameters, buffers and states by name, as in `initial`.

        `inputs` are the arguments of the model, or a mapping of its keyword arguments, and `kwargs` are further ones. `lr` is as of
        `TrainingSpec.learning_rates`. Random numbers, as of dropout, are drawn from PyTorch's generator in the state `random_state`, or as
        it stands, and it is left as it was. Raise `TrainingError` if the loss is not one number, does not depend on a trained
        parameter, or PyTorch cannot compute the step.
        """
        self._load(values)
        rates = self._spec.learning_rates(lr)
        with (
            _pytorch_errors("compute this step", self._hint),
            _default_type(self._dtype),
            _generator(random_state),
            torch.enable_grad(),
        ):
            loss = self._backward(inputs, target, kwargs or {})
            gradients = {name: _copy(parameter.grad) for name, parameter in self._trained.items()}
            states = dict[str, Tensor]()
            for name in self._trained:
                place = self._spec.group_of(name) or 0
                states |= self._update(name, self._spec.groups[place].optimizer.with_lr(rates[place]), values, step)
        parameters = {name: parameter.detach().clone() for name, parameter in self._model.named_parameters()}
        buffers = {name: buffer.detach().clone() for name, buffer in self._model.named_buffers()}
        return StepValues(loss, gradients, parameters, buffers, states)

    def _values_of_model(self) -> dict[str, Tensor]:
        """Return parameters and buffers, which the model has now, and states before the first step. Pruned entries are 0."""
        values = {name: tensor.detach().clone() for name, tensor in self._tensors().items()}
        values |= self._spec.initial({name: parameter.detach() for name, parameter in self._trained.items()})
        for name, mask in self._masks.items():
            for full in (name, *self._spec.state_names(name)):
                values[full].masked_fill_(~mask, 0)
        return values

    def _load(self, values: Mapping[str, Tensor]) -> None:
        """Give the model parameters and buffers by name, and let it forget its gradients."""
        self._model.zero_grad()
        for name, tensor in self._tensors().items():
            value = stored_as(tensor.detach(), self._own(values[name]))
            if tensor.layout in (torch.strided, torch.sparse_coo):
                tensor.data = value
            else:
                tensor.detach().copy_(value)  # Other layouts ignore a new `data`.

    def _backward(self, inputs: Sequence[Any] | Mapping[str, Any], target: Any, kwargs: Mapping[str, Any]) -> Tensor:
        """Return the loss, and leave gradients with the parameters, which are 0 where a weight is pruned."""
        positional, named = ((), {**inputs, **kwargs}) if isinstance(inputs, Mapping) else (tuple(inputs), dict(kwargs))
        positional, named, target = pytree.tree_map(self._own, (positional, named, target))
        loss = require_scalar(self._loss(self._model(*positional, **named), target))
        if not loss.requires_grad:
            raise TrainingError("the loss does not depend on a trained parameter", hint="check what `forward` returns")
        loss.backward()  # type: ignore[no-untyped-call]
        for name, parameter in self._trained.items():
            if parameter.grad is not None and name in self._masks:
                parameter.grad = parameter.grad.to_dense().masked_fill(~self._masks[name], 0)
            elif parameter.grad is not None and parameter.layout != torch.strided:
                # PyTorch may return the dense gradient of a sparse weight, with which it updates nothing.
                parameter.grad = stored_as(parameter.detach(), parameter.grad)
        return loss.detach().clone()

    def _update(self, name: str, constants: Optimizer, values: Mapping[str, Tensor], step: int) -> dict[str, Tensor]:
        """Change a parameter as its optimizer does, and return its new states by name. Nothing changes if it has no gradient."""
        parameter, names = self._trained[name], self._spec.state_names(name)
        states = {full: stored_as(parameter.detach(), self._own(values[full])) for full in names}
        if parameter.grad is None:
            return states
        optimizer = constants.in_torch([parameter])
        optimizer.state[parameter] = constants.torch_state({key: states[full] for full, key in names.items()}, step)
        optimizer.step()
        new = {full: optimizer.state[parameter][key] for full, key in names.items()}
        if name in self._masks:
            for tensor in (parameter.data, *new.values()):
                tensor.masked_fill_(~self._masks[name], 0)
        return new

    @property
    def _hint(self) -> str:
        """What would work where PyTorch fails."""
        sparse = next((name for name, parameter in self._trained.items() if parameter.layout != torch.strided), None)
        if sparse is None:
            return _ALONE
        return f"PyTorch updates sparse parameters, such as `{sparse}`, by `sgd` alone; dense ones with a mask by every optimizer"

    def _tensors(self) -> dict[str, Tensor]:
        return {**dict(self._model.named_parameters()), **dict(self._model.named_buffers())}

    def _own(self, value: Any) -> Any:
        """Return a copy of a tensor, real numbers in the type of the steps, and any other value itself."""
        if not isinstance(value, Tensor):
            return value
        copy = value.detach().clone()
        return copy.to(self._dtype) if self._dtype is not None and copy.is_floating_point() else copy


def _require_names(masks: Mapping[str, Tensor], parameters: Mapping[str, Tensor]) -> None:
    """Raise `TrainingError` for a mask of no parameter."""
    for name in masks:
        if name not in parameters:
            raise TrainingError(f"the model has no parameter `{name}`, which has a mask", hint=did_you_mean(name, parameters))


def stored_as(pattern: Tensor, value: Tensor) -> Tensor:
    """Return a tensor in the layout of another one of its shape. A dense one gets the pattern of the other, if that is sparse."""
    if value.layout == pattern.layout:
        return value
    stored = value.sparse_mask(pattern.to_sparse(layout=torch.sparse_coo).coalesce())
    return stored if pattern.layout == torch.sparse_coo else stored.to_sparse(layout=pattern.layout)


def _copy(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach().clone()


@contextmanager
def _pytorch_errors(task: str, hint: str = _ALONE) -> Iterator[None]:
    """Raise what PyTorch or the user's model raises in the block as a `TrainingError` with the same words, which names the task."""
    try:
        yield
    except FuseFlowError:
        raise
    except Exception as error:
        words = str(error).partition("\n")[0] or type(error).__name__
        raise TrainingError(f"PyTorch cannot {task}: {words}", hint=hint) from error


@contextmanager
def _default_type(dtype: torch.dtype | None) -> Iterator[None]:
    """Let PyTorch make new tensors of real numbers with a type within the block, or leave it as it is for None."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype or before)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def _generator(state: Tensor | None) -> Iterator[None]:
    """Let PyTorch draw from a state of its generator within the block, or from the present one, and leave it as it was."""
    with torch.random.fork_rng(devices=[]):
        if state is not None:
            torch.set_rng_state(state)
        yield


_OWN = vars(nn.Module()).keys()
"""The attributes that a module has in any case."""


def convert_floats(model: nn.Module, dtype: torch.dtype) -> None:
    """Give all real numbers of a model the type `dtype`: parameters, buffers, and tensors in attributes. Tied tensors stay tied."""
    converted: dict[int, tuple[Tensor, Tensor]] = {}  # The old tensors are held, so that no new one gets the `id` of one of them.

    def new(old: Any) -> Any:
        if not isinstance(old, Tensor) or not old.is_floating_point():
            return old
        if id(old) not in converted:
            values = old.detach().to(dtype)
            converted[id(old)] = old, nn.Parameter(values, old.requires_grad) if isinstance(old, nn.Parameter) else values
        return converted[id(old)][1]

    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            tensors.update({name: new(tensor) for name, tensor in tensors.items()})
        attributes = {name: value for name, value in vars(module).items() if name not in _OWN}
        vars(module).update(pytree.tree_map(new, attributes))
