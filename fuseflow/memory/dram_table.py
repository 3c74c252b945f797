"""Tables that describe a DRAM: its sizes, its queues and the distances between its commands. One model of a memory runs them all.

The shipped tables are in `presets/`. Times are in cycles of the memory's controller, which are `cycle_ps` picoseconds long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal, TypeAlias, get_args

from fuseflow.errors import did_you_mean

ControllerKind: TypeAlias = Literal["generic_ddr", "hbm12", "hbm34", "lpddr5"]
"""Which commands a cycle may have. `generic_ddr`: one command of any kind. `hbm12`: one RD or WR, and one row command. `hbm34`: a cycle
is half a clock; odd cycles are as in `hbm12`, and even cycles may have a PRE. `lpddr5`: one command of any kind; an activation takes
two commands, and a RD or WR needs a running data clock."""
RefreshKind: TypeAlias = Literal["all-bank", "per-bank", "none"]
"""What one refresh command refreshes: all banks below a node of `DramTable.refresh_scope`, or one bank."""

CONTROLLERS: tuple[ControllerKind, ...] = get_args(ControllerKind)
REFRESHES: tuple[RefreshKind, ...] = get_args(RefreshKind)
LEVELS = ("pseudo_channel", "rank", "sid", "bank_group", "bank")
"""The names that a level of a channel may have. `sid` is the stack identifier of a stack of dies."""
CHANNEL = "channel"
"""The scope of distances that hold in a whole channel. It stands above all levels."""
TRANSACTIONS = (32, 64)
"""The bytes that one RD or WR may move."""

MOST_BANKS, MOST_QUEUE, MOST_CHANNELS, MOST_CYCLES, MOST_PS = 128, 128, 32, 1 << 14, 100_000
MOST_ROWS, MOST_ROW_BYTES, MOST_CHANNEL_BYTES = 1 << 20, 1 << 14, 1 << 35


@dataclass(frozen=True, slots=True)
class Distance:
    """The least number of `cycles` from each command in `first` to each command in `then`.

    Both commands are in the same node of the level `scope`, or, with `siblings`, in two nodes of this level that have the same
    parent. With a `window` of w, cycles are counted from the w-th last command in `first`; for example 4 limits any five ACTs.
    PREab and REFab belong to every bank that they close or refresh. If a command takes several cycles on its bus, the distances to
    and from it already account for them."""

    scope: str
    first: tuple[str, ...]
    then: tuple[str, ...]
    cycles: int
    window: int = 1
    siblings: bool = False


@dataclass(frozen=True, slots=True)
class DataClock:
    """The data clock (WCK) of an LPDDR5 memory, which stops some cycles after the last access. A CAS command starts it again.

    It runs for `after_read` cycles after a RD, which are nCL + nBL_min + nWCKPST, and for `after_write` cycles after a WR, which are
    nCWL + nBL_min + nWCKPST."""

    after_read: int
    after_write: int


@dataclass(frozen=True, slots=True)
class Lpddr5:
    """What only LPDDR5 has. `activation` is the largest number of cycles from ACT1 to ACT2 (nAAD). `data_clock` is None if the data
    clock always runs; then there are no CAS commands."""

    activation: int
    data_clock: DataClock | None


@dataclass(frozen=True, slots=True)
class DramTable:
    """A DRAM and its controller. All numbers are of one channel, and the channels are alike and independent.

    `name` is the name of the preset, or of the file that has the table. `cycle_ps` is the length of a cycle in picoseconds. `channels` is
    the usual number of channels. `transaction` is the number of bytes that one RD or WR moves. `bytes_per_cycle` is the width of the
    data bus. `levels` are the names and sizes of the levels of a channel, from the most significant to `bank`; the number of a bank
    has their fields in this order. `rows` are the rows of a bank, and `row_bytes` the bytes of a row. `read_latency` is the number of
    cycles from a RD to the end of its data. `read_queue` and `write_queue` are numbers of requests. `command_cycles` are the commands
    that take more than one cycle on their bus, with this number. `refresh_period` is the number of cycles between two refreshes
    (nREFI or nREFIpb), 0 without refresh. `lpddr5` is there for the controller `lpddr5` only."""

    name: str
    controller: ControllerKind
    refresh: RefreshKind
    cycle_ps: int
    channels: int
    transaction: int
    bytes_per_cycle: int
    levels: tuple[tuple[str, int], ...]
    rows: int
    row_bytes: int
    read_latency: int
    read_queue: int
    write_queue: int
    distances: tuple[Distance, ...]
    command_cycles: tuple[tuple[str, int], ...] = ()
    refresh_period: int = 0
    lpddr5: Lpddr5 | None = None

    def __hash__(self) -> int:
        """Return a hash of few fields: tables are keys of caches, and most are the same object."""
        return hash((self.name, self.refresh, self.channels, self.read_queue, self.levels))

    @property
    def ticks_per_clock(self) -> int:
        """The number of cycles in a clock of the commands."""
        return 2 if self.controller == "hbm34" else 1

    @property
    def banks(self) -> int:
        """The number of banks of a channel."""
        return prod(size for _, size in self.levels)

    @property
    def column_bits(self) -> int:
        """The number of bits of a column, which chooses a transaction of a row."""
        return (self.row_bytes // self.transaction).bit_length() - 1

    @property
    def channel_bytes(self) -> int:
        """The capacity of a channel in bytes."""
        return self.banks * self.rows * self.row_bytes

    @property
    def peak(self) -> float:
        """The number of bytes that one channel moves in a nanosecond at most, which is also its number of GB/s."""
        return 1000 * self.bytes_per_cycle / self.cycle_ps

    @property
    def activate(self) -> str:
        """The name of the command that opens a row, from which distances are counted."""
        return "ACT1" if self.controller == "lpddr5" else "ACT"

    @property
    def refresh_scope(self) -> str:
        """The level whose nodes an all-bank refresh refreshes one after the other."""
        first = self.levels[0][0]
        return first if first in ("rank", "pseudo_channel") else CHANNEL

    @property
    def bus_scope(self) -> str:
        """The level whose nodes have a data bus each."""
        return "pseudo_channel" if self.levels[0][0] == "pseudo_channel" else CHANNEL

    def commands(self) -> tuple[str, ...]:
        """Return the names of all commands that the controller issues."""
        lpddr5 = ("ACT2", "CAS_RD", "CAS_WR") if self.controller == "lpddr5" else ()
        refreshes = {"all-bank": ("PREab", "REFab"), "per-bank": ("REFpb",), "none": ()}[self.refresh]
        return (self.activate, *lpddr5, "PREpb", "RD", "WR", *refreshes)

    def idle_reads(self) -> tuple[int, int, int]:
        """Return the cycles from the acceptance of a read to the end of its data in an idle channel: where the bank has the row open, is
        closed, and has another row open. With `hbm34` it is accepted in an even cycle, else it takes one more."""
        tick, clocked = self.ticks_per_clock, self.lpddr5 is not None and self.lpddr5.data_clock is not None
        hit = self.read_latency + 1 + clocked  # the clock of the data has stopped
        closed = hit + -(-self.least(self.activate, "RD") // tick) * tick
        return hit, closed, closed + -(-self.least("PREpb", self.activate) // tick) * tick

    def least(self, first: str, then: str, *scopes: str) -> int:
        """Return the largest number of cycles that a distance at one of the scopes (all scopes if none is given) demands from `first` to
        `then` in the same node; 0 without such a distance."""
        return max(
            (
                d.cycles
                for d in self.distances
                if first in d.first and then in d.then and d.window == 1 and not d.siblings and (not scopes or d.scope in scopes)
            ),
            default=0,
        )


@dataclass(frozen=True, slots=True)
class Fault:
    """A reason why a table is impossible: the field that is wrong, the reason and what would work. If the fault is in a distance, its
    position in `distances` is there too."""

    field: str
    message: str
    hint: str = ""
    distance: int | None = None


def faults(table: DramTable) -> Iterator[Fault]:
    """Yield everything for which a table is refused: impossible sizes first, then distances that are impossible or missing."""
    wrong = list(_sizes(table))
    yield from wrong
    if not wrong:  # else the levels and the commands are not known
        yield from _distances(table)
        yield from _missing(table)
        yield from _refresh(table)
        yield from _controller(table)


def _sizes(table: DramTable) -> Iterator[Fault]:
    if table.controller not in CONTROLLERS:
        yield Fault("controller", f"there is no controller `{table.controller}`", did_you_mean(table.controller, CONTROLLERS))
    if table.refresh not in REFRESHES:
        yield Fault("refresh", f"there is no refresh `{table.refresh}`", did_you_mean(table.refresh, REFRESHES))
    names = [name for name, _ in table.levels]
    for name in names:
        if name not in LEVELS:
            yield Fault("levels", f"there is no level `{name}`", did_you_mean(name, LEVELS))
    if not names or names[-1] != "bank" or sorted(names, key=_depth) != names or len(set(names)) < len(names):
        yield Fault("levels", "levels go from the outermost to `bank`", f"in the order of {', '.join(LEVELS)}")
    for name, size in table.levels:
        if not _power(size):
            yield Fault("levels", f"`{name}` has {size} nodes, which is no power of two")
    if all(_power(size) for _, size in table.levels) and table.banks > MOST_BANKS:
        yield Fault("levels", f"a channel has {table.banks} banks, and {MOST_BANKS} at most")
    if table.transaction not in TRANSACTIONS:
        yield Fault("transaction", f"a transaction has {' or '.join(map(str, TRANSACTIONS))} bytes, not {table.transaction}")
    for field, value, most in (("rows", table.rows, MOST_ROWS), ("row_bytes", table.row_bytes, MOST_ROW_BYTES)):
        if not (_power(value) and value <= most):
            yield Fault(field, f"must be a power of two, up to {most:,}, not {value}")
    if table.transaction > table.row_bytes:
        yield Fault("row_bytes", f"a row of {table.row_bytes} bytes is smaller than a transaction of {table.transaction}")
    if not (_power(table.channels) and table.channels <= MOST_CHANNELS):
        yield Fault("channels", f"must be a power of two, up to {MOST_CHANNELS}, not {table.channels}")
    for field, value, most in (
        ("cycle_ps", table.cycle_ps, MOST_PS),
        ("bytes_per_cycle", table.bytes_per_cycle, 1 << 12),
        ("read_latency", table.read_latency, MOST_CYCLES),
        ("read_queue", table.read_queue, MOST_QUEUE),
        ("write_queue", table.write_queue, MOST_QUEUE),
    ):
        if not 1 <= value <= most:
            yield Fault(field, f"must be a whole number, 1 to {most:,}, not {value}")
    if table.channel_bytes > MOST_CHANNEL_BYTES:
        yield Fault("rows", f"a channel has {table.channel_bytes >> 30:,} GB, and {MOST_CHANNEL_BYTES >> 30} GB at most")
    if table.controller == "lpddr5" and table.lpddr5 is None:
        yield Fault("lpddr5", "the controller `lpddr5` needs it", "write `lpddr5: {activation: 8, data_clock: always}`")
    if table.controller != "lpddr5" and table.lpddr5 is not None:
        yield Fault("lpddr5", f"the controller `{table.controller}` has no such part")


def _depth(level: str) -> int:
    return LEVELS.index(level) if level in LEVELS else 0


def _power(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _distances(table: DramTable) -> Iterator[Fault]:
    scopes = (CHANNEL, *(name for name, _ in table.levels))
    for k, distance in enumerate(table.distances):
        if distance.scope not in scopes:
            yield Fault(
                "distances", f"there is no scope `{distance.scope}` here", did_you_mean(distance.scope, scopes), distance=k
            )
        for command in (*distance.first, *distance.then):
            if command not in table.commands():
                hint = did_you_mean(command, table.commands())
                yield Fault("distances", f"there is no command `{command}` here", hint, distance=k)
        if not 0 <= distance.cycles <= MOST_CYCLES:
            message = f"must be a whole number of cycles, 0 to {MOST_CYCLES:,}, not {distance.cycles}"
            yield Fault("distances", message, distance=k)
        if distance.window not in (1, 4):
            yield Fault("distances", f"a window has 1 or 4 commands, not {distance.window}", distance=k)
        if distance.siblings and distance.scope == CHANNEL:
            yield Fault("distances", "channels are independent, so there is no distance between siblings", distance=k)
    for command, cycles in table.command_cycles:
        if command not in table.commands():
            yield Fault("command_cycles", f"there is no command `{command}` here", did_you_mean(command, table.commands()))
        if not 2 <= cycles <= 4:
            yield Fault("command_cycles", f"`{command}` takes 2 to 4 cycles, if it is named here, not {cycles}")


def required(table: DramTable) -> Iterator[tuple[str, str, str]]:
    """Yield the pairs of commands between which a table must have a distance, each with the scope at which it must hold."""
    act = table.activate
    yield from (("bank", act, then) for then in (act, "RD", "WR", "PREpb"))
    yield from (("bank", first, then) for first, then in (("PREpb", act), ("RD", "PREpb"), ("WR", "PREpb")))
    yield from ((table.bus_scope, command, command) for command in ("RD", "WR"))
    yield from ((table.levels[0][0] if _has_ranks(table) else table.bus_scope, *pair) for pair in (("RD", "WR"), ("WR", "RD")))
    if table.refresh == "per-bank":
        yield from (("bank", *pair) for pair in (("REFpb", act), (act, "REFpb"), ("PREpb", "REFpb")))
    if table.refresh == "all-bank":
        pairs = (("REFab", act), (act, "REFab"), ("PREab", "REFab"), ("PREab", act))
        yield from ((table.refresh_scope, *pair) for pair in pairs)
        yield from ((table.refresh_scope, first, "PREab") for first in (act, "RD", "WR"))


def _has_ranks(table: DramTable) -> bool:
    return table.levels[0][0] == "rank"


def _missing(table: DramTable) -> Iterator[Fault]:
    absent = [pair for pair in required(table) if table.least(*pair[1:], CHANNEL, *_above(table, pair[0])) == 0]
    for scope, first, then in absent[:1]:
        message = f"there is no distance from {first} to {then} in a {scope.replace('_', ' ')}"
        yield Fault("distances", message, f"write {_entries(absent)}")
    burst = table.transaction * dict(table.levels).get("pseudo_channel", 1) / table.bytes_per_cycle
    for command in ("RD", "WR"):
        cycles = table.least(command, command, CHANNEL, table.bus_scope)
        if 0 < cycles < burst:
            message = f"{command} after {cycles} cycles, but {table.transaction} bytes take {burst:g} on the data bus"
            at = _position(table, command, command, (CHANNEL, table.bus_scope))
            yield Fault("distances", message, f"{command}-{command} is at least {burst:g}", distance=at)


def _entries(pairs: Iterable[tuple[str, str, str]]) -> str:
    """Return what a table must have for pairs of commands at their scopes."""
    by_scope: dict[str, dict[str, None]] = {}
    for scope, first, then in pairs:
        by_scope.setdefault(scope, {})[f"{first}-{then}: CYCLES"] = None
    return ", ".join(f"`{scope}: {{{', '.join(entries)}}}`" for scope, entries in by_scope.items())


def _above(table: DramTable, scope: str) -> tuple[str, ...]:
    """Return the levels of a channel down to `scope`. A distance at any of them holds in each node of `scope`."""
    names = tuple(name for name, _ in table.levels)
    return names[: names.index(scope) + 1] if scope in names else ()


def _position(table: DramTable, first: str, then: str, scopes: tuple[str, ...]) -> int | None:
    return next((k for k, d in enumerate(table.distances) if first in d.first and then in d.then and d.scope in scopes), None)


def _refresh(table: DramTable) -> Iterator[Fault]:
    """Yield a fault for a refresh that takes longer than the time until the next one of the same banks."""
    if table.refresh == "none":
        if table.refresh_period:
            yield Fault("refresh_period", f"is {table.refresh_period}, but there is no refresh")
        return
    if not 1 <= table.refresh_period <= MOST_CYCLES:
        message = f"must be a whole number of cycles, 1 to {MOST_CYCLES:,}, not {table.refresh_period}"
        yield Fault("refresh_period", message)
        return
    all_banks = table.refresh == "all-bank"
    command, between = ("REFab", table.refresh_period) if all_banks else ("REFpb", table.refresh_period * table.banks)
    takes = table.least(command, table.activate)
    if takes >= between:
        message = f"a refresh takes {takes:,} cycles, but the next one of the same banks is due after {between:,}"
        least = takes // (between // table.refresh_period) + 1
        hint = f"write `period: {least}` or more, or a shorter {command}-{table.activate}"
        yield Fault("refresh_period", message, hint)


def _controller(table: DramTable) -> Iterator[Fault]:
    """Yield a fault where a rule of the controller matters that the model leaves out, since other distances are longer in all devices."""
    if table.lpddr5 is not None:
        for then in ("RD", "WR"):
            if (cycles := table.least("ACT1", then)) < table.lpddr5.activation:
                message = f"ACT2 may come {table.lpddr5.activation} cycles after ACT1, but a {then} {cycles} cycles after it"
                yield Fault("lpddr5", message, f"ACT1-{then} is at least as long")
    if table.controller != "hbm34":
        return
    closes = ("PREpb", "PREab") if table.refresh == "all-bank" else ("PREpb",)
    pairs = [(table.activate, then, 4) for then in closes] + [("PREpb", "PREab", 2)] * (len(closes) - 1)
    for first, then, least in pairs:
        if (cycles := table.least(first, then)) < least:
            yield Fault(
                "distances", f"{then} may not follow {first} after {cycles} cycles", f"{first}-{then} is at least {least}"
            )
    takes = table.least("REFpb", table.activate)
    if table.refresh == "per-bank" and dict(table.levels).get("sid", 1) == 1 and takes >= table.refresh_period:
        message = f"a refresh takes {takes:,} cycles, but with one stack the next round begins after {table.refresh_period:,}"
        yield Fault("refresh_period", message, "take `all-bank`, or a longer period")
