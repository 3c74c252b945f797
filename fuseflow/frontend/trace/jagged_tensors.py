"""Nested tensors in a trace: sequences of different lengths, one after the other in one tensor, between offsets.

PyTorch cannot trace them. So while a model is traced, `torch.nested.nested_tensor_from_jagged` gives a `JaggedTensor` in place of one. It
holds the values of all sequences, and what is computed of it is computed of these. Attention has a mask that keeps sequences apart.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.utils import _pytree as pytree

from fuseflow.errors import FrontendError
from fuseflow.frontend.trace import fx_origin

_HINT = "compute with its `values()` and `offsets()`"
_ELEMENTWISE = (torch.relu, torch.sigmoid, torch.tanh, torch.exp, F.relu, F.gelu, F.silu, F.dropout)
_ALONG_LAST = (F.linear, F.layer_norm, F.rms_norm)
"""Functions along the last dimension, which is none of the lengths, if it is not moved there."""


@contextmanager
def jagged_tensors() -> Iterator[None]:
    """Inside the block, nested tensors that are made of values and offsets are `JaggedTensor`."""
    with patch.object(torch.nested, "nested_tensor_from_jagged", _from_jagged):
        yield


def _from_jagged(
    values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None, *others: object, **named: object
) -> JaggedTensor:
    if (
        offsets is None
        or lengths is not None
        or named.get("jagged_dim", 1) not in (1, None)
        or any(other is not None for other in others[:1])
    ):
        raise _refused("made otherwise than of values and offsets along the first dimension")
    with disable_proxy_modes_tracing():
        rises = bool((offsets.diff() >= 0).all()) and int(offsets[0]) == 0 and int(offsets[-1]) == len(values)
    if not rises:
        raise _refused(f"whose offsets do not rise from 0 to the {len(values)} rows of its values")
    return JaggedTensor(values, offsets)


def _refused(what: str) -> FrontendError:
    return FrontendError(f"a nested tensor {what}, has no Einsum form", hint=_HINT, span=fx_origin.current_span())


@dataclass(frozen=True, slots=True, eq=False)
class JaggedTensor:
    """A nested tensor as its values, in which the dimension `rows` has the rows of all sequences. They begin and end at `ends`. The
    other dimensions are those of the nested tensor without its first one."""

    held: Tensor
    ends: Tensor
    rows: int = 0
    is_nested = True

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        if func is F.scaled_dot_product_attention:
            return _attention(*args, **options)
        (first, *_) = jagged = [leaf for leaf in pytree.tree_leaves((args, options)) if isinstance(leaf, JaggedTensor)]
        is_along_rows = func in _ALONG_LAST and first.rows == first.held.dim() - 1
        if func not in (*_ELEMENTWISE, *_ALONG_LAST) or len(jagged) > 1 or is_along_rows:
            raise _refused(f"in `{getattr(func, '__name__', func)}`")
        return first._with(func(*pytree.tree_map_only(JaggedTensor, lambda x: x.held, args), **options))

    def values(self) -> Tensor:
        """Return the values of all sequences."""
        return self.held.movedim(self.rows, 0)

    def offsets(self) -> Tensor:
        """Return where each sequence begins, and where the last one ends."""
        return self.ends

    def dim(self) -> int:
        """Return the number of dimensions of the nested tensor."""
        return self.held.dim() + 1

    def transpose(self, dim0: int, dim1: int) -> JaggedTensor:
        """Exchange two dimensions, neither of which is that of the sequences."""
        first, second = self._inner(dim0), self._inner(dim1)
        rows = {first: second, second: first}.get(self.rows, self.rows)
        return JaggedTensor(self.held.transpose(first, second), self.ends, rows)

    def unflatten(self, dim: int, sizes: Sequence[int]) -> JaggedTensor:
        """Divide a dimension behind the rows of a sequence."""
        return self._with(torch.unflatten(self.held, self._behind(dim), list(sizes)))

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> JaggedTensor:
        """Merge dimensions behind the rows of a sequence."""
        return self._with(self.held.flatten(self._behind(start_dim), self._behind(end_dim)))

    def __add__(self, other: object) -> JaggedTensor:
        return self._combined(operator.add, other)

    def __mul__(self, other: object) -> JaggedTensor:
        return self._combined(operator.mul, other)

    __radd__, __rmul__ = __add__, __mul__

    def _combined(self, function: Callable[[Tensor, Any], Tensor], other: object) -> JaggedTensor:
        if isinstance(other, JaggedTensor) and (other.ends is not self.ends or other.rows != self.rows):
            raise _refused("beside one with other offsets or another order of dimensions")
        return self._with(function(self.held, other.held if isinstance(other, JaggedTensor) else other))

    def _with(self, held: Tensor) -> JaggedTensor:
        return JaggedTensor(held, self.ends, self.rows)

    def _inner(self, dim: int) -> int:
        """Return the dimension of the values for a dimension of the nested tensor."""
        inner = dim % self.dim() - 1
        if inner < 0:
            raise _refused("along the dimension of its sequences")
        return inner

    def _behind(self, dim: int) -> int:
        inner = self._inner(dim)
        if inner <= self.rows:
            raise _refused("divided or merged along its rows")
        return inner


def _attention(query: Any, key: Any, value: Any, attn_mask: object = None, **options: Any) -> JaggedTensor:
    """Return the attention inside of each sequence."""
    alike = all(isinstance(x, JaggedTensor) and x.ends is query.ends and x.rows == x.held.dim() - 2 for x in (query, key, value))
    if attn_mask is not None or any(options.get(option) for option in ("dropout_p", "is_causal")) or not alike:
        raise _refused("in attention with a mask, with other offsets, or with rows that are not the last dimension but one")
    sequence = (torch.arange(query.held.shape[-2]).unsqueeze(-1) >= query.ends[1:-1]).sum(-1)
    mask = sequence.unsqueeze(-1) == sequence
    q, k, v = (x.held.unsqueeze(0) for x in (query, key, value))
    attended = F.scaled_dot_product_attention(q, k, v, mask, **options)
    return JaggedTensor(attended.squeeze(0), query.ends, query.rows)
