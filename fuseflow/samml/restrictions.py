"""The names of restricted tensors: inputs of a graph that hold some coordinates of another tensor's modes, numbered again from 0.

A sampled region reads the rows of `A` that it samples, and may read the whole of `A` through another index. Then the rows are a tensor of
their own, `A@restricted_0`, which lies in memory where `A` lies: in the region that is sampled, both are `A`. No name of a program has
an `@`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SUFFIX = re.compile(r"@restricted(_\d+)+$")


def restriction_name(tensor: str, modes: Iterable[int]) -> str:
    """Return the name of a tensor that is restricted along some modes.

    >>> restriction_name("A", (0,))
    'A@restricted_0'
    """
    return f"{tensor}@restricted" + "".join(f"_{mode}" for mode in modes)


def unrestricted_name(tensor: str) -> str:
    """Return the name of the tensor that this one restricts; a tensor that is no restriction has its own name.

    >>> unrestricted_name("A@restricted_0"), unrestricted_name("A")
    ('A', 'A')
    """
    return _SUFFIX.sub("", tensor)
