"""The memory settings of a machine, and the controller that is made from them. This module loads no compiler before a run needs
its memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache, cached_property, partial
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias, assert_never

from pydantic import (
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from fuseflow.errors import MachineError, did_you_mean
from fuseflow.memory import mapping as maps
from fuseflow.memory.dram_table import MOST_QUEUE, REFRESHES, TRANSACTIONS, DramTable, RefreshKind, faults
from fuseflow.memory.memory_interface import Controller
from fuseflow.memory.setting_types import MOST_LATENCY, MOST_LINE, Strict, number_in, whole_number
from fuseflow.memory.table_files import BandwidthShares, TableError, TableFile, preset, preset_names, table_file

if TYPE_CHECKING:
    from fuseflow.memory.memory import Memory

MOST_PARTS = 10_000
"""The largest numerator and denominator of the ratio of two clocks, so that products with cycles stay far inside 64 bits."""
MOST_LINES = 1 << 20
RANKS = (1, 2, 4, 8)


def _lines(least: int) -> BeforeValidator:
    return number_in(range(least, MOST_LINES + 1), f"must be a whole number of lines, {least} to {MOST_LINES:,}")


LINES = tuple(1 << k for k in range(TRANSACTIONS[0].bit_length() - 1, MOST_LINE.bit_length()))
"""The bytes that a line may have."""


def _clock(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
        quotes = ", without quotes" if isinstance(value, str) else ""
        raise PydanticCustomError("clock", f"must be a number of GHz above 0, such as 0.8{quotes}")
    return value


Clock = Annotated[float, BeforeValidator(_clock)]


class IdealMemory(Strict):
    """A memory that answers at once."""

    model: Literal["ideal"] = "ideal"


QUEUE = f"must be a whole number of requests, 1 to {MOST_QUEUE}"
_queue = number_in(range(1, MOST_QUEUE + 1), QUEUE)


def _queues(value: Any) -> Any:
    """Return the queues of a channel. One number is that of both."""
    if value is None or isinstance(value, Mapping | Queues):
        return value
    if whole_number(value) not in range(1, MOST_QUEUE + 1):
        raise PydanticCustomError(
            "queue", QUEUE, {"hint": "one number is that of both queues; else `queue: {read: 64, write: 32}`"}
        )
    return {"read": value, "write": value}


def _ranks(value: Any) -> Any:
    if value is not None and whole_number(value) not in RANKS:
        raise PydanticCustomError("ranks", f"must be one of {', '.join(map(str, RANKS))} ranks")
    return value


def _refresh(value: Any) -> Any:
    if value is None or (isinstance(value, str) and value in REFRESHES):
        return value
    raise PydanticCustomError("refresh", "there is no such refresh", {"hint": did_you_mean(str(value), REFRESHES)})


class OwnMapping(Strict):
    """An address mapping that a machine file spells out, as in `own_mapping`."""

    bits: tuple[str, ...]
    xor: dict[str, str] = Field(default_factory=dict)


def _mapping(value: Any) -> Any:
    if isinstance(value, OwnMapping) or (isinstance(value, str) and value in maps.MAPPINGS):
        return value
    if not isinstance(value, Mapping):
        raise PydanticCustomError("mapping", "there is no such mapping", {"hint": did_you_mean(str(value), maps.MAPPINGS)})
    hint = {"hint": "write `mapping: {bits: [column 1, channel, bank_group, column, bank, row], xor: {bank: row}}`"}
    bits, xor = value.get("bits"), value.get("xor", {})
    if value.keys() - {"bits", "xor"} or not isinstance(bits, list | tuple) or not isinstance(xor, Mapping):
        raise PydanticCustomError(
            "mapping", "must have `bits`, a list of fields, and may have `xor`, from fields to fields", hint
        )
    return OwnMapping(bits=tuple(map(str, bits)), xor={str(field): str(source) for field, source in xor.items()})


class TimedMemory(Strict):
    """A memory that takes time, and how nodes make requests of it. `line` is the number of bytes of a request. `prefetch` is the
    number of lines that are fetched ahead where an array is read in order. `outstanding` is the largest number of unanswered
    lines at one port."""

    line: Annotated[
        int,
        number_in(
            LINES,
            f"must be a power of two of bytes, {LINES[0]} to {MOST_LINE:,}, and at least one transaction of the memory",
        ),
    ] = 64
    prefetch: Annotated[int, _lines(0)] = 8
    outstanding: Annotated[int, _lines(1)] = 32


class FixedMemory(TimedMemory):
    """A memory that answers every request `latency` cycles later, however many requests there are."""

    model: Literal["fixed"] = "fixed"
    latency: Annotated[int, number_in(range(1, MOST_LATENCY + 1), f"must be a whole number of cycles, 1 to {MOST_LATENCY:,}")] = (
        32
    )


class ComalFixedMemory(TimedMemory):
    """The fixed pipe of the released Comal simulator. It is not HBM2, and ignores addresses."""

    model: Literal["comal_fixed"] = "comal_fixed"


class Queues(Strict):
    """The numbers of requests that wait in the controller of a channel."""

    read: Annotated[int, _queue]
    write: Annotated[int, _queue]


OWN_TABLE = "dram"
"""The model of a memory whose table stands in the machine file."""
HBM2 = "hbm2"
"""The only model with a setting for its clock; all others have the clock of their tables."""


class DramMemory(TimedMemory):
    """A DRAM, command by command (docs/explanation/memory.md).

    `model` is the name of a preset, or `dram` for a memory with a `table` of its own. `channels`, `ranks`, `queue` and `refresh` replace
    what the table says. `mapping` is the name of an address mapping, or a mapping of its own. `clock_ghz` is the clock of `hbm2`, and None
    for all others."""

    model: str = HBM2
    channels: Annotated[
        int, number_in(maps.CHANNEL_COUNTS, f"must be one of {', '.join(map(str, maps.CHANNEL_COUNTS))} channels")
    ] = 8
    mapping: Annotated[str | OwnMapping, BeforeValidator(_mapping)] = maps.DEFAULT_MAPPING
    clock_ghz: Clock | None = None
    ranks: Annotated[int | None, BeforeValidator(_ranks)] = None
    queue: Annotated[Queues | None, BeforeValidator(_queues)] = None
    refresh: Annotated[RefreshKind | None, BeforeValidator(_refresh)] = None
    table: dict[str, Any] | None = None

    def __hash__(self) -> int:
        """Leave out the fields that are mappings, which have no hash."""
        return hash((self.model, self.channels, self.line, self.prefetch, self.outstanding, self.refresh, self.clock_ghz))

    @cached_property
    def dram(self) -> DramTable:
        """The table of the memory, with what the settings replace."""
        table = _table_file(self.model, self.table).table(self.refresh)
        levels = [(name, self.ranks if name == "rank" and self.ranks else size) for name, size in table.levels]
        queue = self.queue or Queues(read=table.read_queue, write=table.write_queue)
        return replace(table, channels=self.channels, levels=tuple(levels), read_queue=queue.read, write_queue=queue.write)

    @cached_property
    def measured(self) -> BandwidthShares:
        """The shares of the peak that were measured of the memory with its refresh, or those of HBM2 if none were."""
        refresh = self.dram.refresh
        measured = _table_file(self.model, self.table).shares(refresh) or preset(HBM2).shares(refresh)
        assert measured is not None
        return measured

    @property
    def refreshes(self) -> tuple[RefreshKind, ...]:
        """The kinds of refresh that the memory may have, the usual one first."""
        return tuple(table.refresh for table in _table_file(self.model, self.table).tables)

    @property
    def row_cycles(self) -> float:
        """The cycles for which a channel moves nothing where a line opens a row, as estimates count them."""
        stated, shares = _table_file(self.model, self.table).row_cycles, self.measured
        if stated is not None:
            return stated
        return 100 * maps.LINE / self.dram.bytes_per_cycle * max(0.0, 1 / shares.random - 1 / shares.sequential)

    @cached_property
    def address_mapping(self) -> maps.AddressMapping:
        """The address mapping for the table of the memory."""
        if isinstance(self.mapping, OwnMapping):
            return maps.own_mapping(self.mapping.bits, self.mapping.xor, self.dram, self.channels)
        return maps.MAPPINGS[self.mapping](self.dram)

    def clock_hint(self, clock_ghz: float) -> str:
        """Return a hint for a clock of a machine that is not in step with this memory: a clock near it that is, or one of the memory."""
        for near in (round(clock_ghz, digits) for digits in (3, 2, 1)):
            if self._is_in_step(near):
                return f"`clock_ghz: {near}` is in step"
        if self.clock_ghz is None:
            return "change `clock_ghz`"
        for near in (round(self.clock_ghz, digits) for digits in (3, 2, 1)):
            if near > 0 and self.model_copy(update={"clock_ghz": near})._is_in_step(clock_ghz):
                return f"`memory.clock_ghz: {near}` is in step"
        return "change `clock_ghz` or `memory.clock_ghz`"

    def _is_in_step(self, clock_ghz: float) -> bool:
        try:
            return clock_ghz > 0 and self.cycles_in(clock_ghz) > 0
        except ValueError:
            return False

    def cycles_in(self, clock_ghz: float) -> Fraction:
        """Return the number of memory cycles in a cycle of a machine with this clock. Raises `ValueError` if the ratio is not one of small
        whole numbers."""
        if self.clock_ghz is not None:
            return clock_ratio(str(self.clock_ghz), str(clock_ghz))
        return clock_ratio(str(Fraction(1000, self.dram.cycle_ps)), str(clock_ghz))

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, values: Any) -> Any:
        """Add what follows from the table: the number of channels, and the clock of `hbm2`."""
        if not isinstance(values, Mapping):
            return values  # it is made already, or refused as it is
        values = dict(values)
        model = values.setdefault("model", OWN_TABLE if "table" in values else HBM2)
        try:
            usual = _table_file(model, values.get("table")).table()
        except TableError as error:
            raise _refused(error, "table", *error.keys) from error
        if model == HBM2 and values.get("clock_ghz") is None:
            values["clock_ghz"] = 1000 / usual.cycle_ps
        return {"channels": usual.channels, **values}

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        """Refuse settings that do not fit each other, or the table."""
        if self.model != HBM2 and self.clock_ghz is not None:
            hint = "write `table: {base: " + self.model + ", cycle_ps: 400}` for another clock"
            raise _refused(MachineError("only `hbm2` has this key", hint=hint), "clock_ghz")
        usual = _table_file(self.model, self.table)
        try:
            plain = usual.table(self.refresh)
        except TableError as error:
            raise _refused(error, "refresh") from error
        if self.ranks and "rank" not in dict(plain.levels):
            hint = f"leave it out; those with ranks are {', '.join(_with_ranks())}"
            raise _refused(MachineError(f"`{self.model}` has no ranks", hint=hint), "ranks")
        table = self.dram
        fault = next(faults(table), None)
        if fault is not None:
            hint = fault.hint or ("write fewer ranks" if self.ranks else "")
            raise _refused(MachineError(fault.message, hint=hint), "ranks" if self.ranks else fault.field)
        if self.line < table.transaction:
            message = (
                f"a line of {self.line} bytes is smaller than a transaction of `{self.model}`, which has {table.transaction}"
            )
            raise _refused(MachineError(message, hint=f"write `line: {table.transaction}`, or more"), "line")
        try:
            _ = self.address_mapping
        except MachineError as error:
            raise _refused(error, "mapping") from error
        return self

    @model_serializer(mode="wrap")
    def _given(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out the settings that are as in the table."""
        return {key: value for key, value in serialize(self).items() if value is not None}


