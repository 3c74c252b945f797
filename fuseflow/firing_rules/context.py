"""The facts that the rules of a node need: about the graph around the node, and about the numbers that its streams carry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from fuseflow.firing_rules.expressions import Expr
from fuseflow.firing_rules.rules import Head, Module
from fuseflow.samml import nodes as n


class Fold(Protocol):
    """A reduction that folds a value in each firing. `begun` are the registers after the firing, `total` is the result so far,
    and `emptied` are the registers after the total was emitted."""

    begun: dict[str, Expr | int]

    @property
    def total(self) -> Expr: ...

    @property
    def emptied(self) -> dict[str, Expr | int]: ...

    def rules(self) -> None:
        """Add the rules of the steps that the fold takes after the firing."""


class Work(Protocol):
    """An operator on the operands of a firing. `begun` are the registers after the firing, and `result` is the result."""

    begun: dict[str, Expr | int]
    result: Expr

    def rules(self, late: Mapping[str, Expr]) -> None:
        """Add the rules of an operator's steps after the firing. The last step emits the tokens `late`, by output."""


@dataclass(frozen=True, slots=True)
class Fiber:
    """The fiber below a reference as expressions: whether it has an element, its first position, the position after its last
    element, the position where a scan is, and the coordinate and the reference there."""

    some: Expr
    first: Expr
    end: Expr
    at: Expr
    crd: Expr
    ref: Expr


class RuleContext(ABC):
    """The context of a node with inputs of `types`. Values are numbers where rules are interpreted, and words in a circuit."""

    types: tuple[n.StreamType, ...]

    @abstractmethod
    def width(self, type_: n.StreamType) -> int:
        """Return the width in bits of a payload of a stream of a type."""

    @abstractmethod
    def outputs(self, m: Module) -> list[str]:
        """Declare the outputs of the node in the module `m`, and return their names: `out0`, `out1` and so on."""

    @abstractmethod
    def number(self, value: float) -> Expr:
        """Return the constant payload of a number."""

    @abstractmethod
    def apply(self, function: str, *operands: Expr) -> Expr:
        """Return the expression of the operator `function` applied to numbers."""

    @abstractmethod
    def holds(self, truth: Expr) -> Expr:
        """Return the condition that the result of a comparison is true."""

    @abstractmethod
    def fold(self, m: Module, function: str, x: Expr) -> Fold:
        """Return the reduction `function` of values of the node's first input, with `x` as the next value."""

    @abstractmethod
    def compute(self, m: Module, heads: Sequence[Head]) -> Work:
        """Return the operator of the node, applied to the next tokens (`heads`) of its inputs."""

    @abstractmethod
    def fiber(self, m: Module, node: n.Scan | n.Range, ref: Head) -> Fiber:
        """Return the fiber below an input's next reference (`ref`). The register `at` has its position from the second element on."""

    @abstractmethod
    def room(self, node: n.WriteLevel | n.WriteValues) -> int:
        """Return the number of entries to which a writer pads every fiber of its level, or 0 if it does not pad."""

    def input(self, m: Module, k: int) -> Head:
        return m.input(f"in{k}", self.width(self.types[k]))

    def inputs(self, m: Module) -> list[Head]:
        return [self.input(m, k) for k in range(len(self.types))]


Builder: TypeAlias = Callable[[Any, Any, Module], None]
"""A function from a node, its context and a module that adds the rules of the node to the module."""
