"""Hooks on gradients: functions of the user that PyTorch calls in the backward pass, which no formula stands for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from fuseflow.errors import TrainingError


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
