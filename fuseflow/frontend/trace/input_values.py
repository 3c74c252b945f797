"""The memory that holds numbers of a user's inputs, or what PyTorch computes from them, while a model is traced.

A trace records the operators that a model calls. Inside of a function transform (`torch.func.vmap`, `grad`), in a backward pass, and in
code that reads memory, PyTorch computes without them. The results of that would be constants of the graph, and the graph would be right
for one input alone. This module knows such results, because every computation goes through the dispatcher of PyTorch at last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from fuseflow.frontend.torch_tensors import COLUMN_LAYOUTS, ROW_LAYOUTS, compressed_indices


class InputValues(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is active, it follows the numbers of the tensors that are added through all that PyTorch computes."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._memories = set[StorageWeakRef]()

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Let parts of a model that are compiled, such as FlexAttention, compile as they do without this mode."""
        return True

    def add(self, tensors: Iterable[Tensor]) -> None:
        self._memories.update(memory for tensor in tensors for memory in _memories(tensor))

    def holds(self, tensor: Tensor) -> bool:
        """Return whether the memory of a tensor holds an added one, or what was computed from one."""
        return not self._memories.isdisjoint(_memories(tensor))

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        results = func(*args, **kwargs)
        read = {memory for tensor in _tensors((args, kwargs)) for memory in _memories(tensor)}
        if not self._memories.isdisjoint(read):
            given = {memory for tensor in _tensors(results) for memory in _memories(tensor)}
            if isinstance(func, torch._ops.OpOverload) and not func._schema.is_mutable:
                given -= read  # a sparse tensor holds the places that it is made from
            self._memories |= given
            self.add(_written(func, args))
        return results


def _tensors(values: Any) -> Iterator[Tensor]:
    return (leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, Tensor))


def _written(func: Any, args: tuple[Any, ...]) -> Iterator[Tensor]:
    """Yield the tensors that an operator writes to, if it returns none of them."""
    if isinstance(func, torch._ops.OpOverload) and not func._schema.returns:
        for argument, value in zip(func._schema.arguments, args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                yield from _tensors(value)


def _memories(tensor: Tensor) -> Iterator[StorageWeakRef]:
    """Yield the memory of a tensor, or of each part of a sparse one. A nested tensor has none that PyTorch tells."""
    if tensor.layout == torch.strided:
        yield _memory(tensor)
    elif tensor.layout == torch.sparse_coo:
        yield from map(_memory, (tensor._indices(), tensor._values()))
    elif tensor.layout in (*ROW_LAYOUTS, *COLUMN_LAYOUTS):
        yield from map(_memory, (*compressed_indices(tensor), tensor.values()))


def _memory(tensor: Tensor) -> StorageWeakRef:
    return StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
