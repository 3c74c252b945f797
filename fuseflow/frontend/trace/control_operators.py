"""PyTorch's operators of control flow, run as Python while a model is traced: `torch.cond`, `while_loop`, `scan` and `map`.

Both branches of `torch.cond` are computed, and its result is chosen element by element. So it may depend on data, as `torch.where` may. A
scan and a map have as many steps as a tensor has rows. Only the end of a `while_loop` is read out of its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch._higher_order_ops import utils
from torch.utils import _pytree as pytree


@contextmanager
def called_directly() -> Iterator[None]:
    """Let the functions of PyTorch call their operators without compiling what these call."""

    def call(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Any:
        return function(*args, **(kwargs or {}))

    with patch.object(utils, "_hop_compile_and_call", call):
        yield


def _either(condition: Tensor, first: Callable[..., Any], second: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    def chosen(a: Any, b: Any) -> Any:
        return torch.where(condition.reshape(()), a, b) if isinstance(a, Tensor) else a

    return pytree.tree_map(chosen, first(*operands), second(*operands))


def _repeated(
    condition: Callable[..., Any], body: Callable[..., Any], carried: Sequence[Any], additional: Sequence[Any] = (), **_: Any
) -> Any:
    while condition(*carried, *additional):
        carried = pytree.tree_leaves(body(*carried, *additional))
    return tuple(carried)


def _scanned(
    step: Callable[..., Any], carried: Sequence[Any], rows: Sequence[Tensor], additional_inputs: Sequence[Any] = ()
) -> Any:
    collected = []
    for row in zip(*rows, strict=True):
        results = pytree.tree_leaves(step(*carried, *row, *additional_inputs))
        carried, results = results[: len(carried)], results[len(carried) :]
        collected.append(results)
    return (*carried, *map(torch.stack, zip(*collected, strict=True)))


def _mapped(function: Callable[..., Any], rows: Sequence[Tensor], additional: Sequence[Any] = ()) -> Any:
    results = [function(*row, *additional) for row in zip(*rows, strict=True)]
    return pytree.tree_map(lambda *parts: torch.stack(parts), *results)


RUN_AS_PYTHON: dict[str, Callable[..., Any]] = {"cond": _either, "while_loop": _repeated, "scan": _scanned, "map_impl": _mapped}
"""A function that does what an operator does, by the name of the operator."""
