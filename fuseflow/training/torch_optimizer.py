"""Optimizers of PyTorch: the constants of their groups, and the states with which a training step begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer as TorchOptimizer
from torch.optim import optimizer as torch_optimizer

from fuseflow.errors import TrainingError, counted
from fuseflow.sparsity.training.holding import Handle
from fuseflow.training.optimizers.formulas import OPTIMIZERS, AdamW
from fuseflow.training.optimizers.optimizer import Optimizer
from fuseflow.training.spec import Group

FORMULAS: dict[type, type[Optimizer]] = {getattr(torch.optim, cls.torch_name): cls for cls in OPTIMIZERS.values()}
"""The optimizers that have a formula, by PyTorch's classes."""
_KNOWN = "those that have one are " + ", ".join(f"`torch.optim.{cls.__name__}`" for cls in FORMULAS)


@dataclass(frozen=True, slots=True)
class OptimizerState:
    """An optimizer of PyTorch at some step.

    `groups` are its groups in their order, without parameters that need no gradient. `states` are its tensors, by names such as
    `layer1.weight.momentum_buffer`; states that it makes in its first step are not among them. `steps` says how many steps each
    parameter has taken. `SGD` does not count them: it is 1 if there is a momentum, and 0 otherwise.
    """

    groups: tuple[Group, ...]
    states: Mapping[str, Tensor]
    steps: Mapping[str, int]

    def steps_before(self, parameters: Iterable[str]) -> int:
        """Return how many steps the optimizer has taken of parameters, which are those that the loss reaches.

        Raise `TrainingError` if numbers of a step depend on that, and parameters have taken different numbers of steps.
        """
        counting = set[str]().union(*(group.parameters or () for group in self.groups if group.optimizer.counts_steps))
        names = [name for name in parameters if name in self.steps]
        counted_names = [name for name in names if name in counting]
        steps = {self.steps[name]: name for name in counted_names or names}
        if counted_names and len(steps) > 1:
            (most, one), (least, other) = max(steps.items()), min(steps.items())
            raise TrainingError(
                f"the optimizer has taken {counted(most, 'step')} of `{one}` and {counted(least, 'step')} of `{other}`",
                hint="begin with an optimizer that has taken equally many of all, such as a new one",
            )
        return max(steps, default=0)


def read_optimizer(optimizer: object, model: nn.Module) -> OptimizerState:
    """Return the groups, the states and the steps of an optimizer of PyTorch for the parameters of a model. Nothing is changed or shared.

    Options that change no values (`foreach`, `fused`, `capturable`, `differentiable`) do not count. Raise `TrainingError` for an optimizer
    without a formula, for one that does more in a step than its class, and for parameters that are not of the model.
    """
    known = _require_formula(optimizer)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups, states, steps = list[Group](), dict[str, Tensor](), dict[str, int]()
    for place, group in enumerate(known.param_groups):
        constants = _constants(type(known), group)
        trained = []
        for parameter in group["params"]:
            name = _name(parameter, place, names)
            if name in steps:
                raise TrainingError(f"the parameter `{name}` is in two groups of the optimizer", hint="keep one of them")
            state = known.state.get(parameter, {})
            steps[name] = int(state.get("step", state.get("momentum_buffer") is not None))
            if parameter.requires_grad:
                trained.append(name)
            for key in constants.state_names:
                if state.get(key) is not None:
                    states[f"{name}.{key}"] = state[key].detach().clone()
        groups.append(Group(constants, frozenset(trained)))
    return OptimizerState(tuple(groups), states, steps)


