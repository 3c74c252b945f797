"""Calls of operators in an exported graph, which can be run on other tensors than the model's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.utils import _pytree as pytree


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that an operator is called with: the name of the argument, and the node that computes the tensor."""

    argument: str
    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class OperatorCall:
    """A call of an operator. `leaves` and `structure` are its arguments in the order of the signature, with the defaults of
    positional ones. `places` says which of the leaves are the `operands`. `results` describes the tensors that it computes."""

    node: Node
    operands: tuple[Operand, ...]
    results: tuple[Tensor, ...]
    leaves: tuple[Any, ...]
    structure: pytree.TreeSpec
    places: tuple[int, ...]

    @property
    def target(self) -> torch._ops.OpOverload:
        """The operator."""
        assert isinstance(self.node.target, torch._ops.OpOverload)
        return self.node.target

    def arguments(self, replacements: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments by position and by name, with replacements for the operands."""
        leaves = list(self.leaves)
        for place, replacement in zip(self.places, replacements, strict=True):
            leaves[place] = replacement
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        return tuple(args), kwargs

    def run(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Run the operator on other tensors in the place of its operands."""
        args, kwargs = self.arguments(self.laid_out(tensors))
        return tuple(leaf for leaf in pytree.tree_leaves(self.target(*args, **kwargs)) if isinstance(leaf, Tensor))

    def laid_out(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return tensors in the memory layout that the operands have in the model, which views depend on."""
        return [in_layout_of(t, operand.node.meta["val"]) for t, operand in zip(tensors, self.operands, strict=True)]


def operator_call(node: Node) -> OperatorCall:
    """Return a node of a graph as a call of an operator."""
    assert isinstance(node.target, torch._ops.OpOverload)
    args, kwargs = _bound(node.target._schema.arguments, node.args, node.kwargs)
    paths, structure = pytree.tree_flatten_with_path((args, kwargs))
    names = [a.name for a in node.target._schema.arguments]
    operands, places = [], []
    for place, (path, leaf) in enumerate(paths):
        if isinstance(leaf, Node):
            argument = _argument_name(path, names)
            operands.append(Operand(argument, leaf))
            places.append(place)
    return OperatorCall(node, tuple(operands), results_of(node), tuple(leaf for _, leaf in paths), structure, tuple(places))


def _argument_name(path: Sequence[Any], names: Sequence[str]) -> str:
    by_position, argument = path[0].idx == 0, path[1]
    return names[argument.idx] if by_position else str(argument.key)


def results_of(node: Node) -> tuple[Tensor, ...]:
    """Return tensors without numbers that describe the results of a node."""
    return tuple(leaf for leaf in pytree.tree_leaves(node.meta.get("val")) if isinstance(leaf, Tensor))


def _bound(signature: Sequence[Any], given: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return all positional arguments of a call, with the defaults of a signature, and the keyword-only ones that are given."""
    by_position = [a for a in signature if not a.kwarg_only]
    rest = [named.get(a.name, a.default_value) for a in by_position[len(given) :]]
    by_name = {a.name: named[a.name] for a in signature if a.kwarg_only and a.name in named}
    return [*given, *rest], by_name


def in_layout_of(tensor: Tensor, like: Tensor) -> Tensor:
    """Return a tensor in the memory layout of another one, unless entries of `like` share memory, as after `expand`."""
    if tensor.stride() == like.stride() or 0 in like.stride():
        return tensor
    return torch.empty_strided(like.shape, like.stride(), dtype=tensor.dtype).copy_(tensor)
