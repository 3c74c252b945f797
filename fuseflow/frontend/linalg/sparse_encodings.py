"""Conversion between formats with blocks and the texts of MLIR's `#sparse_tensor.encoding` attributes. MLIR itself is not needed.

A tensor in blocks has a level for each dimension of the blocks. Inside these it has the dense levels of the elements of a block:

    csr, block 2x3      (i floordiv 2 : dense, j floordiv 3 : compressed, i mod 2 : dense, j mod 3 : dense)

A level of n:m entries is two levels there; the second one stands for the m coordinates of a group:

    nm(2:4)             (i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4])
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from fuseflow.errors import FrontendError, Span, TensorError
from fuseflow.tensors import Format
from fuseflow.tensors.blocks import Block, check_block
from fuseflow.tensors.levels.base import WORD_BITS

HELD_BITS = 64
"""The number of bits of positions and coordinates in the index arrays of PyTorch. Machines move words of `WORD_BITS` all the same."""

Storage: TypeAlias = tuple[Format, Block]
"""The storage of a tensor: its format, and the size of its blocks, whose coordinates the levels hold."""

_MAP = re.compile(r"map\s*=\s*\(([^()]*)\)\s*->\s*\((.*)\)\s*(?:,\s*\w+\s*=.*)?}\s*>", re.DOTALL)
_EXPRESSION = re.compile(r"(\w+)(?:\s+(floordiv|mod)\s+(\d{1,9}))?")
_STRUCTURED = re.compile(r"structured\s*\[\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\]")
_KEY = re.compile(r"\b(posWidth|crdWidth|explicitVal|implicitVal)\s*=\s*([^,}]*[^,}\s])")
_BATCH = re.compile(r":\s*batch\b")
_ATTRIBUTE = re.compile(r"\bencoding\s*<\s*{.*?}\s*>", re.DOTALL)
_COMMA = re.compile(r",(?![^(\[]*[)\]])")
"""A comma outside of parentheses and brackets."""
_SUBSTITUTE_LEVEL = "compressed"
"""The level that is written for one which MLIR does not have. Then the format itself stands beside the encoding (see `has_encoding`)."""


class _EncodedLevel(NamedTuple):
    """A level of the attribute. `operator` is `floordiv` for a level of blocks, `mod` for a level inside blocks, and '' otherwise."""

    dimension: int
    operator: str
    size: int
    level: str

    def text(self, names: list[str]) -> str:
        name = names[self.dimension]
        return f"{name} {self.operator} {self.size}" if self.operator else name


def to_encoding(format: Format, block: Block = ()) -> str:
    """Return the attribute of a format with a block. Singleton levels have their coordinates in separate arrays (`soa`), as in PyTorch.

    >>> to_encoding(Format.parse("csc", 2))
    '#sparse_tensor.encoding<{ map = (d0, d1) -> (d1 : dense, d0 : compressed), posWidth = 32, crdWidth = 32 }>'
    """
    names = [f"d{d}" for d in range(format.rank)]
    sizes = block or (1,) * format.rank
    outer = [
        _EncodedLevel(d, "floordiv" if sizes[d] > 1 else "", sizes[d], level.mlir or _SUBSTITUTE_LEVEL)
        for level, d in zip(format.levels, format.order, strict=True)
    ]
    levels = ", ".join(f"{part.text(names)} : {part.level}" for part in (*outer, *_inside(outer)))
    return (
        f"#sparse_tensor.encoding<{{ map = ({', '.join(names)}) -> ({levels}), posWidth = {WORD_BITS}, crdWidth = {WORD_BITS} }}>"
    )


def has_encoding(format: Format) -> bool:
    """Return whether an encoding can express a format completely."""
    return not format.complete and all(level.mlir is not None for level in format.levels)


def is_encodable(element_type: str, block: Block) -> bool:
    """Return whether MLIR has sparse tensors of a type of elements, by its name there. The format of others is stated beside their type,
    which says nothing of blocks: raise `FrontendError` for these."""
    encodable = element_type != "i4" and not element_type.startswith(("f4", "f8"))
    if block and not encodable:
        raise FrontendError(
            f"MLIR has no sparse tensors of {element_type}, and so none in blocks", hint="store it without blocks"
        )
    return encodable


def from_encoding(text: str) -> Storage:
    """Return the format and the block that an attribute describes. Raise `FrontendError` for levels that fuseflow does not have, and for
    numbers of bits and values that it does not keep apart.

    >>> str(from_encoding("#sparse_tensor.encoding<{ map = (i, j) -> (j : dense, i : compressed) }>")[0])
    '(dense, compressed) order (1, 0)'
    """
    _refuse_keys(text)
    match = _MAP.search(text)
    if not match:
        hint = "write `map = (d0, d1) -> (d0 : dense, d1 : compressed)`"
        raise FrontendError(f"cannot read the sparse encoding `{text}`", hint=hint)
    names = [name.strip() for name in match[1].split(",")]
    levels = _COMMA.split(match[2])
    parts = _with_groups([_part(level, names) for level in levels], names)
    outer = [part for part in parts if part.operator != "mod"]
    sizes = {part.dimension: part.size for part in outer}
    try:
        if parts != [*outer, *_inside(outer)]:
            raise _block_error(parts, outer, names)
        format = Format.of(*(_level(part.level) for part in outer), order=tuple(part.dimension for part in outer))
        return format, check_block(tuple(sizes[d] for d in range(format.rank)), format.rank)
    except TensorError as error:
        dimension_map = match[0].removesuffix("}>").strip()
        raise FrontendError(f"sparse encoding `{dimension_map}`: {error.message}", hint=error.hint) from None


def screen_encodings(text: str, file: str) -> None:
    """Raise `FrontendError`, with the place, for an attribute whose blocks, numbers of bits or values fuseflow does not have. MLIR's own
    parser does not survive all of them."""
    for line, attribute in _attributes(text):
        try:
            _refuse_keys(attribute)
            if re.search(r"\b(floordiv|mod)\b", attribute):
                from_encoding(attribute)
        except FrontendError as error:
            error.span = Span(file, line)
            raise


def width_notices(text: str, file: str) -> tuple[str, ...]:
    """Return notices about the numbers of bits that the encodings of a module ask for."""
    for line, attribute in _attributes(text):
        wide = [f"{key} = {value}" for key, value in _KEY.findall(attribute) if key.endswith("Width") and value == str(HELD_BITS)]
        if wide:
            moved = f"machines move positions and coordinates of {WORD_BITS} bits, and bytes are counted so"
            return (f"{file}:{line} says {' and '.join(wide)}, as PyTorch holds them; {moved}",)
    return ()


def _attributes(text: str) -> Iterator[tuple[int, str]]:
    """Yield the encodings of a module, each with its line."""
    code = re.sub(r"//[^\n]*", lambda comment: " " * len(comment[0]), text)
    for match in _ATTRIBUTE.finditer(code):
        yield code.count("\n", 0, match.start()) + 1, match[0]


def _refuse_keys(text: str) -> None:
    """Raise `FrontendError` for a key of an encoding, beside its levels, that does not hold here."""
    if _BATCH.search(text):
        raise FrontendError(
            "level `batch` of a sparse encoding stores each batch as a tensor of its own, all with the same number of entries",
            hint="write `dense`, which stores the entries of all batches in one tensor",
        )
    for key, value in _KEY.findall(text):
        if key == "explicitVal":
            raise FrontendError(
                f"`explicitVal = {value}` of a sparse encoding says that all stored values are one number, and each value is stored here",
                hint="leave it out",
            )
        if key == "implicitVal" and not re.fullmatch(r"[-+]?0*\.?0*([eE][-+]?\d+)?\s*(:.*)?", value):
            problem = f"`implicitVal = {value}` of a sparse encoding is not 0, and MLIR knows no other implicit value"
            raise FrontendError(problem, hint="a text program (`.ein`) declares one: `tensor A[8, 8] csr fill 1`")
        if key.endswith("Width") and value not in ("0", str(WORD_BITS), str(HELD_BITS)):
            kind = "positions" if key == "posWidth" else "coordinates"
            hint = f"write `{key} = {WORD_BITS}`, or leave it out"
            raise FrontendError(f"`{key} = {value}` of a sparse encoding: machines move {kind} of {WORD_BITS} bits", hint=hint)


def _part(text: str, names: list[str]) -> _EncodedLevel:
    expression, _, level = text.partition(":")
    match = _EXPRESSION.fullmatch(expression.strip())
    if not match or match[1] not in names:
        hint = f"store each of {', '.join(names)} in one level, or as `{names[0]} floordiv 16` and `{names[0]} mod 16`"
        raise FrontendError(f"level `{text.strip()}` of a sparse encoding is not one dimension, and no block of one", hint=hint)
    return _EncodedLevel(names.index(match[1]), match[2] or "", int(match[3] or 1), level.strip())


def _with_groups(parts: list[_EncodedLevel], names: list[str]) -> list[_EncodedLevel]:
    """Return the levels, where each pair of levels that MLIR writes for n:m entries is one level `nm(n:m)`."""
    merged: list[_EncodedLevel] = []
    for part in parts:
        match = _STRUCTURED.fullmatch(part.level)
        if not match:
            merged.append(part)
            continue
        groups = _EncodedLevel(part.dimension, "floordiv", int(match[2]), "dense")
        if part.operator != "mod" or part.size != groups.size or merged[-1:] != [groups]:
            message = f"level `{part.level}` of a sparse encoding does not follow the dense level of its groups"
            name, size = names[part.dimension], match[2]
            raise FrontendError(message, hint=f"write `{name} floordiv {size} : dense, {name} mod {size} : {part.level}`")
        merged[-1] = _EncodedLevel(part.dimension, "", 1, f"nm({match[1]}:{match[2]})")
    return merged


def _inside(outer: list[_EncodedLevel]) -> list[_EncodedLevel]:
    """Return the levels inside the blocks that the levels `outer` store: they are dense and store a block row by row."""
    return sorted(_EncodedLevel(part.dimension, "mod", part.size, "dense") for part in outer if part.operator)


def _block_error(parts: list[_EncodedLevel], outer: list[_EncodedLevel], names: list[str]) -> TensorError:
    """Return an error that says why the levels of a blocked tensor do not store blocks in the way of fuseflow."""
    inner, expected = [part for part in parts if part.operator == "mod"], _inside(outer)
    levels = ", ".join(f"`{part.text(names)} : dense`" for part in expected)
    hint = (
        f"after the levels of the blocks, end with {levels}" if expected else "a `mod` belongs to a `floordiv` of the same size"
    )
    sparse = [part for part in inner if part.level != "dense"]
    missing = [part for part in expected if part not in inner]
    if sparse:
        problem = f"inside a block every level is dense, `{sparse[0].text(names)}` is {sparse[0].level}"
    elif missing:
        problem = f"there is no level `{missing[0].text(names)}` for the elements of the blocks of {names[missing[0].dimension]}"
    elif len(inner) > len(expected):
        extra = next(part for part in inner if part not in expected)
        problem = f"`{extra.text(names)}` is inside no block"
    else:
        problem = "the levels inside the blocks come last, in the order of the dimensions: blocks are stored row by row"
    return TensorError(problem, hint=hint)


def _level(text: str) -> str:
    """Return fuseflow's name of an MLIR level, such as `singleton(nonunique)` for `singleton(nonunique, soa)`."""
    if text.startswith("nm("):
        return text
    name, _, inside = text.partition("(")
    properties = [p.strip() for p in inside.rstrip(")").split(",") if p.strip()]
    if "nonordered" in properties:
        hint = "sort them, or drop `nonordered`"
        raise FrontendError(f"level `{text}` of a sparse encoding: coordinates must be ordered", hint=hint)
    return name.strip() + ("(nonunique)" if "nonunique" in properties else "")