def _require_formula(optimizer: object) -> TorchOptimizer:
    """Return an optimizer whose steps are those of a class that has a formula. Raise `TrainingError` for another one."""
    kind = type(optimizer)
    if isinstance(optimizer, Sequence) and not isinstance(optimizer, str):
        hint = "a training step has one; parameters with constants of their own are groups of it"
        raise TrainingError(f"there are {counted(len(optimizer), 'optimizer')}", hint=hint)
    if isinstance(optimizer, torch.amp.GradScaler):
        raise TrainingError("a `GradScaler` scales the loss, which is not scaled here", hint="pass the optimizer without it")
    if isinstance(optimizer, torch.optim.lr_scheduler.LRScheduler):
        hint = "pass its optimizer; the learning rate is an input of each step"
        raise TrainingError(f"`{kind.__name__}` is a schedule of learning rates, and no optimizer", hint=hint)
    if not isinstance(optimizer, TorchOptimizer):
        raise TrainingError(f"`{kind.__name__}` is no optimizer of PyTorch", hint=_KNOWN)
    if kind not in FORMULAS:
        parent = next((base.__name__ for base in kind.__mro__ if base in FORMULAS), None)
        reason = f"is a subclass of `{parent}`, whose steps may be others" if parent else "has no formula"
        raise TrainingError(f"the optimizer `{kind.__name__}` {reason}", hint=_KNOWN)
    step = vars(optimizer).get("step")
    if step is not None and not hasattr(step, "_wrapped_by_lr_sched"):
        raise TrainingError(f"the `step` of this `{kind.__name__}` was replaced", hint="make a new optimizer")
    _require_no_step_hooks(optimizer)
    return optimizer


def _require_no_step_hooks(optimizer: TorchOptimizer) -> None:
    """Raise `TrainingError` for hooks on the steps of an optimizer, but for those that hold fixed masks of sparse weights."""
    own = (optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks)
    of_all = (torch_optimizer._global_optimizer_pre_hooks, torch_optimizer._global_optimizer_post_hooks)
    hooks: list[Any] = [hook for place in (*own, *of_all) for hook in place.values()]
    for hook in hooks:
        owner = getattr(hook, "__self__", None)
        if not isinstance(owner, Handle):
            message = f"the hook `{hook_name(hook)}` runs with each step of the optimizer, and has no formula"
            raise TrainingError(message, hint="remove it, or do before and after the steps what it does")
        if not owner.is_fixed:
            message = "the handle on the optimizer changes masks or gradients while the model trains"
            raise TrainingError(message, hint='attach with `when="fixed"`, and a rule that needs no training')


def _constants(kind: type, group: Mapping[str, Any]) -> Optimizer:
    """Return the constants of a group of an optimizer of a class of PyTorch."""
    if "base_momentum" in group:
        hint = "make it with `cycle_momentum=False`; the learning rate alone is an input of each step"
        raise TrainingError("a schedule of the optimizer changes its momentum, which is a constant here", hint=hint)
    return (AdamW if group.get("decoupled_weight_decay") else FORMULAS[kind]).of_group(group)


def _name(parameter: Tensor, group: int, names: Mapping[int, str]) -> str:
    """Return the name of a parameter of a group of an optimizer. `names` are those of the model's parameters by their `id`."""
    if id(parameter) in names:
        return names[id(parameter)]
    raise TrainingError(
        f"the optimizer has a parameter of shape {list(parameter.shape)} in group {group} that is not of the model",
        hint="make the optimizer of `model.parameters()`, after the model was moved or copied",
    )


def require_no_gradient_hooks(model: nn.Module) -> None:
    """Raise `TrainingError` for a parameter or a module of a model that has a hook on its gradient."""
    for name, hook in _hooks(model):
        hint = "remove it; gradients of pruned weights are masked by `fuseflow.sparsity.attach`"
        raise TrainingError(f"{name} has the hook `{hook_name(hook)}` on its gradient, which has no formula", hint=hint)


def _hooks(model: nn.Module) -> Iterator[tuple[str, Any]]:
    for name, parameter in model.named_parameters():
        for hooks in (parameter._backward_hooks, parameter._post_accumulate_grad_hooks):
            yield from ((f"the parameter `{name}`", hook) for hook in (hooks or {}).values())
    for name, module in model.named_modules():
        for hooks in (module._backward_hooks, module._backward_pre_hooks):
            yield from ((f"the module `{name}`" if name else "the model", hook) for hook in hooks.values())


def hook_name(hook: Any) -> str:
    """Return the name of a hook, for messages."""
    name: str = getattr(hook, "__qualname__", type(hook).__name__)
    return name
