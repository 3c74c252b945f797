"""Machines: their rules of time, latencies, initiation intervals, FIFO depths and memory. They are read from files in `files.py`.

An impossible value is refused when the machine is made, by an error that `files.py` turns into a `MachineError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from fuseflow.memory.memory_interface import Controller
from fuseflow.memory.scratchpad_settings import Scratchpad, scratchpad_settings
from fuseflow.memory.setting_types import MOST, Strict, number_in, whole_number
from fuseflow.memory.settings import (
    AnyMemory,
    Clock,
    DramMemory,
    IdealMemory,
    controller,
    memory_settings,
)


def _depth(value: Any) -> Any:
    if value is None or value == "auto" or whole_number(value) >= 1:
        return value
    raise PydanticCustomError("depth", "must be a number of tokens (1 or more), `auto`, or null for unbounded")


def _slots(value: Any) -> Any:
    if value is None or whole_number(value) >= 1:
        return value
    raise PydanticCustomError("slots", "must be a number of tokens (1 or more), or null for unbounded")


def _units(value: Any) -> Any:
    if isinstance(value, UnitCycles | Mapping):
        return value
    raise PydanticCustomError(
        "units",
        "must be a mapping from units to cycles",
        {"hint": "write `{default: 2, add: 4}`; one alone is `latency.default`"},
    )


Count = Annotated[int, number_in(range(1, MOST + 1), "must be a whole number, 1 or more")]
Bytes = Annotated[int, number_in(range(MOST + 1), "must be a whole number of bytes, 0 or more")]
Depth = Annotated[int | Literal["auto"] | None, BeforeValidator(_depth)]
Slots = Annotated[int | None, BeforeValidator(_slots)]


class UnitCycles(Strict):
    """The cycles of each kind of unit. A unit without a number has that of `default`."""

    default: Count = 1
    add: Count | None = None
    mul: Count | None = None
    div: Count | None = None
    transcendental: Count | None = None
    logic: Count | None = None
    memory: Count | None = None

    def of(self, unit: str) -> int:
        """Return the cycles of a kind of unit."""
        cycles: int | None = getattr(self, unit)
        return self.default if cycles is None else cycles


class UnitIntervals(UnitCycles):
    """The cycles from one firing on a value to the next, of each kind of unit. `fold` is the interval of a reduction, which adds
    each value to the last sum. Without `fold`, a reduction starts a value every cycle, whatever the default is."""

    fold: Count | None = None

    def of(self, unit: str) -> int:
        return 1 if unit == "fold" and self.fold is None else super().of(unit)


def _intervals(value: Any) -> Any:
    """Return the setting of intervals as a mapping, if it has cycles of units without `fold`, and else as it is."""
    return value.model_dump() if type(value) is UnitCycles else _units(value)


def _lanes(value: Any) -> Any:
    if isinstance(value, Lanes):
        return value
    if isinstance(value, Mapping):
        return {str(width): count for width, count in value.items()}
    raise PydanticCustomError(
        "lanes",
        "must be a mapping from the bits of an element to elements",
        {"hint": "write `{4: 8, 8: 4, 16: 2, 32: 1}`; what is left out is as it is here"},
    )


class Lanes(Strict):
    """The number of elements that a unit for tiles processes instead of one element of 32 bits, by the bits of an element."""

    bits_4: Count = Field(default=8, alias="4")
    bits_8: Count = Field(default=4, alias="8")
    bits_16: Count = Field(default=2, alias="16")
    bits_32: Count = Field(default=1, alias="32")

    @classmethod
    def widths(cls) -> tuple[str, ...]:
        """The names of the widths in files."""
        return tuple(str(field.alias) for field in cls.model_fields.values())

    def of(self, bits: int) -> int:
        """Return the number of elements for `bits` bits, or for the next wider width. Elements of 64 bits count like elements of
        32.

        >>> Lanes().of(8), Lanes().of(12), Lanes().of(64)
        (4, 2, 1)
        """
        widths = (4, self.bits_4), (8, self.bits_8), (16, self.bits_16)
        return next((count for width, count in widths if bits <= width), self.bits_32)


CONFIG_BYTES = 65_536
"""The bytes of the configuration of a machine whose file does not state them."""


MachineArithmetic: TypeAlias = Literal["element", "f64", "f32"]
"""The floats in which a machine computes: the type of the elements, as in PyTorch; 64 bits; or 32 bits, as in a circuit."""

SELDOM = ("arithmetic", "handover_depth", "lanes", "config_bytes", "scratchpad")
"""The settings that most machines leave as they are."""


class Machine(Strict):
    """A machine runs graphs: its settings decide their cycles.

    `rules` chooses the meaning of time: `dataflow` is defined in docs/reference/streams.md, and `comal` by the public Comal simulator.
    `arithmetic` says in which floats operators and reductions compute: the type of their `element`s, `f64`, or `f32`, as in a
    circuit. `latency` is the number of cycles from a firing until its tokens are visible, and `interval` the number of cycles
    between two firings on values. `fifo_depth` is the number of slots of every FIFO for which the graph gives no depth. None
    means unbounded, and `auto` begins with `fifo_depth_start` and deepens FIFOs where the graph would deadlock. `handover_depth`
    is the number of slots between the two processes of a node with workspaces, or None. `tile_macs` is the number of
    multiply-accumulates on tiles in a cycle, and `lanes` has how many elements of fewer bits replace one of 32. `config_bytes` is
    the number of bytes that the resident tensors of a region may have. The settings of `memory` are described in
    `fuseflow.memory.settings`, and those of `scratchpad`, a memory on the chip that a machine may have, in
    `fuseflow.memory.scratchpad_settings`. Its `repr` is an expression of it. `fuseflow.load_machine` changes single settings.

    >>> import fuseflow as ff
    >>> ff.Machine(name="mine", latency={"add": 4, "mul": 4}, fifo_depth=16)
    ff.Machine(name='mine', latency={'default': 1, 'add': 4, 'mul': 4}, fifo_depth=16)
    """

    name: str
    rules: Literal["dataflow", "comal"] = "dataflow"
    clock_ghz: Clock = 1.0
    arithmetic: MachineArithmetic = "element"
    latency: Annotated[UnitCycles, BeforeValidator(_units)] = UnitCycles()
    interval: Annotated[UnitIntervals, BeforeValidator(_intervals)] = UnitIntervals()
    fifo_depth: Depth = None
    fifo_depth_start: Count = 64
    handover_depth: Slots = None
    tile_macs: Count = 256
    lanes: Annotated[Lanes, BeforeValidator(_lanes)] = Lanes()
    config_bytes: Bytes = CONFIG_BYTES
    memory: Annotated[AnyMemory, BeforeValidator(memory_settings)] = IdealMemory()
    scratchpad: Annotated[Scratchpad | None, BeforeValidator(scratchpad_settings)] = None

    def __repr__(self) -> str:
        """Return an expression of this machine, for a program that says `import fuseflow as ff`."""
        fields = type(self).model_fields
        changed = [name for name, field in fields.items() if field.is_required() or getattr(self, name) != field.default]
        values = self.model_dump(include=set(changed), exclude_none=True)
        return f"ff.Machine({', '.join(f'{name}={values[name]!r}' for name in changed)})"

    __str__ = __repr__

    @property
    def first_depth(self) -> int | None:
        """The slots of a FIFO before any FIFO was found too shallow, or None if FIFOs are unbounded."""
        return self.fifo_depth_start if self.fifo_depth == "auto" else self.fifo_depth

    @property
    def is_wide(self) -> bool:
        """Whether every number is computed in 64 bits, whatever the types of elements."""
        return self.arithmetic == "f64"

    def controller(self) -> Controller | None:
        """Return the controller for the memory of a new run, or None if the memory answers at once."""
        made = controller(self.memory, self.clock_ghz)
        return made if made is None or self.scratchpad is None else replace(made, scratchpad=self.scratchpad)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings but the name, as plain values for a file. Settings in `SELDOM` are left out if they have their usual value."""
        units = {key: getattr(self, key).model_dump(exclude_none=True) for key in ("latency", "interval")}
        usual = {key for key in SELDOM if getattr(self, key) == type(self).model_fields[key].default}
        return {**self.model_dump(exclude={"name", *usual}), **units}

    @field_validator("memory")
    @classmethod
    def _in_step(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse clocks of memory and machine without a ratio of small whole numbers; a clock that was refused is not compared."""
        clock = info.data.get("clock_ghz")
        if isinstance(value, DramMemory) and clock is not None:
            try:
                value.cycles_in(clock)
            except ValueError as error:
                raise PydanticCustomError("clock", str(error), {"hint": value.clock_hint(clock)}) from error
        return value

    @field_validator("latency", "interval", "fifo_depth", "handover_depth", "tile_macs", "lanes", "memory", "scratchpad")
    @classmethod
    def _fits_rules(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, UnitCycles):
            in_comal = all(value.of(unit) == 1 for unit in type(value).model_fields)
        else:
            in_comal = value == cls.model_fields[str(info.field_name)].default
        if info.data.get("rules") == "comal" and not in_comal:
            reasons = {
                "fifo_depth": "FIFOs are unbounded",
                "handover_depth": "a node with workspaces is one process",
                "tile_macs": "tiles have times of their own",
                "lanes": "tiles have times of their own",
                "memory": "memory is off",
            }
            reason = reasons.get(str(info.field_name), "every unit takes 1 cycle")
            hint = {"hint": f"leave `{info.field_name}` out, or set `rules: dataflow`"}
            raise PydanticCustomError("comal", f"with `rules: comal` {reason}", hint)
        return value
