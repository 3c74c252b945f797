"""FlexAttention in a trace: the user's functions of one score and of one place are called once, for all scores.

PyTorch calls `score_mod(score, b, h, q_idx, kv_idx)` and `mask_mod(b, h, q_idx, kv_idx)` through `vmap`, or compiles them, and records
one operator with a graph inside. Here each function gets a tensor of all batches, heads, queries and keys along a dimension of its own,
which broadcast. So its operators are in the trace as if the model had written them.

A place counts if its mask_mod says so and the `BlockMask` lists its block, as partial or as full. Eager FlexAttention reads the mask_mod
alone, and compiled code reads it in partial blocks alone. They differ where the two say different things, as lists without a mask_mod do;
so the eager one gets a mask_mod that looks into the lists.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch._higher_order_ops.flex_attention import FlexAttentionHOP
from torch.library import custom_op
from torch.nn.attention import flex_attention
from torch.nn.attention.flex_attention import BlockMask
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

_PLACES = 4
"""The dimensions of a score: batch, head, query and key."""


@custom_op("fuseflow::masked_scores", mutates_args=())
def masked_scores(scores: Tensor, mask: Tensor, block: Sequence[int]) -> Tensor:
    """Return scores with -inf where a mask is false. The mask was made in blocks of `block` queries and keys."""
    return torch.where(mask, scores, -math.inf)


@masked_scores.register_fake
def _(scores: Tensor, mask: Tensor, block: Sequence[int]) -> Tensor:
    return torch.empty_like(scores)


_as_tuple: Callable[..., tuple[Any, ...]] = BlockMask.as_tuple


@contextmanager
def uncompiled() -> Iterator[None]:
    """Inside the block, what `torch.compile` returned runs as the user wrote it, and so does FlexAttention. Dynamo, which these call
    otherwise, cannot be traced, and stays broken after a counter of operators made it fail once."""
    with (
        torch.compiler.set_stance("force_eager"),
        torch._dynamo.config.patch(error_on_nested_fx_trace=False),
        patch.object(flex_attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True),
        patch.object(BlockMask, "as_tuple", _with_listed_blocks),
    ):
        yield


@contextmanager
def broadcast_flex_attention() -> Iterator[None]:
    """Inside the block, FlexAttention and the constructors of its masks call the functions of the user once, on tensors of all places."""
    with (
        patch.object(FlexAttentionHOP, "__call__", _attention),
        patch.object(flex_attention, "_vmap_for_bhqkv", _at_all_places),
        patch.object(flex_attention, "_ordered_to_dense", _blocks),
        patch.object(BlockMask, "as_tuple", _with_listed_blocks),
        patch("torch._dynamo._trace_wrapped_higher_order_op.TransformGetItemToIndex", nullcontext),
    ):
        yield


def _attention(
    _operator: object,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor],
    block_mask: tuple[Any, ...],
    scale: float,
    _kernel_options: object,
    score_buffers: tuple[Any, ...] = (),
    mask_buffers: tuple[Any, ...] = (),
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the attention, and of each row the logarithm of the sum of its exponentials and the largest score, both to base 2, as the
    operator does."""
    key, value = (_for_each_query_head(x, query) for x in (key, value))
    wide = torch.promote_types(query.dtype, torch.float32)
    scores = (query.to(wide) @ key.to(wide).transpose(-2, -1)) * scale
    places = list(map(torch.arange, scores.shape))
    *_, query_block, key_block, mask_mod = block_mask
    scores = _at_all_places(score_mod, prefix=(0,))(scores, *places, *score_buffers).to(wide)
    mask = _at_all_places(mask_mod)(*places, *mask_buffers)
    scores = masked_scores(scores, mask, [query_block, key_block])
    weights = torch._safe_softmax(scores, -1)
    to_base_2 = 1 / math.log(2)
    return weights.to(query.dtype) @ value, scores.logsumexp(-1) * to_base_2, scores.amax(-1) * to_base_2


def _for_each_query_head(x: Tensor, query: Tensor) -> Tensor:
    """Return keys or values for every batch and head of the queries, which may share them."""
    (batch, queries, *_), (_, heads, *shape) = query.shape, x.shape
    x = x.expand(batch, heads, *shape)
    if heads == queries:
        return x
    return x.unsqueeze(2).expand(batch, heads, queries // heads, *shape).reshape(batch, queries, *shape)


def _at_all_places(
    function: Callable[..., Tensor], prefix: Sequence[int | None] = (), *_: object, **__: object
) -> Callable[..., Tensor]:
    """Return a function of a score and a place, or of a place, as a function of all scores (the operand of a `prefix`) and of the numbers
    of the batches, heads, queries and keys. Its result has their four dimensions."""

    def call(*operands: Any) -> Tensor:
        first = len(prefix)
        places, buffers = operands[first : first + _PLACES], operands[first + _PLACES :]
        with _PlacesFirst():
            result = function(*operands[:first], *_apart(places), *buffers)
        return result.expand([len(numbers) for numbers in places])

    return call


def _apart(places: Iterable[Tensor]) -> list[Tensor]:
    """Return four vectors as tensors of four dimensions, each along its own one."""
    return [vector.reshape([-1 if d == at else 1 for d in range(_PLACES)]) for at, vector in enumerate(places)]


def _with_listed_blocks(mask: BlockMask, flatten: bool = True) -> tuple[Any, ...]:
    """Return the attributes of a mask as PyTorch does, but with a mask_mod that looks into the lists of blocks if these say something
    else."""
    lists = [(mask.kv_num_blocks, mask.kv_indices), (mask.full_kv_num_blocks, mask.full_kv_indices)]
    blocks = sum(_blocks(n, columns, columns.shape[-1]) for n, columns in lists if n is not None and columns is not None)
    assert isinstance(blocks, Tensor)
    query_block, key_block = mask.BLOCK_SIZE

    def listed(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        block = b % len(blocks), h % blocks.shape[1], q_idx // query_block, kv_idx // key_block
        return (blocks[block] > 0) & mask.mask_mod(b, h, q_idx, kv_idx)

    places = list(map(torch.arange, (*blocks.shape[:2], *mask.seq_lengths)))
    with _disable_current_modes():  # what the two say of these numbers is not a part of the model
        same = torch.equal(_at_all_places(mask.mask_mod)(*places), _at_all_places(listed)(*places))
    return _as_tuple(mask, flatten) if same else (*_as_tuple(mask, flatten)[:-1], listed)


def _blocks(counts: Tensor, columns: Tensor, extent: int) -> Tensor:
    """Return which of `extent` blocks each row lists: the first `counts` of `columns`. PyTorch computes it by `vmap`, which records
    nothing."""
    listed = torch.arange(columns.shape[-1]) < counts.unsqueeze(-1)
    return ((columns.unsqueeze(-1) == torch.arange(extent)) & listed.unsqueeze(-1)).any(-2).to(torch.int32)


class _PlacesFirst(TorchFunctionMode):
    """While it is active, an index into a row that was taken for each place, as in `table[q_idx][kv_idx]`, takes an element of that row.
    The dimensions of the places are the first ones of such rows."""

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is Tensor.__getitem__ and args[0].dim() > _PLACES:
            rows, index = args
            args = rows, (*_apart(map(torch.arange, rows.shape[:_PLACES])), *(index if isinstance(index, tuple) else (index,)))
        return func(*args, **(kwargs or {}))
