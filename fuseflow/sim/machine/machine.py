"""Machines: rules of time, latencies, initiation intervals, FIFO depth and memory. See `machine_file` for where they are read.

A value that no machine can have is refused when one is made, in words that `machine_file` turns into a `MachineError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from fuseflow.sim.memory.controller import Controller
from fuseflow.sim.memory.settings import (
    Clock,
    Hbm2Memory,
    IdealMemory,
    MemorySettings,
    clock_ratio,
    controller,
    memory_settings,
    whole_number,
)


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _count(value: Any) -> Any:
    if whole_number(value) < 1:
        raise PydanticCustomError("count", "must be a whole number, 1 or more")
    return whole_number(value)


def _depth(value: Any) -> Any:
    if value is None or value == "auto":
        return value
    if whole_number(value) >= 1:
        return whole_number(value)
    raise PydanticCustomError("depth", "must be a number of tokens (1 or more), `auto`, or null for unbounded")


def _units(value: Any) -> Any:
    if isinstance(value, UnitCycles | Mapping):
        return value
    raise PydanticCustomError(
        "units",
        "must be a mapping from units to cycles",
        {"hint": "write `{default: 2, add: 4}`; one alone is `latency.default`"},
    )


Count = Annotated[int, BeforeValidator(_count)]
Depth = Annotated[int | Literal["auto"] | None, BeforeValidator(_depth)]


class UnitCycles(_Strict):
    """Cycles of each kind of unit; those not given have the default's."""

    default: Count = 1
    add: Count | None = None
    mul: Count | None = None
    div: Count | None = None
    transcendental: Count | None = None
    logic: Count | None = None
    memory: Count | None = None

    def of(self, unit: str) -> int:
        cycles: int | None = getattr(self, unit)
        return self.default if cycles is None else cycles


class Machine(_Strict):
    """What a graph runs on.

    `rules`: `dataflow` is the meaning of time in docs/streams.md, `comal` that of the public Comal simulator.
    `latency`: cycles from a firing until its tokens are visible. `interval`: cycles between two firings on values.
    `fifo_depth`: slots of every FIFO that the graph gives no depth. None: unbounded. `auto`: `fifo_depth_start`, and more where the
    graph would deadlock. `tile_macs`: multiply-accumulates on tiles in a cycle. `memory`: see `memory.settings`.
    """

    name: str
    rules: Literal["dataflow", "comal"] = "dataflow"
    clock_ghz: Clock = 1.0
    latency: Annotated[UnitCycles, BeforeValidator(_units)] = UnitCycles()
    interval: Annotated[UnitCycles, BeforeValidator(_units)] = UnitCycles()
    fifo_depth: Depth = None
    fifo_depth_start: Count = 64
    tile_macs: Count = 256
    memory: Annotated[MemorySettings, Field(discriminator="model"), BeforeValidator(memory_settings)] = IdealMemory()

    @property
    def first_depth(self) -> int | None:
        """Slots of a FIFO before any was found too shallow; None: unbounded."""
        return self.fifo_depth_start if self.fifo_depth == "auto" else self.fifo_depth

    def controller(self) -> Controller | None:
        """Of the memory of a new run; None where it answers at once."""
        return controller(self.memory, self.clock_ghz)

    @property
    def settings(self) -> dict[str, Any]:
        """Everything but the name, as plain values: what a file would say."""
        units = {key: getattr(self, key).model_dump(exclude_none=True) for key in ("latency", "interval")}
        return {**self.model_dump(exclude={"name"}), **units}

    @field_validator("memory")
    @classmethod
    def _in_step(cls, value: Any, info: ValidationInfo) -> Any:
        """Clocks whose ratio is known: that of a machine that was refused is not."""
        clock = info.data.get("clock_ghz")
        if isinstance(value, Hbm2Memory) and clock is not None:
            try:
                clock_ratio(value.clock_ghz, clock)
            except ValueError as error:
                raise PydanticCustomError("clock", str(error), {"hint": "change `clock_ghz` or `memory.clock_ghz`"}) from error
        return value

    @field_validator("latency", "interval", "fifo_depth", "tile_macs", "memory")
    @classmethod
    def _fits_rules(cls, value: Any, info: ValidationInfo) -> Any:
        if info.data.get("rules") == "comal" and not _in_comal(value, cls.model_fields[str(info.field_name)].default):
            reasons = {
                "fifo_depth": "FIFOs are unbounded",
                "tile_macs": "tiles have times of their own",
                "memory": "memory is off",
            }
            reason = reasons.get(str(info.field_name), "every unit takes 1 cycle")
            hint = {"hint": f"leave `{info.field_name}` out, or set `rules: dataflow`"}
            raise PydanticCustomError("comal", f"with `rules: comal` {reason}", hint)
        return value


def _in_comal(value: Any, default: Any) -> bool:
    if isinstance(value, UnitCycles):
        return all(value.of(unit) == 1 for unit in UnitCycles.model_fields)
    return bool(value == default)
