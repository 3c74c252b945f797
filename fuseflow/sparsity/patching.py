"""Functions that read the memory of tensors, which packed tensors do not have: they get dense copies, whichever module holds them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fuseflow.errors import SparsityError
from fuseflow.sparsity.dispatch.argument_binding import operator_name
from fuseflow.sparsity.packed import PackedTensor, read_back, report_dense

_HEAP_TYPE = 1 << 9  # The flag of classes whose attributes can be set, among `type.__flags__`.


def patch(
    old: Callable[..., Any], new: Callable[..., Any] | None = None, module_scope: Iterable[ModuleType] | None = None
) -> ExitStack:
    """Replace a function in all modules that hold it, and in their classes. `module_scope` are the modules, or None for PyTorch's.

    Without `new`, the function gets dense copies of packed tensors, and its changes of these are read back at their places. `close()` of
    the result undoes it, and so does the end of a `with` block. Raise `SparsityError` if no module holds the function.
    """
    of_torch = (module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "torch")
    modules = of_torch if module_scope is None else module_scope
    places = {(id(holder), name): holder for module in modules for holder, name in _places(module, old)}
    if not places:
        raise SparsityError(
            f"no module holds `{operator_name(old)}`",
            hint="import the module first, and name it in `module_scope` if it is not PyTorch's",
        )
    undo = ExitStack()
    for (_, name), holder in places.items():
        undo.callback(setattr, holder, name, old)
        setattr(holder, name, new or _on_dense_copies(old))
    return undo


def _places(module: ModuleType, function: Callable[..., Any]) -> Iterator[tuple[Any, str]]:
    """Yield the modules and classes that hold a function, with the name that it has there."""
    for name, value in list(vars(module).items()):
        if value is function:
            yield module, name
        elif issubclass(type(value), type) and value.__flags__ & _HEAP_TYPE:
            yield from ((value, member) for member, content in list(vars(value).items()) if content is function)


def _on_dense_copies(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs another one on dense copies of packed tensors."""

    @functools.wraps(function)
    def on_dense_copies(*args: Any, **kwargs: Any) -> Any:
        copies: dict[int, tuple[PackedTensor, torch.Tensor]] = {}

        def dense(leaf: Any) -> Any:
            if not isinstance(leaf, PackedTensor):
                return leaf
            copy = leaf.stored_dense().clone()
            copies[id(copy)] = leaf, copy
            return copy

        values, named = pytree.tree_map(dense, (args, kwargs))
        if copies:
            report_dense(function, args, kwargs)
        result = function(*values, **named)
        for tensor, copy in copies.values():
            if not torch.equal(copy, tensor.stored_dense()):
                read_back(tensor, copy)
        return pytree.tree_map(lambda leaf: copies[id(leaf)][0] if id(leaf) in copies else leaf, result)

    return on_dense_copies
