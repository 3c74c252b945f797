"""The declarations of a graph beside its nodes: the streams by port and type, and the tensors that nodes read and write."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Literal, NamedTuple, TypeAlias, get_args

from fuseflow.errors import GraphError, did_you_mean
from fuseflow.ops import Precision, canonical
from fuseflow.tensors import DTYPES, Format
from fuseflow.tensors.levels.base import StoredArray
from fuseflow.tile_ops import TileShape

Kind: TypeAlias = Literal["crd", "ref", "val"]

KINDS: tuple[Kind, ...] = get_args(Kind)
UNBOUNDED = 1 << 62
"""The bound of the coordinates of streams that hold none."""


class Port(NamedTuple):
    """One output of a node. It is a tuple because tables and graphs are full of dictionaries of ports."""

    node: str
    output: int = 0


class StreamType(NamedTuple):
    """What a stream carries and how deep its lists are nested. `tile`: the shape of its values, () for scalars."""

    kind: Kind
    depth: int
    tile: TileShape = ()

    def __str__(self) -> str:
        tile = f", {show_tile(self.tile)}" if self.tile else ""
        return f"{self.kind}({self.depth}{tile})"


class StreamPattern(NamedTuple):
    """A stream of a primitive, or several. `number` is "" for one, `?` if it may be missing, `*` for any number, and `+` for one at each of
    several levels, outermost first. `kinds` are such as `crd`, `ref or val` or `any`, or name an input of the same type. Depths of equal
    text are equal; "" is any depth."""

    name: str
    number: str
    kinds: str
    depth: str


_PATTERN = re.compile(r"(\w+)([?*+]?): (\w+\+?(?: or \w+)*)(?:\(([^)]*)\))?")


@cache
def stream_patterns(streams: str) -> tuple[tuple[StreamPattern, ...], tuple[StreamPattern, ...]]:
    """Return the inputs and the outputs that a text such as `parent: ref(d) -> crd: crd(d+1), ref: ref(d+1)` declares.

    >>> stream_patterns("stream: any -> outs*: stream")[1]
    (StreamPattern(name='outs', number='*', kinds='stream', depth=''),)
    """
    inputs, _, outputs = streams.partition("->")
    return tuple(StreamPattern(*p) for p in _PATTERN.findall(inputs)), tuple(StreamPattern(*p) for p in _PATTERN.findall(outputs))


@cache
def input_kinds(streams: str) -> tuple[str, ...]:
    """Return the kinds of the inputs in a text that `stream_patterns` reads, in order."""
    return tuple(pattern.kinds for pattern in stream_patterns(streams)[0])


@cache
def output_types(streams: str) -> tuple[tuple[Kind | int, int], ...]:
    """Return the kind and the levels beyond the depth `d` of each output in a text that `stream_patterns` reads. In place of the kind is
    the number of the input of the same type.

    >>> output_types("parent: ref(d) -> crd: crd(d+1), ref: ref(d+1)")
    (('crd', 1), ('ref', 1))
    """
    inputs, outputs = stream_patterns(streams)
    like: dict[str, Kind | int] = {pattern.name: k for k, pattern in enumerate(inputs)}
    like |= {kind: kind for kind in KINDS}
    return tuple((like[output.kinds], int(output.depth.removeprefix("d") or 0)) for output in outputs)


@cache
def output_names(streams: str) -> tuple[str, ...]:
    """Return the names of the outputs in a text that `stream_patterns` reads, in order."""
    return tuple(pattern.name for pattern in stream_patterns(streams)[1])


def show_tile(tile: TileShape) -> str:
    """Return the shape of a tile as text, such as `2x3`."""
    return "x".join(map(str, tile))


Transfer: TypeAlias = Literal["", "kept", "moved", "ahead", "behind"]
"""How a tensor comes into the scratchpad and leaves it; "" for one that is not there."""
TRANSFERS: tuple[Transfer, ...] = get_args(Transfer)


def transfer(word: str) -> Transfer:
    """Return the transfer of a name. Raises `GraphError` for another word."""
    for known in TRANSFERS:
        if word == known:
            return known
    raise GraphError(f"`{word}` is no place in the scratchpad", hint=did_you_mean(word, TRANSFERS[1:]))


@dataclass(frozen=True, slots=True)
class TensorDecl:
    """A tensor that the graph reads or writes. With a `tile`, every value is a tile of that shape, and `shape` counts tiles.

    `outer` names a tensor of which the outermost levels are those of this one too, and says how many. Both are reached by one scan of
    these levels. A tensor that is `like` another one has all levels of that one. A part of a tensor has some of them while it is
    simulated, which no written form of a graph can say (`standalone`).

    A `resident` tensor lies in the configuration of the accelerator: it is read there, without a request to the memory. The ports that
    read a tensor with a `buffer` have a reuse buffer of at most so many bytes each. A tensor with a `preload` is read once, in order, by so
    many ports, into a memory of each node that reads it.

    A tensor with a `scratchpad` lies in that. If it is `moved`, it is loaded from the memory before the graph begins, or stored there
    when it has ended; if it is `kept`, it was there before, or is left there. No node uses a tensor that is loaded `ahead` for the next
    graph, or stored `behind` the last one, while this graph runs.
    """

    name: str
    shape: tuple[int, ...]
    format: Format
    dtype: str = "f32"
    fill: float = 0.0
    tile: TileShape = ()
    outer: tuple[str, int] | None = None
    resident: bool = False
    buffer: int = 0
    preload: int = 0
    scratchpad: Transfer = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fill", canonical(self.fill))

    @property
    def placement(self) -> tuple[bool, int, int, Transfer]:
        """Where it lies and how it is read: whether it is resident, the bytes of its reuse buffers, the ports of its preload, and its
        place in the scratchpad."""
        return self.resident, self.buffer, self.preload, self.scratchpad

    @property
    def like(self) -> str:
        """The tensor of which it has all levels, so that only its values are its own; "" if there is none."""
        return self.outer[0] if self.outer is not None and self.outer[1] == self.format.rank else ""

    @property
    def flat(self) -> bool:
        """Whether it is the vector of the values that a tensor stores, in order. A graph that needs no coordinates reads and writes no
        more of the tensors that are `like` one, and of that one itself."""
        return bool(self.like) and self.format.all_dense

    def with_structure_of(self, tensor: str) -> TensorDecl:
        """Return the declaration with all levels those of another tensor; as it is for ""."""
        return replace(self, outer=(tensor, self.format.rank)) if tensor else self

    def standalone(self) -> TensorDecl:
        """Return the declaration, for a written form of a graph. Raises `GraphError` if the tensor shares levels of another
        (`outer`), and not all of them."""
        if self.outer is not None and not self.like:
            raise GraphError(f"tensor `{self.name}` has levels of `{self.outer[0]}`, and no written form of a graph can say so")
        return self

    def level_tensor(self, level: int) -> str:
        """Return the tensor that a scan of a level names: another one if the level is shared with that (`outer`)."""
        return self.outer[0] if self.outer is not None and level < self.outer[1] else self.name

    @property
    def element_bits(self) -> int:
        """The bits of one element in accelerator memory."""
        return DTYPES[self.dtype].bits

    @property
    def precision(self) -> Precision:
        """The precision in which operators on elements of the tensor compute."""
        return DTYPES[self.dtype].precision

    @property
    def value_bits(self) -> int:
        """The bits of one value in accelerator memory: of an element, or of all elements of a tile."""
        return self.element_bits * prod(self.tile)

    def size(self, level: int) -> int:
        """Return the number of coordinates that a storage level can have."""
        return self.shape[self.format.order[level]]

    def is_single(self, level: int) -> bool:
        """Return whether each fiber of a storage level has exactly one coordinate, so references below equal those above."""
        return self.format.levels[level].full and self.size(level) == 1

    @property
    def level_sizes(self) -> tuple[int, ...]:
        """The number of coordinates that each storage level can have, outermost first."""
        return tuple(self.shape[d] for d in self.format.order)

    def stored_arrays(self, level: int) -> tuple[StoredArray, ...]:
        """Return the arrays in memory that a storage level consists of."""
        return self.format.levels[level].arrays(self.size(level))

    def room(self, level: int) -> int | None:
        """Return the number of entries of every fiber of a storage level that pads its fibers to one size, or None for another
        level. Level -1 is the innermost, whose entries are the values."""
        return self.format.levels[level].room(self.size(level)) if self.format.levels else None