def _refused(error: MachineError, *below: str) -> PydanticCustomError:
    """Return an error as pydantic takes it, for the setting to which the keys lead."""
    return PydanticCustomError("table", error.message, {"hint": error.hint, "below": below})


def _with_ranks() -> tuple[str, ...]:
    """Return the presets whose channels have ranks."""
    return tuple(name for name in preset_names() if "rank" in dict(preset(name).table().levels))


def _table_file(model: str, own: Mapping[str, Any] | None) -> TableFile:
    """Return the tables of a model: those of a preset, or those in the machine file."""
    if model != OWN_TABLE:
        if own is not None:
            raise TableError((), f"`{model}` has a table already", hint=f"write `table: {{base: {model}, ...}}` without a model")
        return preset(model)
    if own is None:
        raise TableError((), "the key `table` is missing", hint="write `table: {base: ddr5-4800, read_queue: 64}`")
    return table_file(own, OWN_TABLE)


MemorySettings: TypeAlias = IdealMemory | FixedMemory | ComalFixedMemory | DramMemory
MEMORY_KINDS: dict[str, type[MemorySettings]] = {
    "ideal": IdealMemory,
    "fixed": FixedMemory,
    "comal_fixed": ComalFixedMemory,
    OWN_TABLE: DramMemory,
}
"""The settings of each kind of memory. A new kind is a class above, a model in `models.py` and a line in `controller`."""


