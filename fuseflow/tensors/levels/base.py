"""The base of level formats. A level format says how one dimension of a fibertree is stored below the references of the one above it.

A format declares facts (`Level`), and its fibers hold the data (`Fibers`). Everything else reads these: memory layout and byte counts, both
simulators, the estimate, files, and the forms in which graphs are exchanged. So a new format is a new file in this package and its row in
`LEVELS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Literal, NoReturn, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from fuseflow.errors import TensorError
from fuseflow.keep_rules import Rule

Ints = npt.NDArray[np.int64]
Coordinates: TypeAlias = npt.NDArray[np.integer[Any]]
"""Coordinates as a level keeps them. `narrowed` says in how many bits."""

Count = TypeVar("Count", int, float)
"""A number of elements, or one that is expected."""

Kind: TypeAlias = Literal["pos", "crd"]
"""The meaning of the words of an array: positions, or coordinates."""

WORD_BITS = 32
"""Bits of a word: of a position in accelerator memory, and of a coordinate that is stored as it is."""
NARROW_SIZE = 1 << 31
"""The largest dimension whose coordinates are kept in 32 bits on this machine. Positions have 64 bits."""


@dataclass(frozen=True, slots=True)
class StoredArray:
    """One array of a level: how many elements it has, and which of them are read and written. A level has at most one of a kind.

    It has `first` elements, `fiber` more for each fiber (which begin at r * `fiber` for fiber r), and `entry` more for each stored
    coordinate. A writer appends the first ones at its start, an entry with its coordinate, and a fiber's elements at the end of the fiber.

    A scan asks for `scanned` elements at each reference, from the first one of its fiber on. Where there are entries, it then asks for the
    entries of the fiber, one after the other. A locate asks for the one element about a coordinate: an element is about `told` coordinates.

    An element has `bits` bits, and they lie one behind the other, across the bounds of bytes. A request covers the whole bytes in which
    its elements lie.
    """

    kind: Kind
    name: str
    """The name of its fibertree file, and its key in `Fibers.arrays`."""
    first: int = 0
    fiber: int = 0
    entry: int = 0
    scanned: int = 0
    told: int = 0
    bits: int = WORD_BITS

    def count(self, fibers: float, entries: float) -> float:
        """The number of elements for this number of `fibers`, which store `entries` coordinates together."""
        return self.first + self.fiber * fibers + self.entry * entries


def bytes_of(elements: Count, bits: int) -> Count:
    """Return the bytes of an array of `elements` with this number of `bits` each, rounded up once.

    >>> bytes_of(5, 32), bytes_of(5, 3)
    (20, 2)
    """
    return elements * (bits // 8) if bits % 8 == 0 else -(-elements * bits // 8)


@dataclass(frozen=True, slots=True)
class Reads:
    """The requests of a scan to memory: at each reference, the elements of the `scanned` arrays, all at once; then, one after the
    other, the elements of the array `entries`."""

    scanned: tuple[StoredArray, ...]
    entries: StoredArray | None = None


@dataclass(frozen=True, slots=True)
class Computed:
    """Fibers that are not stored: below reference r coordinates 0..size-1, with references r * size + coordinate. `parents`: how many
    fibers there are; None if any number."""

    size: int
    parents: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """Fibers that are stored: below reference r the coordinates crds[lows[r]..highs[r]).

    The reference of a coordinate is its position, or is in `refs`. With `refs`, a run of equal coordinates is one element of
    `crds`; `stops[r]` is then the end of the stored coordinates below r, and `spans[r]` their number, repeated ones included.
    `pos`: lows and highs in one array, if there is one.
    """

    crds: Coordinates
    lows: Ints
    highs: Ints
    refs: Ints | None = None
    stops: Ints | None = None
    spans: Ints | None = None
    pos: Ints | None = None

    @classmethod
    def between(cls, pos: Ints, crds: Coordinates) -> Listed:
        """Return the fibers of an array of positions: fiber r has the coordinates from pos[r] to pos[r+1]."""
        return cls(crds, pos[:-1], pos[1:], pos=pos)

    @classmethod
    def runs(cls, crds: Coordinates, firsts: Ints, starts: Ints, stops: Ints) -> Listed:
        """Return fibers with the coordinates between `starts` and `stops`, where a run of equal ones is one element. `firsts` are
        the first positions of all runs."""
        lows, highs = np.searchsorted(firsts, starts), np.searchsorted(firsts, stops)
        return cls(crds[firsts], lows, highs, firsts, stops, stops - starts)

    @property
    def parents(self) -> int:
        return len(self.lows)


Walk: TypeAlias = Computed | Listed
"""The fibers that a scan walks through, in one of two forms. A simulator that supports both supports every level."""

Look: TypeAlias = Callable[[int], tuple[Sequence[int], Sequence[int], int]]
"""A function of a reference. It returns the coordinates below the reference, the reference of each, and the number of elements
that they take in arrays with entries."""


class Overfull(Exception):
    """Coordinates that a level has no room for: the first of the entries that are too many together, the coordinate where the
    room begins, the problem, and a way out."""

    def __init__(self, entry: int, start: int, why: str, hint: str) -> None:
        super().__init__(why)
        self.entry, self.start, self.why, self.hint = entry, start, why, hint


class Unreadable(Exception):
    """Arrays of a level that are no fibers of it: the name of the array, and the fault in it."""

    def __init__(self, array: str, why: str) -> None:
        super().__init__(why)
        self.array, self.why = array, why


class Fibers(ABC):
    """The stored fibers of one level: below each reference of its parent, coordinates and their references in the next level."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size  # number of coordinates of the dimension

    @abstractmethod
    def fiber(self, ref: int) -> tuple[Sequence[int], Sequence[int]]:
        """The coordinates of the fiber below `ref`, ascending, and the reference of each."""

    @abstractmethod
    def expand(self, refs: Ints) -> tuple[Ints, Ints, Ints]:
        """All fibers below `refs` at once: (position of the parent in `refs`, coordinate, reference) of each entry."""

    @abstractmethod
    def walk(self) -> Walk:
        """The fibers in the form in which a scan walks through them."""

    @property
    @abstractmethod
    def entries(self) -> int:
        """Number of references this level hands to the next one."""

    @property
    def elements(self) -> int:
        """Number of coordinates over all fibers: fewer than `entries` where stored coordinates repeat."""
        return self.entries

    @property
    def arrays(self) -> Mapping[str, Coordinates]:
        """The stored arrays, by their names in the level."""
        return {}

    def look(self) -> Look:
        """`fiber` for many references, with the number of entries that each takes."""

        def look(ref: int) -> tuple[Sequence[int], Sequence[int], int]:
            crds, refs = self.fiber(ref)
            return crds, refs, len(crds)

        return look

    def locate(self, ref: int, crd: int) -> int | None:
        """The reference of a coordinate below `ref`; None if the coordinate is not stored."""
        crds, refs = self.fiber(ref)
        return refs[crds.index(crd)] if crd in crds else None


