"""The types to which autocast casts the tensors of a call. Only PyTorch knows which operators it casts, so PyTorch is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode


class _Casts(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that notes the casts of autocast: the new type of each tensor, by its `id`. The operator itself does not run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.types: dict[int, torch.dtype] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        if func is not torch.ops.aten._to_copy.default:
            raise _Stop
        self.types[id(args[0])] = (kwargs or {})["dtype"]
        return args[0]


class _Stop(Exception):
    """Raised where autocast is done and the operator itself would run now."""


def autocast(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with the types in which autocast would run it on dense tensors. Casts have gradients."""
    if not torch._C._is_any_autocast_enabled():
        return args, kwargs
    leaves, structure = pytree.tree_flatten((args, kwargs))
    shadows = [_shadow(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    casts = _casts(function, *pytree.tree_unflatten(shadows, structure))
    cast = [leaf.to(casts[id(shadow)]) if id(shadow) in casts else leaf for leaf, shadow in zip(leaves, shadows, strict=True)]
    result: tuple[tuple[Any, ...], dict[str, Any]] = pytree.tree_unflatten(cast, structure)
    return result


def _casts(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, torch.dtype]:
    casts = _Casts()
    try:
        with torch._C.DisableTorchFunction(), casts:
            function(*args, **kwargs)
    except Exception:  # Nothing was computed. The execution of a faulty call raises its error.
        pass
    return casts.types


def _shadow(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same shape, type and device that takes no memory."""
    return torch.empty((), dtype=tensor.dtype, device=tensor.device).expand(tensor.shape)
