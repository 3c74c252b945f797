"""Causal attention: the flag becomes a mask of which only what is attended to is stored."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from fuseflow.frontend.known_positions import Handler
from fuseflow.frontend.selections import Selections, call_arguments, described, named


def _attention(selections: Selections, node: Node) -> Node | None:
    query, key, value = call_arguments(node, "query", "key", "value")
    arguments: list[Any] = [*node.args[3:], *(None, 0.0, False)[len(node.args) - 3 :]]
    mask, dropout, causal = (
        node.kwargs.get(n, a) for n, a in zip(("attn_mask", "dropout_p", "is_causal"), arguments, strict=True)
    )
    if not causal or mask is not None:
        return None
    attended = torch.ones(described(query).shape[-2], described(key).shape[-2], dtype=torch.bool).tril()
    mask = selections.mask(attended, named(node, "causal"))
    others = {name: value for name, value in node.kwargs.items() if name in ("scale", "enable_gqa")}
    return selections.call(node, node.target, (query, key, value, mask, dropout, False), described(node).shape, **others)


CAUSAL: dict[str, Handler] = {"scaled_dot_product_attention": _attention}
"""For each operator with a causal flag, by name, what replaces it."""
