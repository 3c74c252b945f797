"""Movements of data by positions that are no offsets, such as repetition by counts and reflection. Each is a product with a selection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.known_positions import Handler
from fuseflow.frontend.positions.selections import Selections, described, gathered, reshaped


def _repeat_interleave(
    selections: Selections, node: Node, x: Node, repeats: Node | int, dim: int | None = None, **_: Any
) -> Node | None:
    counts = torch.tensor(repeats) if isinstance(repeats, int) else selections.known(repeats)
    if not isinstance(dim, int) or counts is None:
        return None
    return _each(selections, node, x, {dim: torch.arange(_extent(x, dim)).repeat_interleave(counts)})


def _pad(selections: Selections, node: Node, x: Node, pad: Sequence[int], mode: str = "constant", *_: Any) -> Node | None:
    """Return the replacement of padding with elements of the tensor itself, by reflection for example. `pad` has two numbers for
    each dimension, the last dimension first. Padding with a number is an index with an offset."""
    if mode == "constant":
        return None
    positions: dict[int, Tensor] = {}
    for n in range(len(pad) // 2):
        dim = described(x).dim() - 1 - n
        numbers = torch.arange(_extent(x, dim), dtype=torch.float64).reshape(1, 1, -1)
        positions[dim] = torch.nn.functional.pad(numbers, (pad[2 * n], pad[2 * n + 1]), mode=mode).reshape(-1).to(torch.int64)
    return _each(selections, node, x, positions)


def _each(selections: Selections, node: Node, x: Node, positions: dict[int, Tensor]) -> Node | None:
    """Return the rows at known positions along several dimensions, one after the other."""
    if not _is_number(x):
        return None
    for dim, at in positions.items():
        x = gathered(selections, node, x, dim % described(x).dim(), at)
    return reshaped(selections, node, x, described(node).shape)


def _extent(x: Node, dim: int) -> int:
    return int(described(x).shape[dim])


def _is_number(x: Node) -> bool:
    return described(x).dtype != torch.bool


MOVEMENTS: dict[str, Handler] = {"repeat_interleave": _repeat_interleave, "pad": _pad}
"""The replacement of each operator, by its name."""
