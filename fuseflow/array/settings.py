"""Array files: what tiles lie where, how many of them a primitive takes, and what its links, memories and configurations are.

    array:
      grid: {columns: 32, rows: 16}
      tiles: {pattern: PPPM, kinds: {P: PE, M: MEM}}
      ports: {kind: IO, side: north}
      footprint: onyx

is an array with the defaults of all else. docs/reference/array-files.md describes the keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from fuseflow.array.footprint import Footprint, footprint_names, footprint_of
from fuseflow.byte_sizes import parse_bytes
from fuseflow.errors import ArrayError, did_you_mean
from fuseflow.filesystem import read_text
from fuseflow.memory.setting_types import Strict
from fuseflow.samml.hops import MOST_TURNS
from fuseflow.yaml_text import YamlText, read_yaml, shipped_names, shipped_text

MOST_SIDE, MOST_TRACKS, MOST = 256, 64, 1 << 20
"""The largest number of columns or rows, of tracks, and of any other number of a file."""
Side: TypeAlias = Literal["north", "south", "west", "east"]
SIDES: tuple[Side, ...] = get_args(Side)
KindName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,15}$")]
WholeNumber = Annotated[int, Field(ge=0, le=MOST, strict=True)]
Positive = Annotated[int, Field(ge=1, le=MOST, strict=True)]
Extent = Annotated[int, Field(ge=1, le=MOST_SIDE, strict=True)]


def _bytes(value: Any) -> Any:
    try:
        return parse_bytes(str(value))
    except ValueError as error:
        raise PydanticCustomError("bytes", "must be a number of bytes such as 4096 or 4KB") from error


class GridSize(Strict):
    """The tiles of an array, without its ports."""

    columns: Extent
    rows: Extent


class TilePattern(Strict):
    """The kind of each tile, a letter each: the columns of all rows (`pattern`), or of each row (`rows`), repeated over the array."""

    kinds: dict[Annotated[str, StringConstraints(min_length=1, max_length=1)], KindName]
    pattern: str = ""
    rows: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _one(self) -> Self:
        if bool(self.pattern) == bool(self.rows):
            raise PydanticCustomError("tiles", "must have either a `pattern` of columns or a list of `rows`")
        unknown = sorted({letter for row in self.letters for letter in row} - self.kinds.keys())
        if unknown:
            raise PydanticCustomError("tiles", f"the letter {unknown[0]!r} is not one of `kinds`: {', '.join(self.kinds)}")
        if len({len(row) for row in self.letters}) > 1 or not self.letters[0]:
            raise PydanticCustomError("tiles", "must have rows of equal length, of a letter at least")
        return self

    @property
    def letters(self) -> tuple[str, ...]:
        """The rows, of which there may be one."""
        return self.rows or (self.pattern,)

    def kind(self, column: int, row: int) -> str:
        """Return the kind of a tile."""
        letters = self.letters[row % len(self.letters)]
        return self.kinds[letters[column % len(letters)]]


def _sides(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class PortTiles(Strict):
    """Tiles beside the array that ask the memory: `each` of them at every column or row of a side. A port tile serves `share` streams in
    turn."""

    side: Annotated[
        tuple[Side, ...], BeforeValidator(_sides, json_schema_input_type=Side | tuple[Side, ...]), Field(min_length=1)
    ]
    kind: KindName = "IO"
    each: Annotated[int, Field(ge=1, le=4, strict=True)] = 1
    share: Annotated[int, Field(ge=1, le=MOST_TURNS, strict=True)] = 1


class TileMemory(Strict):
    """The kind of tiles that have a memory, and its bytes."""

    kind: KindName = "MEM"
    bytes: Annotated[int, BeforeValidator(_bytes, json_schema_input_type=int | str), Field(ge=1, le=1 << 30)] = 4096


class Hop(Strict):
    """The register of a link at each tile that it passes: its latency in cycles, and the tokens that it holds. Without slots it holds none
    that stand still: its reader's FIFO has a slot for each token under way."""

    latency: Annotated[int, Field(ge=1, le=1, strict=True)] = 1
    slots: Literal[0, 2] = 2


