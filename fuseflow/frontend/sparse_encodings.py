"""Formats and blocks as `#sparse_tensor.encoding` attributes of MLIR, both ways. Text only: MLIR is not needed to read or write one.

A tensor in blocks has a level for each dimension of the blocks, and then, innermost, the dense levels of the elements of a block:

    csr, block 2x3      (i floordiv 2 : dense, j floordiv 3 : compressed, i mod 2 : dense, j mod 3 : dense)
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

from fuseflow.errors import FrontendError, Span, TensorError
from fuseflow.tensors import Format
from fuseflow.tensors.blocks import Block, check_block

INDEX_BITS = 64
"""Bits of positions and coordinates: PyTorch's int64 index arrays."""

Storage: TypeAlias = tuple[Format, Block]
"""How a tensor is stored: its levels, and the blocks that they address."""

_MAP = re.compile(r"map\s*=\s*\(([^()]*)\)\s*->\s*\((.*)\)\s*(?:,\s*\w+\s*=.*)?}\s*>", re.DOTALL)
_EXPRESSION = re.compile(r"(\w+)(?:\s+(floordiv|mod)\s+(\d{1,9}))?")
_ATTRIBUTE = re.compile(r"\bencoding\s*<\s*{.*?}\s*>", re.DOTALL)
SUBSTITUTE_LEVEL = "compressed"
"""The level that stands for one which MLIR does not have; the format itself is then said beside the encoding (`named_in_mlir`)."""


class _Part(NamedTuple):
    """A level of the attribute: of a whole dimension (`way` is empty), of its blocks (`floordiv`) or inside them (`mod`)."""

    dimension: int
    way: str
    size: int
    level: str

    def text(self, names: list[str]) -> str:
        name = names[self.dimension]
        return f"{name} {self.way} {self.size}" if self.way else name


def to_encoding(format: Format, block: Block = ()) -> str:
    """The attribute for a format; singleton levels keep their coordinates in arrays of their own (`soa`), as PyTorch does.

    >>> to_encoding(Format.parse("csc", 2))
    '#sparse_tensor.encoding<{ map = (d0, d1) -> (d1 : dense, d0 : compressed), posWidth = 64, crdWidth = 64 }>'
    """
    names = [f"d{d}" for d in range(format.rank)]
    sizes = block or (1,) * format.rank
    outer = [
        _Part(d, "floordiv" if sizes[d] > 1 else "", sizes[d], level.mlir or SUBSTITUTE_LEVEL)
        for level, d in zip(format.levels, format.order, strict=True)
    ]
    levels = ", ".join(f"{part.text(names)} : {part.level}" for part in (*outer, *_inside(outer)))
    return f"#sparse_tensor.encoding<{{ map = ({', '.join(names)}) -> ({levels}), posWidth = {INDEX_BITS}, crdWidth = {INDEX_BITS} }}>"


def has_encoding(format: Format) -> bool:
    """Whether an encoding says all of a format."""
    return all(level.mlir is not None for level in format.levels)


def from_encoding(text: str) -> Storage:
    """The format and the block that an attribute describes; raises `FrontendError` for levels that are none of ours.

    >>> str(from_encoding("#sparse_tensor.encoding<{ map = (i, j) -> (j : dense, i : compressed) }>")[0])
    '(dense, compressed) order (1, 0)'
    """
    match = _MAP.search(text)
    if not match:
        raise FrontendError(
            f"cannot read the sparse encoding `{text}`", hint="write `map = (d0, d1) -> (d0 : dense, d1 : compressed)`"
        )
    names = [name.strip() for name in match[1].split(",")]
    parts = [_part(part, names) for part in _split_commas(match[2])]
    outer = [part for part in parts if part.way != "mod"]
    sizes = {part.dimension: part.size for part in outer}
    try:
        if parts != [*outer, *_inside(outer)]:
            raise _no_block(parts, outer, names)
        format = Format.of(*(_level(part.level) for part in outer), order=tuple(part.dimension for part in outer))
        return format, check_block(tuple(sizes[d] for d in range(format.rank)), format.rank)
    except TensorError as error:
        shown = match[0].removesuffix("}>").strip()
        raise FrontendError(f"sparse encoding `{shown}`: {error.message}", hint=error.hint) from None


def screen_encodings(text: str, file: str) -> None:
    """Refuse attributes of a module that name blocks which are none of ours, with their place: MLIR's own parser dies of some of them."""
    plain = re.sub(r"//[^\n]*", lambda comment: " " * len(comment[0]), text)
    for match in _ATTRIBUTE.finditer(plain):
        if re.search(r"\b(floordiv|mod)\b", match[0]):
            try:
                from_encoding(match[0])
            except FrontendError as error:
                error.span = Span(file, plain.count("\n", 0, match.start()) + 1)
                raise


def _part(text: str, names: list[str]) -> _Part:
    expression, _, level = text.partition(":")
    match = _EXPRESSION.fullmatch(expression.strip())
    if not match or match[1] not in names:
        raise FrontendError(
            f"level `{text.strip()}` of a sparse encoding is not one dimension, and no block of one",
            hint=f"store each of {', '.join(names)} in one level, or as `{names[0]} floordiv 16` and `{names[0]} mod 16`",
        )
    return _Part(names.index(match[1]), match[2] or "", int(match[3] or 1), level.strip())


def _inside(outer: list[_Part]) -> list[_Part]:
    """The levels inside the blocks: dense, row by row."""
    return sorted(_Part(part.dimension, "mod", part.size, "dense") for part in outer if part.way)


def _no_block(parts: list[_Part], outer: list[_Part], names: list[str]) -> TensorError:
    """Why levels with blocks among them store no blocks as ours."""
    inner, wanted = [part for part in parts if part.way == "mod"], _inside(outer)
    levels = ", ".join(f"`{part.text(names)} : dense`" for part in wanted)
    hint = f"after the levels of the blocks, end with {levels}" if wanted else "a `mod` belongs to a `floordiv` of the same size"
    sparse = [part for part in inner if part.level != "dense"]
    alone = [part for part in wanted if part not in inner]
    if sparse:
        problem = f"inside a block every level is dense, `{sparse[0].text(names)}` is {sparse[0].level}"
    elif alone:
        problem = f"there is no level `{alone[0].text(names)}` for the elements of the blocks of {names[alone[0].dimension]}"
    elif len(inner) > len(wanted):
        extra = next(part for part in inner if part not in wanted)
        problem = f"`{extra.text(names)}` is inside no block"
    else:
        problem = "the levels inside the blocks come last, in the order of the dimensions: blocks are stored row by row"
    return TensorError(problem, hint=hint)


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
