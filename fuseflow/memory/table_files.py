"""Tables of DRAMs are read from YAML: the presets that ship with the package, and tables in the user's machine files. Every fault is
an error that names its key, and docs/reference/machine-files.md describes the keys."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from fuseflow.errors import MachineError, did_you_mean
from fuseflow.memory.dram_table import (
    CHANNEL,
    CONTROLLERS,
    LEVELS,
    MOST_CYCLES,
    REFRESHES,
    DataClock,
    Distance,
    DramTable,
    Fault,
    Lpddr5,
    RefreshKind,
    faults,
)
from fuseflow.yaml_text import read_yaml, shipped_names, shipped_text

NUMBERS = (
    "cycle_ps",
    "channels",
    "transaction",
    "bytes_per_cycle",
    "rows",
    "row_bytes",
    "read_latency",
    "read_queue",
    "write_queue",
)
"""The keys of a table that are whole numbers, and fields of `DramTable` of the same name."""
KEYS = ("base", "controller", *NUMBERS, "levels", "command_cycles", "lpddr5", "distances", "refresh", "measured", "row_cycles")
OPTIONAL = ("base", "command_cycles", "lpddr5", "refresh", "measured", "row_cycles")
OTHER = "other_"
"""The prefix of a scope whose distances are between siblings. For example, `other_rank` is from one rank to another."""
FOUR_ACTIVATES = "FAW"
"""The key of the distance from an ACT to the fourth ACT after it."""
MOST_NUMBER = (1 << 31) - 1
"""The largest number of a table. Most numbers have stricter bounds."""
PATTERNS = ("sequential", "strided", "random")


@dataclass(frozen=True, slots=True)
class BandwidthShares:
    """The shares of the peak, in percent, that a memory moves at three patterns of reads at saturation: lines in order, lines 4 KB apart,
    and random lines. The command that measured them is `tools/bench/memory_shares.py`."""

    sequential: float
    strided: float
    random: float


@dataclass(frozen=True, slots=True)
class TableFile:
    """The content of a table file: the table of each kind of refresh that the file has, the usual kind first, and what was measured with
    each. `row_cycles` is the number of cycles for which a channel moves nothing where a line opens a row, as estimates count it; without
    it they take what a random line takes longer than one in order."""

    tables: tuple[DramTable, ...]
    measured: tuple[tuple[RefreshKind, BandwidthShares], ...] = ()
    row_cycles: float | None = None

    def table(self, refresh: RefreshKind | None = None) -> DramTable:
        """Return the table with a kind of refresh (None: the usual one). Raises `TableError` for a kind that the file does not have."""
        table = next((table for table in self.tables if refresh in (None, table.refresh)), None)
        if table is None:
            kinds = ", ".join(table.refresh for table in self.tables)
            raise TableError((), f"`{self.tables[0].name}` has no refresh `{refresh}`", hint=f"it has {kinds}")
        return table

    def shares(self, refresh: RefreshKind) -> BandwidthShares | None:
        """Return what was measured with a kind of refresh, or with another one if nothing was. None if nothing was with any."""
        return dict(self.measured).get(refresh) or next((shares for _, shares in self.measured), None)


class TableError(MachineError):
    """A table of a DRAM is wrong at the key to which `keys` lead from the top of the table."""

    def __init__(self, keys: tuple[str, ...], message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.keys = keys


def preset_names() -> tuple[str, ...]:
    """Return the names of the presets, sorted."""
    return shipped_names("fuseflow.memory", "presets")


@cache
def preset(name: str) -> TableFile:
    """Return a preset by its name. Raises `MachineError` for an unknown name."""
    if name not in preset_names():
        raise MachineError(f"there is no memory `{name}`", hint=did_you_mean(name, preset_names()))
    return read_table(_preset_text(name), f"{name}.yaml", name)


def _preset_text(name: str) -> str:
    return shipped_text("fuseflow.memory", "presets", name)


def read_table(text: str, file: str, name: str) -> TableFile:
    """Return the tables of a YAML text. `file` and `name` are named in errors and tables. Raises `TableError` with the line."""
    data = read_yaml(text, file, MachineError)
    try:
        return table_file(data.content, name)
    except TableError as error:
        path = ".".join(error.keys)
        error.message, error.span = f"`{path}`: {error.message}" if path else error.message, data.place(*error.keys)
        raise


def table_file(content: object, name: str) -> TableFile:
    """Return the tables that a mapping describes. Raises `TableError` for unknown and missing keys and all faults of a table."""
    values = _mapping((), content)
    _known((), values, KEYS)
    if "base" in values:
        values = _on_base(values)
    for key in KEYS:
        if key not in values and key not in OPTIONAL:
            raise TableError(
                (), f"the key `{key}` is missing", hint=f"or name a preset as the `base`: {', '.join(preset_names())}"
            )
    refreshes = _mapping(("refresh",), values.get("refresh", {}))
    _known(("refresh",), refreshes, [kind for kind in REFRESHES if kind != "none"])
    plain, places = _plain_table(values, name)
    _check(plain, places)
    kinds = sorted((kind for kind in REFRESHES if kind in refreshes), key=[*refreshes].index)
    tables = [_with_refresh(plain, places, kind, refreshes[kind]) for kind in kinds]
    return TableFile((*tables, plain), tuple(_measured(values)), _row_cycles(values))


def _on_base(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of the preset that is the base of a table, replaced by what the table has of its own. Scopes are merged."""
    base = values["base"]
    if base not in preset_names():
        raise TableError(("base",), f"there is no memory `{base}`", hint=did_you_mean(str(base), preset_names()))
    own = {key: value for key, value in values.items() if key != "base"}
    return _merged(_mapping((), read_yaml(_preset_text(base), base, MachineError).content), own)


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with the entries of `own` in place of those of `base`. Mappings in both are merged, but levels have an order,
    and are replaced."""
    values = dict(base)
    for key, value in own.items():
        inside = values.get(key)
        values[key] = value
        if isinstance(inside, Mapping) and isinstance(value, Mapping) and key != "levels":
            values[key] = _merged(inside, value)
    return values


Places = tuple[tuple[str, ...], ...]
"""The keys that lead to each distance of a table."""


def _plain_table(values: Mapping[str, Any], name: str) -> tuple[DramTable, Places]:
    """Return a table without refresh, and where its distances stand."""
    numbers = {key: _number((key,), values[key]) for key in NUMBERS}
    levels = _numbers(("levels",), values["levels"])
    _known(("levels",), levels, LEVELS)
    controller = values["controller"]
    if controller not in CONTROLLERS:
        raise TableError(
            ("controller",), f"there is no controller `{controller}`", hint=did_you_mean(str(controller), CONTROLLERS)
        )
    entries = list(_distances(("distances",), values["distances"], tuple(levels), "ACT1" if controller == "lpddr5" else "ACT"))
    table = DramTable(
        name=name,
        controller=controller,
        refresh="none",
        levels=tuple(levels.items()),
        distances=tuple(distance for _, distance in entries),
        command_cycles=tuple(_numbers(("command_cycles",), values.get("command_cycles", {})).items()),
        lpddr5=_lpddr5(values["lpddr5"]) if "lpddr5" in values else None,
        **numbers,
    )
    return table, tuple(keys for keys, _ in entries)


def _with_refresh(plain: DramTable, places: Places, kind: RefreshKind, content: object) -> DramTable:
    """Return a table with a kind of refresh, whose period and distances are in `content`."""
    above = ("refresh", kind)
    values = _mapping(above, content)
    if "period" not in values:
        raise TableError(above, "the key `period` is missing")
    period = _number((*above, "period"), values["period"])
    scopes = {key: value for key, value in values.items() if key != "period"}
    entries = list(_distances(above, scopes, tuple(name for name, _ in plain.levels), plain.activate))
    distances = (*plain.distances, *(distance for _, distance in entries))
    table = replace(plain, refresh=kind, refresh_period=period, distances=distances)
    _check(table, (*places, *(keys for keys, _ in entries)))
    return table


def _check(table: DramTable, places: Places) -> None:
    fault = next(faults(table), None)
    if fault is not None:
        raise TableError(_keys(table, fault, places), fault.message, hint=fault.hint)


def _keys(table: DramTable, fault: Fault, places: Places) -> tuple[str, ...]:
    """Return the keys that lead to a fault of a table."""
    if fault.distance is not None:
        return places[fault.distance]
    if fault.field == "refresh_period":
        return ("refresh", table.refresh, "period")
    if fault.field == "distances" and table.refresh != "none":
        return ("refresh", table.refresh)  # the table without it was checked before
    return (fault.field,)


def _distances(
    above: tuple[str, ...], content: object, levels: tuple[str, ...], activate: str
) -> Iterator[tuple[tuple[str, ...], Distance]]:
    """Yield the distances of a mapping from scopes to distances, each with the keys that lead to it."""
    scopes = (CHANNEL, *levels)
    for key, pairs in _mapping(above, content).items():
        _known(above, (key,), (*scopes, *(f"{OTHER}{level}" for level in levels)))
        scope, siblings = key.removeprefix(OTHER), key.startswith(OTHER)
        for pair, cycles in _numbers((*above, key), pairs).items():
            keys = (*above, key, pair)
            if pair == FOUR_ACTIVATES:
                yield keys, Distance(scope, (activate,), (activate,), cycles, 4, siblings)
                continue
            first, dash, then = pair.partition("-")
            if not dash:
                raise TableError(keys, "is no distance", hint="write FIRST-THEN, such as `ACT-RD`, `RD-RD/WR`, or `FAW`")
            yield keys, Distance(scope, tuple(first.split("/")), tuple(then.split("/")), cycles, 1, siblings)


def _lpddr5(content: object) -> Lpddr5:
    values = _mapping(("lpddr5",), content)
    keys = ("activation", "data_clock")
    _known(("lpddr5",), values, keys)
    _all(("lpddr5",), values, keys)
    activation = _number(("lpddr5", "activation"), values["activation"])
    if values["data_clock"] == "always":
        return Lpddr5(activation, None)
    above = ("lpddr5", "data_clock")
    clock = _numbers(above, values["data_clock"])
    _known(above, clock, ("after_read", "after_write"))
    _all(above, clock, ("after_read", "after_write"))
    return Lpddr5(activation, DataClock(**clock))


def _measured(values: Mapping[str, Any]) -> Iterator[tuple[RefreshKind, BandwidthShares]]:
    """Yield the shares that were measured with each kind of refresh."""
    measured = _mapping(("measured",), values.get("measured", {}))
    _known(("measured",), measured, REFRESHES)
    for kind in REFRESHES:
        if kind in measured:
            yield kind, _shares(("measured", kind), measured[kind])


def _shares(above: tuple[str, ...], content: object) -> BandwidthShares:
    shares = _mapping(above, content)
    _known(above, shares, PATTERNS)
    _all(above, shares, PATTERNS)
    for key, share in shares.items():
        if not isinstance(share, int | float) or isinstance(share, bool) or not 0 < share <= 100:
            raise TableError((*above, key), f"must be a share of the peak in percent, not `{share}`")
    return BandwidthShares(**shares)


def _row_cycles(values: Mapping[str, Any]) -> float | None:
    cycles = values.get("row_cycles")
    if cycles is not None and (not isinstance(cycles, int | float) or isinstance(cycles, bool) or not 0 <= cycles <= MOST_CYCLES):
        raise TableError(("row_cycles",), f"must be a number of cycles, 0 to {MOST_CYCLES:,}, not `{cycles}`")
    return cycles


def _mapping(keys: tuple[str, ...], value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TableError(keys, "must be a mapping")
    return {str(key): inside for key, inside in value.items()}


def _numbers(keys: tuple[str, ...], value: object) -> dict[str, int]:
    return {key: _number((*keys, key), inside) for key, inside in _mapping(keys, value).items()}


def _number(keys: tuple[str, ...], value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_NUMBER:
        raise TableError(keys, f"must be a whole number, 0 to {MOST_NUMBER:,}, not `{value}`")
    return int(value)


def _known(above: tuple[str, ...], keys: Collection[str], known: Collection[str]) -> None:
    for key in keys:
        if key not in known:
            raise TableError((*above, key), "unknown key", hint=did_you_mean(key, known))


def _all(above: tuple[str, ...], keys: Collection[str], needed: Collection[str]) -> None:
    for key in needed:
        if key not in keys:
            raise TableError(above, f"the key `{key}` is missing")
