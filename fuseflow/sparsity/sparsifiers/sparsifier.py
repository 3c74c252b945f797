"""The base class of sparsifiers. A sparsifier is a rule that says which entries of a tensor are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import floor
from typing import TYPE_CHECKING, ClassVar, TypeVar

from fuseflow.errors import SparsityError
from fuseflow.keep_rules import Kind, Rule
from fuseflow.sparsity.layouts.layout import Layout
from fuseflow.sparsity.layouts.sparse import CSR
from fuseflow.sparsity.text_form import text_of

if TYPE_CHECKING:
    import torch

S = TypeVar("S", bound="Sparsifier")


@dataclass(frozen=True, slots=True)
class KeepRule:
    """The form of a sparsifier in the compiler: a rule of `keep`, and the dimensions that it is over, the outermost first. A threshold is
    over none."""

    rule: Rule
    dimensions: tuple[int, ...] = ()


class Sparsifier(ABC):
    """A rule that says which entries of a tensor are kept. A subclass is a frozen dataclass whose fields are its parameters.

    Its selection depends on its arguments alone, so that equal weights in two processes get equal masks. Only a random one
    without a seed draws from PyTorch's generator.
    """

    __slots__ = ()

    name: ClassVar[str]
    """Its name in texts, such as `magnitude`."""

    kind: ClassVar[Kind]
    """How much must be seen before an entry is kept: the entry alone, a group or fiber of the tensor, or all of it."""

    least_rank: ClassVar[int] = 0
    """How many dimensions a tensor has at least that it selects of."""

    needs_scores: ClassVar[bool] = False
    """Whether it ranks entries by scores that only training gathers."""

    @abstractmethod
    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        """Return the mask of a dense tensor, which has its shape and is true where an entry is kept.

        `scores` are the scores that a trainer gathered for each entry; a rule that ranks by magnitude ignores it. Raise
        `SparsityError` for a tensor that the rule does not fit.
        """

    @property
    def share(self) -> float | None:
        """The share of entries that the rule drops from any tensor, up to rounding; None if that depends on the numbers of the tensor."""
        fraction = getattr(self, "fraction", None)
        return fraction if isinstance(fraction, float) else None

    @property
    def compares_tensors(self) -> bool:
        """Whether the rule compares entries of different tensors. If not, `select_together` is `select` of each tensor."""
        return False

    def select_together(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the masks of several tensors."""
        return [self.select(tensor) for tensor in tensors]

    def keep_rule(self, shape: tuple[int, ...]) -> KeepRule | None:
        """Return the form that it has in the compiler for a tensor of this shape, or None if it has none."""
        return None

    @property
    def layout(self) -> Layout:
        """The layout of a weight that the rule made sparse, if the user names no other."""
        return CSR()

    def __str__(self) -> str:
        return text_of(self.name, self)


def with_fraction(sparsifier: S, fraction: float) -> S:
    """Return a sparsifier with another fraction of entries that are not kept. Raise `SparsityError` if it has no fraction."""
    if not has_fraction(sparsifier):
        raise SparsityError(
            f"`{sparsifier}` has no fraction that could rise",
            hint="a schedule is for magnitude, random, movement, block and filter",
        )
    return replace(sparsifier, fraction=fraction)  # type: ignore[type-var]


def has_fraction(sparsifier: Sparsifier) -> bool:
    """Return whether the share of entries that are not kept is a parameter of the sparsifier."""
    return any(field.name == "fraction" for field in fields(sparsifier))  # type: ignore[arg-type]


def kept_count(fraction: float, size: int) -> int:
    """Return how many of `size` entries are kept if this fraction is dropped."""
    return size - floor(fraction * size)


def require_fraction(name: str, fraction: float) -> None:
    """Raise `SparsityError` for a number that is no fraction. `name` is the sparsifier that it is for."""
    if not 0 <= fraction <= 1:
        raise SparsityError(
            f"`{name}` cannot leave out a fraction of {fraction}", hint=f"give a number from 0 to 1, as in `{name}:0.9`"
        )


def require_dimension(sparsifier: Sparsifier, dim: int, shape: tuple[int, ...]) -> int:
    """Return a dimension of a shape, counted from 0. Raise `SparsityError` if the shape does not have it."""
    if not -len(shape) <= dim < len(shape):
        raise SparsityError(
            f"`{sparsifier}`: a tensor of shape {list(shape)} has no dimension {dim}", hint=f"it has {len(shape)} dimensions"
        )
    return dim % len(shape)
