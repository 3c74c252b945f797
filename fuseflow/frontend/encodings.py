"""Formats as `#sparse_tensor.encoding` attributes of MLIR, both ways. Text only: MLIR is not needed to read or write one."""

from __future__ import annotations

import re

from fuseflow.errors import FrontendError, TensorError
from fuseflow.tensors import Format

WIDTH = 64
"""Bits of positions and coordinates: PyTorch's int64 index arrays."""

_MAP = re.compile(r"map\s*=\s*\(([^()]*)\)\s*->\s*\((.*)\)\s*(?:,\s*\w+\s*=.*)?}\s*>", re.DOTALL)
_TO_MLIR = {"singleton": "singleton(soa)", "singleton(nonunique)": "singleton(nonunique, soa)"}


def to_encoding(format: Format) -> str:
    """The attribute for a format; singleton levels keep their coordinates in arrays of their own (`soa`), as PyTorch does.

    >>> to_encoding(Format.parse("csc", 2))
    '#sparse_tensor.encoding<{ map = (d0, d1) -> (d1 : dense, d0 : compressed), posWidth = 64, crdWidth = 64 }>'
    """
    dimensions = ", ".join(f"d{d}" for d in range(format.rank))
    levels = ", ".join(
        f"d{d} : {_TO_MLIR.get(level.text, level.text)}" for level, d in zip(format.levels, format.order, strict=True)
    )
    return f"#sparse_tensor.encoding<{{ map = ({dimensions}) -> ({levels}), posWidth = {WIDTH}, crdWidth = {WIDTH} }}>"


def from_encoding(text: str) -> Format:
    """The format that an attribute describes; raises `FrontendError` for blocked and other levels that have none.

    >>> str(from_encoding("#sparse_tensor.encoding<{ map = (i, j) -> (j : dense, i : compressed) }>"))
    '(dense, compressed) order (1, 0)'
    """
    match = _MAP.search(text)
    if not match:
        raise FrontendError(
            f"cannot read the sparse encoding `{text}`", hint="write `map = (d0, d1) -> (d0 : dense, d1 : compressed)`"
        )
    dimensions = [name.strip() for name in match[1].split(",")]
    levels, order = [], []
    for part in _split_commas(match[2]):
        expression, _, level = part.partition(":")
        if expression.strip() not in dimensions:
            raise FrontendError(
                f"level `{part.strip()}` of a sparse encoding is not one dimension; blocked levels are not executed yet",
                hint=f"store each of {', '.join(dimensions)} in one level",
            )
        order.append(dimensions.index(expression.strip()))
        levels.append(_level(level.strip()))
    try:
        return Format.of(*levels, order=tuple(order))
    except TensorError as error:
        raise FrontendError(
            f"sparse encoding `{match[0].removesuffix('}>').strip()}`: {error.message}", hint=error.hint
        ) from None


def _level(text: str) -> str:
    """MLIR's level with our properties: `singleton(nonunique, soa)` -> `singleton(nonunique)`."""
    name, _, inside = text.partition("(")
    properties = [p.strip() for p in inside.rstrip(")").split(",") if p.strip()]
    if "nonordered" in properties:
        raise FrontendError(
            f"level `{text}` of a sparse encoding: coordinates must be ordered", hint="sort them, or drop `nonordered`"
        )
    return name.strip() + ("(nonunique)" if "nonunique" in properties else "")


def _split_commas(text: str) -> list[str]:
    """Split at the commas that stand outside parentheses and brackets."""
    return re.split(r",(?![^(\[]*[)\]])", text)
