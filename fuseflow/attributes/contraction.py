"""Sums of products of masks and values over indices, without the space of all of them."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fuseflow.attributes.labeled import Labeled, union


def contracted(factors: Sequence[Labeled], kept: Sequence[str], over: Sequence[str], sizes: Mapping[str, int]) -> Labeled:
    """Return the sum over `over` of the product of arrays, for each element of `kept`. Indices that no array has count by their extent."""
    names = union(*factors)
    present = tuple(name for name in kept if name in names)
    letters = dict(zip(names, string.ascii_letters, strict=False))
    terms = ",".join("".join(letters[name] for name in factor.names) for factor in factors)
    arrays: list[Any] = [factor.array.astype(np.float64) for factor in factors]
    total = np.einsum(f"{terms}->{''.join(letters[name] for name in present)}", *arrays, optimize=len(factors) > 1)
    repeats = math.prod(sizes[name] for name in over if name not in names)
    return Labeled(np.asarray(total) * repeats, present)


def any_product(masks: Sequence[Labeled], kept: Sequence[str], over: Sequence[str], sizes: Mapping[str, int]) -> Labeled:
    """Return the mask over `kept` that is true where all masks are, for some element of the other indices."""
    return contracted(masks, kept, over, sizes).map(lambda count: count > 0.5)