def memory_models() -> tuple[str, ...]:
    """Return the names that `memory` may have in a machine file: those of kinds of memories, and those of presets."""
    return (*MEMORY_KINDS, *preset_names())


def memory_kind(settings: Any) -> str:
    """Return the key in `MEMORY_KINDS` for settings of a memory, whose model must be known."""
    model = settings["model"] if isinstance(settings, Mapping) else settings.model
    return model if model in MEMORY_KINDS else OWN_TABLE


AnyMemory = Annotated[
    Annotated[IdealMemory, Tag("ideal")]
    | Annotated[FixedMemory, Tag("fixed")]
    | Annotated[ComalFixedMemory, Tag("comal_fixed")]
    | Annotated[DramMemory, Tag(OWN_TABLE)],
    Discriminator(memory_kind),
]
"""The settings of any kind of memory, as a field of a machine."""


def memory_settings(value: Any) -> Any:
    """Return the memory settings of a machine file (`value`) as a mapping with the key `model`. The file may have such a mapping,
    or only the name of a model; a mapping with a `table` needs no model. Raises a pydantic error for anything else."""
    if isinstance(value, BaseModel):
        return value
    below = ("model",) if isinstance(value, Mapping) else ()  # the key that is refused
    if isinstance(value, str):
        value = {"model": value}
    if isinstance(value, Mapping) and "table" in value:
        value = {"model": OWN_TABLE, **value}
    if not isinstance(value, Mapping) or "model" not in value:
        hint = {"hint": "write `memory: hbm2`, or a mapping: `memory: {model: hbm2, channels: 8}`"}
        raise PydanticCustomError("memory", "must name a model: " + ", ".join(memory_models()), hint)
    if not isinstance(value["model"], str) or value["model"] not in memory_models():
        model = "null" if value["model"] is None else value["model"]
        context = {"hint": did_you_mean(str(model), memory_models()), "below": below}
        raise PydanticCustomError("memory", f"there is no memory model `{model}`", context)
    return dict(value)


