"""The state after steps of training, as the parameters and buffers of a PyTorch model and the state of its optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fuseflow.errors import UsageError, did_you_mean
from fuseflow.tensors import Tensor

if TYPE_CHECKING:
    import torch


def load_state(state: Mapping[str, Tensor], steps: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
    """Write the state after some steps into a model, and into an optimizer if there is one: `layer.weight` is a parameter or a buffer, and
    `layer.weight.momentum_buffer` a state of it. Optimizers that count their steps count these, too.

    Raise `UsageError` for a name that is none of the model, and for another number of elements.
    """
    import torch

    from fuseflow.training.reference import stored_as  # loads PyTorch, too

    parameters = dict(model.named_parameters())
    held = {**parameters, **dict(model.named_buffers())}
    loaded = dict[str, torch.Tensor]()  # all are checked before the first is written
    for name, tensor in state.items():
        like = held.get(name, parameters.get(_owner(name, parameters)))
        if like is None:
            raise UsageError(f"the model has no parameter or buffer `{name}`", hint=did_you_mean(name, held))
        if like.numel() != tensor.to_dense().size:
            raise UsageError(f"`{name}` has the shape {list(like.shape)} in the model, and {list(tensor.shape)} in the program")
        loaded[name] = stored_as(like.detach(), torch.from_numpy(tensor.to_dense()).reshape(like.shape).to(like.dtype))
    with torch.no_grad():
        for name in loaded.keys() & held.keys():
            held[name].copy_(loaded[name])
    if optimizer is None:
        return
    for name in loaded.keys() - held.keys():
        owner = _owner(name, parameters)
        optimizer.state[parameters[owner]][name.removeprefix(f"{owner}.")] = loaded[name]
    if not isinstance(optimizer, torch.optim.SGD):
        for name in loaded.keys() & parameters.keys():
            counted = optimizer.state[parameters[name]]
            counted["step"] = counted.get("step", torch.tensor(0.0)) + steps


def _owner(name: str, parameters: Mapping[str, torch.Tensor]) -> str:
    """Return the longest name of a parameter that a state has before its own, or '' if there is none."""
    return max((parameter for parameter in parameters if name.startswith(f"{parameter}.")), key=len, default="")