class ConfigurationSettings(Strict):
    """The words of a configuration, how many are loaded in a cycle, and the cycles until a region that ends has left the array."""

    words_per_tile: WholeNumber = 12
    words_per_hop: WholeNumber = 1
    words_per_cycle: Positive = 16
    drain: WholeNumber = 64

    def words(self, tiles: int, hops: int) -> int:
        """Return the words of the configuration of a graph."""
        return self.words_per_tile * tiles + self.words_per_hop * hops

    def cycles(self, tiles: int, hops: int = 0) -> int:
        """Return the cycles from the end of the graph before until one with so much is loaded."""
        return -(-self.words(tiles, hops) // self.words_per_cycle) + self.drain


DELAYS = ("up", "down", "across")
"""The ways through a switch box whose delays a file may state, beside those of kinds."""


class ArraySettings(Strict):
    """An array. `resident` is the number of regions that may lie on it at a time: with two, one is loaded while the one before runs, if
    both have room. `fifo_depth` is the slots of the FIFO in front of each input of a tile, and `tracks` the number of links from a tile to
    its neighbour in each direction. `delays_ps` has the delay of each kind of tile, and of the switch boxes, in picoseconds. `assumed`
    names the keys whose numbers have no source."""

    grid: GridSize
    tiles: TilePattern
    ports: PortTiles
    footprint: str | dict[str, dict[KindName, int | str]]
    name: str = "array"
    memory: TileMemory = TileMemory()
    fifo_depth: Positive = 2
    tracks: Annotated[int, Field(ge=1, le=MOST_TRACKS, strict=True)] = 5
    hop: Hop = Hop()
    resident: Annotated[int, Field(ge=1, le=2, strict=True)] = 1
    delays_ps: Annotated[dict[str, WholeNumber], Field(default_factory=dict)]
    load: ConfigurationSettings = ConfigurationSettings()
    assumed: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of tiles, those of the grid first, and then that of the ports."""
        return (*dict.fromkeys(self.tiles.kinds.values()), self.ports.kind)

    @cached_property
    def available(self) -> Mapping[str, int]:
        """The number of tiles of each kind."""
        size, tiles = self.grid, self.tiles
        counts = Counter(tiles.kind(x, y) for y in range(size.rows) for x in range(size.columns))
        along = sum(size.columns if side in ("north", "south") else size.rows for side in set(self.ports.side))
        return {**{kind: counts[kind] for kind in self.kinds}, self.ports.kind: self.ports.each * along}

    @cached_property
    def rows(self) -> Footprint:
        """The tiles that each primitive takes."""
        if isinstance(self.footprint, str):
            return footprint_of(self.footprint)
        return Footprint.of(self.footprint, f"the footprint of `{self.name}`")


def array_names() -> tuple[str, ...]:
    """Return the names of the arrays that ship with the package, sorted."""
    return shipped_names("fuseflow.array", "arrays")


def load_array(name_or_path: str | Path) -> ArraySettings:
    """Return an array that ships with the package, by its name, or one from a YAML file. Raises `ArrayError` with the line of a mistake
    and the nearest right name, or `FileError`.

    >>> load_array("onyx").grid.columns
    32
    """
    name, path = str(name_or_path), Path(name_or_path)
    if name in array_names():
        return _shipped(name)
    if path.suffix not in (".yaml", ".yml") and not path.is_file():
        raise ArrayError(f"there is no array `{name}`", hint=did_you_mean(name, array_names()))
    return read_array(read_text(path, "the array"), name)


@cache
def _shipped(name: str) -> ArraySettings:
    return read_array(shipped_text("fuseflow.array", "arrays", name), f"{name}.yaml")


def read_array(text: str, file: str = "<text>") -> ArraySettings:
    """Return the array that stands at the key `array` of a YAML text. `file` is named in errors. Raises `ArrayError`."""
    data = read_yaml(text, file, ArrayError)
    if not isinstance(data.content, Mapping) or "array" not in data.content:
        raise ArrayError(
            "the file has no key `array`",
            hint="write `array: {grid: ..., tiles: ..., ports: ..., footprint: ...}`",
            span=data.place(),
        )
    named = {} if file == "<text>" else {"name": Path(file).stem}
    content = data.content["array"]
    content = {**named, **content} if isinstance(content, Mapping) else content
    try:
        settings = ArraySettings.model_validate(content)
    except ValidationError as error:
        raise data.explain(error, _keys(error), "an array", ArrayError, ("array",)) from error
    _check(settings, data)
    return settings


def _keys(error: ValidationError) -> tuple[str, ...]:
    """Return the keys of the section in which the first problem lies."""
    section: Any = ArraySettings
    for step in error.errors(include_url=False)[0]["loc"][:-1]:
        inside = section.model_fields.get(str(step)) if section is not None else None
        inner = None if inside is None else inside.annotation
        section = inner if isinstance(inner, type) and issubclass(inner, Strict) else None
    return () if section is None else tuple(section.model_fields)


def _check(settings: ArraySettings, data: YamlText) -> None:
    """Refuse keys that do not fit each other: a pattern larger than the grid, and names that are not there, of footprints, and of kinds in
    footprints, memories, delays and `assumed`."""
    kinds, letters, grid = settings.kinds, settings.tiles.letters, settings.grid
    with data.blame("array", "tiles"):
        if len(letters[0]) > grid.columns or len(letters) > grid.rows:
            pattern = f"the pattern of {len(letters[0])} columns and {len(letters)} rows"
            raise ArrayError(f"{pattern} is larger than the grid of {grid.columns} columns and {grid.rows} rows")
    with data.blame("array", "ports"):
        if settings.ports.kind in settings.tiles.kinds.values():
            raise ArrayError(f"the kind `{settings.ports.kind}` of ports is one of tiles, too", hint="call it `IO`")
    with data.blame("array", "footprint"):
        if isinstance(settings.footprint, str) and settings.footprint not in footprint_names():
            raise ArrayError(
                f"there is no footprint `{settings.footprint}`", hint=did_you_mean(settings.footprint, footprint_names())
            )
        for kind in settings.rows.kinds:
            _known("the footprint has the kind", kind, kinds)
    with data.blame("array", "memory"):
        if "memory" in settings.model_fields_set:
            _known("memories are in tiles of the kind", settings.memory.kind, kinds)
    for place in settings.delays_ps:
        with data.blame("array", "delays_ps", place):
            _known("a delay is of", place, (*kinds, *DELAYS))
    for path in settings.assumed:
        with data.blame("array", "assumed"):
            _known("a number is assumed of", path.partition(".")[0], tuple(ArraySettings.model_fields))


def _known(what: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise ArrayError(f"{what} `{name}`, which the array does not have", hint=did_you_mean(name, names))
