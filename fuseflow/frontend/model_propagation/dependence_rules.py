"""The table of rules: on which operands the entries of an operator's results depend.

A rule is a *stand-in* for the operator. It takes the same arguments by position, in which each tensor is replaced by ones and zeros: 1 for
an unknown entry. Its result must be more than 0 where an entry of the result depends on such an entry, and must be a sum of products of its
tensors, so that its derivatives mark the needed entries. The operator itself is its own stand-in if it is such a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree

from fuseflow.errors import FrontendError, did_you_mean
from fuseflow.frontend.foreign_errors import foreign_message
from fuseflow.frontend.trace.dependence import schema_arguments
from fuseflow.frontend.trace.refusals import refusal


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


StandIn = Callable[..., Any]

_WITHOUT_MARKS = ("dtype", "alpha", "beta")
"""Arguments that are left out when an operator is its own stand-in: signs and types of numbers do not matter there."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """The rule of an operator.

    - `stand_in` takes the place of the operator, or is None if the operator stands in for itself. Its result may have any shape
      that broadcasts to the operator's result, or as many entries.
    - `factors` are arguments that are multiplied with each other, so that a 0 in one makes the others superfluous.
    - `selectors` are arguments such as indices. If they are known as a whole, the stand-in gets them as they are. Otherwise `otherwise`
      takes its place.
    - `also_known` returns entries of the result that are known though they depend on unknown ones. It gets a `Known` for each tensor.
    """

    stand_in: StandIn | None = None
    factors: frozenset[str] = frozenset()
    selectors: frozenset[str] = frozenset()
    otherwise: StandIn | None = None
    also_known: Callable[..., Known] | None = None

    def given(self, call: OperatorCall, operands: Sequence[Known]) -> Rule:
        """Return this rule, or the rule with `otherwise` as its stand-in if a selector is not known as a whole."""
        known = (k.everywhere for k, o in zip(operands, call.operands, strict=True) if o.argument in self.selectors)
        return self if all(known) else replace(self, stand_in=self.otherwise or everything, selectors=frozenset())

    def run(self, call: OperatorCall, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Run the stand-in and return a tensor in the shape of each result of the operator."""
        args, kwargs = call.arguments(tensors)
        if self.stand_in is None:
            kwargs = {name: value for name, value in kwargs.items() if name not in _WITHOUT_MARKS}
        results = pytree.tree_leaves((self.stand_in or call.target)(*args, **kwargs))
        if len(results) == 1:
            results *= len(call.results)
        return [
            tensor.expand(result.shape) if tensor.dim() in (0, result.dim()) else tensor.reshape(result.shape)
            for tensor, result in zip(results, call.results, strict=True)
        ]


@contextmanager
def rule_errors(call: OperatorCall) -> Iterator[None]:
    """Raise a `FrontendError` with the line of a call for whatever its rule raises inside the block."""
    try:
        yield
    except Exception as error:  # whatever a stand-in and PyTorch raise
        hint = "its stand-in gets the same arguments, with ones and zeros for tensors, and must have a derivative"
        raise refusal(call.node, f"the rule for `{call.target}` fails: {foreign_message(error)}", hint) from error


def everything(*args: Any, **kwargs: Any) -> Tensor:
    """Return the sum of all entries of all tensors: a stand-in with which each entry of the results depends on every entry."""
    return reduce(add, (leaf.sum() for leaf in _tensors(args, kwargs)), torch.zeros(()))


def entrywise(*args: Any, **kwargs: Any) -> Tensor:
    """Return the sum of the tensors: a stand-in whose entries depend on the entries at the same coordinates."""
    return reduce(add, _tensors(args, kwargs), torch.zeros(()))


def _tensors(args: Any, kwargs: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]


ENTRYWISE = Rule(entrywise)
EVERYTHING = Rule(everything)
RULES: dict[str, Rule] = {}
"""The rules by the names of operators: `aten.mean` for all overloads, or `aten.mean.dim` for one."""


def register_rule(
    operator: str,
    *,
    factors: Sequence[str] = (),
    selectors: Sequence[str] = (),
    otherwise: StandIn | None = None,
    also_known: Callable[..., Known] | None = None,
) -> Callable[[StandIn], StandIn]:
    """Register the decorated function as the stand-in of an operator, such as `"aten.mish"` or `"mylib.pool"`.

    An operator with a rule stays whole in the graph; others are decomposed into simpler ones where PyTorch knows how.

    Raise `FrontendError` for an operator that PyTorch does not have, or one without such an argument.
    """
    _require_arguments(operator, (*factors, *selectors))

    def register(stand_in: StandIn) -> StandIn:
        RULES[operator] = Rule(stand_in, frozenset(factors), frozenset(selectors), otherwise, also_known)
        return stand_in

    return register


def add_rule(operator: str, rule: Rule) -> None:
    """Add a rule to the table, or replace one. Raise `FrontendError` as `register_rule` does."""
    _require_arguments(operator, rule.factors | rule.selectors)
    RULES[operator] = rule


def operators_of(name: str) -> list[torch._ops.OpOverload]:
    """Return the overloads of operators for which a name of the table holds."""
    library, _, rest = name.partition(".")
    packet_name, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, library, None), packet_name, None) if packet_name else None
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return []
    overloads: list[str] = packet.overloads()  # type: ignore[no-untyped-call]
    return [getattr(packet, each) for each in overloads if each == overload or not overload]


def _require_arguments(operator: str, names: Collection[str]) -> None:
    """Raise `FrontendError` if there is no such operator, or if it has no arguments of these names."""
    overloads = operators_of(operator)
    if not overloads:
        library, _, rest = operator.partition(".")
        known = [f"{library}.{each}" for each in dir(getattr(torch.ops, library))] if rest else []
        raise FrontendError(f"there is no operator `{operator}`", hint=did_you_mean(operator, known) or "write it as `aten.relu`")
    arguments = {argument.name for overload in overloads for argument in overload._schema.arguments}
    for name in names:
        if name not in arguments:
            hint = did_you_mean(name, arguments)
            raise FrontendError(f"the operator `{operator}` has no argument `{name}`", hint=hint)


def table_rule(call: OperatorCall) -> Rule | None:
    """Return the rule of a call from the table, or None if there is none. Operators that PyTorch calls pointwise need no row."""
    operator = call.target
    library, _, name = operator._schema.name.partition("::")
    packet = f"{library}.{name}"
    rule = RULES.get(f"{packet}.{operator._overloadname}") or RULES.get(packet)
    pointwise = torch.Tag.pointwise in operator.tags and torch.Tag.nondeterministic_seeded not in operator.tags
    return rule or (ENTRYWISE if pointwise else None)
