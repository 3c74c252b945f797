"""Storage formats: the level formats of a tensor, outermost first, and its mode order, which says which dimension each level stores.

Formats are also given to tensors by patterns of their names, as in `*.weight=csr`, where `*` represents any text, `?` one character, and
`[ab]` one of some. The exact name of a tensor counts more than any pattern. Of several patterns the last one counts whose format is for
tensors of that rank: `*=csr` leaves vectors as they are. A pattern applies to given tensors (inputs), and to computed ones only if it
matches no given tensor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import TypeAlias

from fuseflow.errors import FuseFlowError, TensorError, counted, did_you_mean, first_names
from fuseflow.tensors.levels import Dense, Level, is_family, parse_level


@dataclass(frozen=True, slots=True)
class Format:
    """A storage format: level p has the level format `levels[p]` and stores dimension `order[p]` of the tensor.

    A tensor that brings no pattern, such as a dense array, stores the entries that differ from its implicit value. In a `complete` format,
    which is written `csr all`, it stores every entry, zeros too. A tensor that brings a pattern keeps it, with the zeros in it.

    >>> str(Format.parse("csc", 2))
    '(dense, compressed) order (1, 0)'
    """

    levels: tuple[Level, ...]
    order: tuple[int, ...]
    complete: bool = False

    def __post_init__(self) -> None:
        if self.complete and self.all_dense:
            raise TensorError("`all` says that zeros are stored, which dense levels do anyway", hint="leave `all` out")
        if sorted(self.order) != list(range(len(self.levels))):
            raise TensorError(f"mode order {self.order} is not a permutation of the {len(self.levels)} dimensions")
        for above, level in zip((None, *self.levels), self.levels, strict=False):
            if level.follows and not (above is not None and above.leads):
                raise TensorError(f"a singleton level needs a compressed or singleton level above it: {self}")
            if above is not None and not above.unique and not level.follows:
                raise TensorError(f"below a nonunique level stands a singleton level: {self}")
        if self.levels and not self.levels[-1].unique:
            raise TensorError(f"the last level is nonunique: {self}")

    @property
    def rank(self) -> int:
        """The number of levels, which is the number of dimensions of the tensor."""
        return len(self.levels)

    @property
    def all_dense(self) -> bool:
        """Whether every level stores every coordinate of its dimension."""
        return all(level.full for level in self.levels)

    @property
    def words(self) -> tuple[str, ...]:
        """The names of the levels, outermost first, and `all` behind them if the format is complete. `of` reads them."""
        return (*(level.text for level in self.levels), *(["all"] if self.complete else []))

    def __str__(self) -> str:
        levels = ", ".join(level.text for level in self.levels)
        order = "" if self.order == tuple(range(self.rank)) else f" order ({', '.join(map(str, self.order))})"
        return f"({levels}){order}{' all' if self.complete else ''}"

    def short(self) -> str:
        """Return the short name of the format if it has one, or else its full text. `parse` reads both."""
        if self.complete:
            return f"{replace(self, complete=False).short()} all"
        if self.rank == 1 and not self.all_dense:
            return str(self)  # `coo` and `csf` are the same for a vector
        if self in _short_names(self.rank):
            return _short_names(self.rank)[self]
        family = self.levels[-1].text if self.levels else ""
        if self.rank == 2 and is_family(family) and parse_short_name(family, 2) == self:
            return family
        return str(self)

    @classmethod
    def dense(cls, rank: int) -> Format:
        """Return the format of dense levels in the order of the dimensions."""
        return cls((Dense(),) * rank, tuple(range(rank)))

    @classmethod
    def of(cls, *words: str, order: tuple[int, ...] | None = None) -> Format:
        """Return the format with the levels of these names, as in `Format.of("dense", "compressed")`, which is complete with `all` at the
        end. Raises `TensorError` for a level that does not exist, and for levels that do not fit each other.
        """
        complete = words[-1:] == ("all",)
        levels = tuple(parse_level(name) for name in words[: len(words) - complete])
        return cls(levels, tuple(range(len(levels))) if order is None else order, complete)

    @classmethod
    def parse(cls, text: str, rank: int) -> Format:
        """Read a short name or `(level, ...)`, with `order (d, ...)` and `all` behind it. Raise `TensorError` if the text is not a format
        for tensors of this rank.

        >>> Format.parse("csr all", 2).complete
        True
        >>> Format.parse("csf order (2, 1, 0)", 3).order
        (2, 1, 0)
        """
        text, complete = without_all(text)
        if complete:
            return replace(cls.parse(text, rank), complete=True)
        if not text.startswith("("):
            return _parse_named(text, rank)
        format = cls.parse_levels(text)
        if format.rank != rank:
            raise TensorError(f"format `{text}` has {counted(format.rank, 'level')}, the tensor {counted(rank, 'dimension')}")
        return format

    @classmethod
    def parse_levels(cls, text: str) -> Format:
        """Read `(level, ...) [order (d, ...)] [all]`, a format whose number of levels is the rank of its tensors. Raise
        `TensorError` for any other text.

        >>> Format.parse_levels("(compressed)").rank
        1
        """
        text, complete = without_all(text)
        if complete:
            return replace(cls.parse_levels(text), complete=True)
        # `compressed(nonunique)` becomes `compressed<nonunique>`, so that the outer parentheses can be matched.
        flat = re.sub(r"(\w)\(([\w:\s]+)\)", r"\1<\2>", text.strip())
        match = re.fullmatch(rf"\(([^()]*)\)\s*(?:{_ORDER})?", flat)
        if not match:
            hint = "write `(dense, compressed) order (1, 0)` or a short name such as `csr`"
            raise TensorError(f"cannot read the format `{text}`", hint=hint)
        names = [n.strip().replace("<", "(").replace(">", ")") for n in match[1].split(",") if n.strip()]
        return cls.of(*names, order=_dimensions(match[2]) if match[2] is not None else None)


_ORDER = r"order\s*\(((?:\s*\d{1,9}\s*(?:,|(?=\))))*)\s*\)"
"""How an order of dimensions is written; the group has the dimensions."""


def _dimensions(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n.strip())


def _parse_named(text: str, rank: int) -> Format:
    """Read a short name, and an order of the dimensions behind it."""
    words = re.fullmatch(r"(\w+\b(?:\([^()]*\))?)\s*(\w.*)", text)
    if not words or not (words[1] in SHORT_NAMES or is_family(words[1])):
        return parse_short_name(text, rank)
    name, behind = words.groups()
    match = re.fullmatch(_ORDER, behind)
    if not match:
        hint = f"behind a format stand an order and `all`: `{name} order (1, 0)`, `{name} all`"
        raise TensorError(f"cannot read `{behind}` behind the format `{name}`", hint=hint)
    format = parse_short_name(name, rank)
    if format.order != tuple(range(rank)):
        message = f"the format `{name}` has an order of its own, {format.order}, and is given another one"
        raise TensorError(message, hint=f"write the levels, as in `{format}`")
    return replace(format, order=_dimensions(match[1]))


def without_all(text: str) -> tuple[str, bool]:
    """Return the text of a format without `all` at its end, and whether it is there.

    >>> without_all("csr all")
    ('csr', True)
    """
    words = text.rsplit(maxsplit=1)
    return (words[0].strip(), True) if len(words) == 2 and words[1] == "all" else (text.strip(), False)


SHORT_NAMES = ("dense", "csr", "csc", "coo", "dcsr", "dcsc", "csf")
"""The short names of formats. Where a format has several, the first one is printed."""
_MATRICES = {"csr": ("dense", (0, 1)), "csc": ("dense", (1, 0)), "dcsr": ("compressed", (0, 1)), "dcsc": ("compressed", (1, 0))}
"""The outer level and the order of dimensions of the short names for matrices. Their inner level is compressed."""


@cache
def _short_names(rank: int) -> Mapping[Format, str]:
    """Return the formats of tensors of this rank that have a short name, each with its first short name."""
    names: dict[Format, str] = {}
    for name in SHORT_NAMES:
        with suppress(TensorError):
            names.setdefault(parse_short_name(name, rank), name)
    return names


def parse_short_name(name: str, rank: int) -> Format:
    """Return the format with this short name for tensors of this rank. Raise `TensorError` if there is none.

    >>> str(parse_short_name("nm(2:4)", 2))
    '(dense, nm(2:4))'
    """
    if name.startswith(("bsr", "bsc")):
        sizes = "x".join(re.findall(r"[0-9]{1,9}", name)) or "16x16"
        hint = f"use `cs{name[2]}`, and blocks beside it: `--block NAME={sizes}`, in a declaration `cs{name[2]} block {sizes}`"
        raise TensorError(f"format `{name}`: a format says how levels are stored, blocks are given apart", hint=hint)
    family = is_family(name)
    if name not in SHORT_NAMES and not family:
        raise TensorError(f"unknown format `{name}`", hint=did_you_mean(name, [*SHORT_NAMES, "nm(2:4)", "(level, ...)"]))
    if (family or name in _MATRICES) and rank != 2:
        hint = "write the levels: `(dense, compressed, ...)`"
        raise TensorError(f"format `{name}` is for matrices, the tensor has {rank} dimensions", hint=hint)
    if family:
        return Format.of("dense", name)
    if name in _MATRICES:
        outer, order = _MATRICES[name]
        return Format.of(outer, "compressed", order=order)
    if name == "coo" and rank > 1:
        return Format.of("compressed(nonunique)", *["singleton(nonunique)"] * (rank - 2), "singleton")
    # What remains is `dense`, `csf` of any rank, or `coo` of a vector.
    return Format.dense(rank) if name == "dense" else Format.of(*["compressed"] * rank)


Ranks: TypeAlias = Mapping[str, Sequence[int]]
"""The ranks that each tensor may be seen with, by its name: two if dimensions of extent 1 may be left out."""


def is_pattern(name: str) -> bool:
    """Return whether a name is a pattern. Names of tensors have none of these characters."""
    return any(character in name for character in "*?[")


@dataclass(frozen=True, slots=True)
class ExactFormats:
    """The formats of tensors by their exact names. `notices` say what patterns leave out."""

    formats: dict[str, str]
    notices: tuple[str, ...]


def exact_formats(
    entries: Sequence[tuple[str, str]],
    given: Ranks,
    computed: Callable[[], Ranks],
    refusal: Callable[[str, TensorError], FuseFlowError],
) -> ExactFormats:
    """Return the formats that names and patterns, in order, give to tensors. Exact names are not looked up. `given` are the ranks
    of inputs, and `computed` returns those of results when it is needed.

    Raises the `refusal` of a pattern that matches no tensor, or none that its format is for.
    """
    formats: dict[str, str] = {}
    left_out: list[tuple[str, str, list[str]]] = []
    for pattern, text in entries:
        if is_pattern(pattern):
            try:
                fitting, others = _matches(pattern, text, given, computed)
            except TensorError as error:
                raise refusal(pattern, error) from error
            formats |= dict.fromkeys(fitting, text)
            left_out.append((pattern, text, others))
    formats |= {name: text for name, text in entries if not is_pattern(name)}
    notices = (_notice(pattern, text, [name for name in others if name not in formats]) for pattern, text, others in left_out)
    return ExactFormats(formats, tuple(filter(None, notices)))


def _matches(pattern: str, text: str, given: Ranks, computed: Callable[[], Ranks]) -> tuple[list[str], list[str]]:
    """Return two lists of the tensors that a pattern matches: those that the format `text` fits, and the others. Raise
    `TensorError` if none fits."""
    ranks = given if any(fnmatchcase(name, pattern) for name in given) else computed()
    names = [name for name in ranks if fnmatchcase(name, pattern)]
    if not names:
        known = (*given, *ranks)
        endings = (f"*.{name.rpartition('.')[2]}" for name in known if "." in name)
        raise TensorError("it matches no tensor", hint=did_you_mean(pattern, (*known, *endings)))
    fitting = [name for name in names if _fits(text, ranks[name])]
    if not fitting:
        try:
            Format.parse(text, ranks[names[0]][0])
        except TensorError as error:  # of the text, or of the first tensor
            raise TensorError(f"it matches `{names[0]}`: {error.message}", hint=error.hint) from None
    return fitting, [name for name in names if name not in fitting]


def _fits(text: str, ranks: Sequence[int]) -> bool:
    """Return whether the text of a format fits tensors of one of these ranks."""
    for rank in ranks:
        try:
            Format.parse(text, rank)
        except TensorError:
            continue
        return True
    return False


def _notice(pattern: str, text: str, names: Sequence[str]) -> str:
    """Return what to say of the tensors that a pattern matches and its format is not for, or '' if there are none."""
    if not names:
        return ""
    return f"`{pattern}={text}` leaves out {first_names(names)}: `{text}` is for another number of dimensions"