class Level(ABC):
    """A level format: a value without data, and facts that hold for all its fibers. `text` is its name in formats and program text."""

    @property
    @abstractmethod
    def text(self) -> str: ...

    full: ClassVar[bool] = False
    """Whether every coordinate of the dimension has a reference."""
    ordered: ClassVar[bool] = True
    """Whether the coordinates of a fiber ascend, as joins and reductions need it."""
    located: ClassVar[bool] = False
    """Whether a coordinate is reached without the ones before it. The locate of one that is not stored gives `N`."""
    leads: ClassVar[bool] = False
    """Whether it has one entry for each stored coordinate, so that the next level may be one that `follows`."""
    follows: ClassVar[bool] = False
    """Whether its entries correspond to the entries of the level above, one for one."""

    pads: ClassVar[bool] = False
    """Whether the level adds entries to those of a tensor, with the implicit value. Packing then gives that value to no other
    entry."""

    @property
    def kept(self) -> bool:
        """Whether a locate can keep the coordinates of an outermost level: it asks for each of them once, before its first token,
        and looks coordinates up in the kept ones. The locate of one that is not stored gives `N`."""
        return False

    @property
    def appended(self) -> bool:
        """Whether a level can be built from lists of coordinates, fiber after fiber, by `append`."""
        return False

    def room(self, size: int) -> int | None:
        """The entries that every fiber of a dimension of this size has, however few coordinates are stored in it: a writer adds
        the missing ones. None: a fiber has as many entries as coordinates. Levels that pad have room."""
        return None

    @property
    def rule(self) -> Rule | None:
        """The rule that must have selected every fiber, along this level alone, for a result to have such a level. None: any or no rule."""
        return None

    @property
    def written(self) -> bool:
        """Whether a writer stores it, fiber after fiber. Only such levels store results."""
        return self.appended or self.pads

    @property
    def readable(self) -> bool:
        """Whether a level can be built from its stored arrays, by `read`. Only such levels are read from files."""
        return self.appended

    @property
    def unique(self) -> bool:
        """Whether a stored coordinate stands once in its fiber. Otherwise it stands once for each entry of the levels that follow."""
        return True

    @property
    def public(self) -> str | None:
        """Its name for readers of the public protobuf schema. None: they have no such level, and take it for another."""
        return None

    @property
    def mlir(self) -> str | None:
        """What `sparse_tensor` encodings of MLIR call it; None: they have no such level."""
        return None

    @abstractmethod
    def arrays(self, size: int) -> tuple[StoredArray, ...]:
        """The arrays that are stored for a dimension of `size` coordinates; none if references are computed."""

    def reads(self, size: int) -> Reads:
        """The requests of a scan to memory. Raises `TensorError` for arrays that no scan can read."""
        arrays = self.arrays(size)
        scanned = tuple(array for array in arrays if array.scanned)
        match [array for array in arrays if array.entry]:
            case []:
                return Reads(scanned)
            case [entries] if len(scanned) < 2:
                return Reads(scanned, entries)
        raise TensorError(
            f"no scan reads the arrays of a {self.text} level: one with entries, and one that says where they are, at most"
        )

    def points(self, size: int) -> tuple[StoredArray, ...]:
        """The arrays that a locate reads, each at the same element. Raises `TensorError` if the elements would differ."""
        arrays = tuple(array for array in self.arrays(size) if array.told)
        if len({(array.fiber, array.told) for array in arrays}) > 1:
            raise TensorError(f"no locate reads the arrays of a {self.text} level: their elements tell of different coordinates")
        return arrays

    @property
    def stored(self) -> bool:
        """Whether the level stores any array. If so, a scan or a locate reads memory, and a writer writes to it."""
        return bool(self.arrays(1))

    def expected(self, size: int, density: float) -> float:
        """The expected number of coordinates of a fiber, if this share of its dimension is stored somewhere."""
        return float(size if self.full else size * density)

    @abstractmethod
    def pack(self, size: int, parents: int, refs: Ints, prefixes: Ints, crds: Ints) -> tuple[Fibers, Ints]:
        """Store coordinates below parent references.

        `refs` (parent of each entry, ascending, below `parents`), `prefixes` (equal for entries with the same coordinates in all
        levels above) and `crds` (its coordinate, ascending within a prefix) have one element for each stored value of the
        tensor. Returns the fibers and the reference of each entry in the next level. Raises `Overfull`.
        """

    def append(self, size: int, parents: int, pos: Ints, crd: Coordinates) -> Fibers:
        """The fibers of a level that was written: coordinates crd[pos[r]..pos[r+1]) below reference r, of `parents` references. Only if
        `appended`."""
        self._not_appended()

    def read(self, size: int, parents: int, arrays: Mapping[str, Ints]) -> Fibers:
        """The fibers that these arrays hold, by name. Raises `Unreadable`. Only if `readable`."""
        self._not_appended()

    def _not_appended(self) -> NoReturn:
        raise NotImplementedError(f"a {self.text} level is not built from its own arrays")


def narrowed(crds: Coordinates, size: int) -> Coordinates:
    """Return coordinates of a dimension of this size as they are kept: in 32 bits if every coordinate of the dimension fits."""
    return crds.astype(np.int32 if size <= NARROW_SIZE else np.int64, copy=False)


def run_starts(*columns: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
    """Return where a row of some columns differs from the row before it. The first row does."""
    starts = np.ones(len(columns[0]), dtype=bool)
    starts[1:] = reduce(np.logical_or, (column[1:] != column[:-1] for column in columns))
    return starts


def segments(counts: Ints) -> tuple[Ints, Ints]:
    """Return for every entry of fibers of these lengths the index of its fiber and its position within it.

    >>> [x.tolist() for x in segments(np.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    owner = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    starts = np.cumsum(counts) - counts
    return owner, np.arange(len(owner), dtype=np.int64) - starts[owner]
