"""Causal attention: the flag becomes a mask that stores only the positions that are attended to."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from fuseflow.frontend.positions.known_positions import Handler
from fuseflow.frontend.positions.selections import Selections, described, named


def _attention(
    selections: Selections,
    node: Node,
    query: Node,
    key: Node,
    value: Node,
    mask: Node | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    **others: Any,
) -> Node | None:
    if not causal or mask is not None:
        return None
    attended = torch.ones(described(query).shape[-2], described(key).shape[-2], dtype=torch.bool).tril()
    mask = selections.mask(attended, named(node, "causal"))
    return selections.valued(node, described(node), node.target, (query, key, value, mask, dropout, False), **others)


CAUSAL: dict[str, Handler] = {"scaled_dot_product_attention": _attention}
"""For each operator with a causal flag, by name, what replaces it."""
