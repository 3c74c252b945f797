"""Calls of operators in an exported graph, which can be run on other tensors than the model's, and what is known of a tensor before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree

from fuseflow.frontend.trace.dependence import schema_arguments


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Which entries of a tensor are known, and their values. `value` is 0 where an entry is unknown."""

    mask: Tensor
    value: Tensor

    @classmethod
    def nothing(cls, shape: Sequence[int], dtype: torch.dtype) -> Known:
        """Return the `Known` of a tensor of which no entry is known."""
        return cls(torch.zeros((), dtype=torch.bool).expand(shape), torch.zeros((), dtype=dtype).expand(shape))

    @classmethod
    def exactly(cls, tensor: Tensor) -> Known:
        """Return the `Known` of a tensor that is known as a whole."""
        return cls(torch.ones((), dtype=torch.bool).expand(tensor.shape), tensor)

    @classmethod
    def where(cls, mask: Tensor, tensor: Tensor) -> Known:
        """Return the `Known` of a tensor whose entries are known where a mask is true."""
        return cls(mask, tensor.masked_fill(~mask, 0))

    @property
    def everywhere(self) -> bool:
        """Whether every entry is known."""
        return bool(self.mask.all())

    @property
    def unknown(self) -> Tensor:
        """Where an entry is not known."""
        return ~self.mask

    @property
    def nonzero(self) -> Tensor:
        """Where an entry may be other than 0."""
        return ~self.mask | (self.value != 0)

    @property
    def constant(self) -> Tensor:
        """Where an entry is known, and not 0."""
        return self.mask & (self.value != 0)

    def or_else(self, other: Known) -> Known:
        """Return the entries that are known here or in `other`. Where both know an entry, the value is the one here."""
        return Known(self.mask | other.mask, torch.where(self.mask, self.value, other.value))


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that an operator is called with: the name of the argument, and the node that computes the tensor."""

    argument: str
    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class OperatorCall:
    """A call of an operator. `args` and `kwargs` are its arguments in the order of the signature, with the defaults of positional
    ones, and `operands` the nodes in them, in order. `results` describes the tensors that it computes."""

    node: Node
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    operands: tuple[Operand, ...]
    results: tuple[Tensor, ...]

    @property
    def target(self) -> torch._ops.OpOverload:
        """The operator."""
        assert isinstance(self.node.target, torch._ops.OpOverload)
        return self.node.target

    def arguments(self, replacements: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments by position and by name, with replacements for the operands."""
        left = iter(replacements)
        args, kwargs = map_arg((self.args, self.kwargs), lambda operand: next(left))
        return args, dict(kwargs)

    def run(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Run the operator on other tensors in the place of its operands."""
        args, kwargs = self.arguments(self.laid_out(tensors))
        return tuple(leaf for leaf in pytree.tree_leaves(self.target(*args, **kwargs)) if isinstance(leaf, Tensor))

    def laid_out(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return tensors in the memory layout that the operands have in the model, which views depend on."""
        return [in_layout_of(t, operand.node.meta["val"]) for t, operand in zip(tensors, self.operands, strict=True)]


def operator_call(node: Node) -> OperatorCall:
    """Return a node of a graph as a call of an operator."""
    bound = list(schema_arguments(node))
    args = tuple(value for argument, value in bound if not argument.kwarg_only)
    kwargs = {argument.name: value for argument, value in bound if argument.kwarg_only and argument.name in node.kwargs}
    operands = [Operand(a.name, leaf) for a, value in bound for leaf in pytree.tree_leaves(value) if isinstance(leaf, Node)]
    results = [leaf for leaf in pytree.tree_leaves(node.meta.get("val")) if isinstance(leaf, Tensor)]
    return OperatorCall(node, args, kwargs, tuple(operands), tuple(results))


def derivatives(sums: Tensor | Sequence[Tensor], tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the derivatives of sums by each tensor, which are zeros for one that requires none."""
    wanted = [tensor for tensor in tensors if tensor.requires_grad]
    gradients = iter(torch.autograd.grad(sums, wanted, allow_unused=True, materialize_grads=True))
    return [next(gradients) if tensor.requires_grad else torch.zeros_like(tensor) for tensor in tensors]


def in_layout_of(tensor: Tensor, like: Tensor) -> Tensor:
    """Return a tensor in the memory layout of another one, unless entries of `like` share memory, as after `expand`."""
    if tensor.stride() == like.stride() or 0 in like.stride():
        return tensor
    return torch.empty_strided(like.shape, like.stride(), dtype=tensor.dtype).copy_(tensor)