@cache
def clock_ratio(memory_ghz: str, machine_ghz: str) -> Fraction:
    """Return the number of memory cycles in a cycle of the machine. Raises `ValueError` if it is no ratio of small whole numbers."""
    ratio = Fraction(memory_ghz) / Fraction(machine_ghz)
    if max(ratio.numerator, ratio.denominator) > MOST_PARTS:
        raise ValueError(
            f"a memory of {float(Fraction(memory_ghz))} GHz is not in step with a machine of {machine_ghz} GHz: clocks must be in a "
            f"ratio of whole numbers up to {MOST_PARTS:,}"
        )
    return ratio


UNBOUNDED = 1 << 35
"""The bytes of a memory whose model ignores addresses."""


def controller(settings: MemorySettings, clock_ghz: float) -> Controller | None:
    """Return the controller of the memory for a new run at `clock_ghz`, the machine's clock, or None if it answers at once."""
    if isinstance(settings, IdealMemory):
        return None
    capacity = UNBOUNDED
    if isinstance(settings, DramMemory):
        capacity = settings.channels * settings.dram.channel_bytes
    make = partial(_make, settings, clock_ghz)
    return Controller(make, settings.line, settings.outstanding, settings.prefetch, capacity)


def _make(settings: FixedMemory | ComalFixedMemory | DramMemory, clock_ghz: float, ports: int) -> Memory:
    from fuseflow.memory.memory import Memory  # loads the compiler
    from fuseflow.memory.models import ComalFixed, Dram, FixedLatency

    match settings:
        case DramMemory():
            mapping = settings.address_mapping
            return Memory(Dram(settings.channels, lambda _: mapping, settings.dram, settings.cycles_in(clock_ghz)), ports)
        case FixedMemory():
            return Memory(FixedLatency(settings.latency, settings.line, ports), ports)
        case ComalFixedMemory():
            return Memory(ComalFixed(), ports)
        case unknown:
            assert_never(unknown)
