"""The places of a storage class: where its entries stand in the dense tensor, and how other values are stored at the same places."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Index = tuple[torch.Tensor, ...]


def _no_index(storage: Any) -> Index:
    return ()


def _no_padding(storage: Any) -> torch.Tensor | None:
    return None


@dataclass(frozen=True, slots=True)
class Places:
    """The places of a class of storages. Storages are dataclasses whose field `field` holds the values.

    `index` gives the index that reads a dense tensor at the places, in the shape of the values. `stored` gives a mask of that shape which
    is false where a value is padding, which always is 0, or None if there is no padding.
    """

    field: str = "values"
    index: Callable[[Any], Index] = _no_index
    stored: Callable[[Any], torch.Tensor | None] = _no_padding

    def values(self, storage: Any) -> torch.Tensor:
        """Return the values of a storage, padding included."""
        values: torch.Tensor = getattr(storage, self.field)
        return values

    def with_values(self, storage: Any, values: torch.Tensor) -> Any:
        """Return a storage that has other values at the same places. Values in padding are ignored."""
        stored = self.stored(storage)
        return dataclasses.replace(storage, **{self.field: values if stored is None else torch.where(stored, values, 0)})

    def gather(self, storage: Any, dense: torch.Tensor) -> torch.Tensor:
        """Return the entries of a dense tensor at the places of a storage, in the shape of its values, and 0 in padding."""
        values, stored = dense[self.index(storage)], self.stored(storage)
        return values if stored is None else torch.where(stored, values, 0)

    def add_to(self, storage: Any, dense: torch.Tensor, factor: Any = 1) -> None:
        """Add the entries of a storage, times a factor, to a dense tensor."""
        values, index = self.values(storage) * factor, self.index(storage)
        if index:
            dense.index_put_(index, values.to(dense.dtype), accumulate=True)
        else:
            dense.add_(values)

    def pattern(self, storage: Any) -> dict[str, Any]:
        """Return the fields that say where the entries stand: all but the values."""
        fields = (field.name for field in dataclasses.fields(storage))
        return {name: getattr(storage, name) for name in fields if name != self.field}

    def agree(self, first: Any, second: Any) -> bool:
        """Return whether two storages of the class have their entries at the same places, in the same order."""
        if self.values(first).shape != self.values(second).shape:
            return False
        return all(map(_equal, self.pattern(first).values(), self.pattern(second).values()))


def _equal(first: Any, second: Any) -> bool:
    if first is second:
        return True
    if isinstance(first, torch.Tensor):
        return isinstance(second, torch.Tensor) and first.device == second.device and torch.equal(first, second)
    return bool(first == second)
