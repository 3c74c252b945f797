"""The memory settings of a machine, and the controller that is made from them. This module loads no compiler before a run needs
its memory."""

from __future__ import annotations

from collections.abc import Container, Mapping
from fractions import Fraction
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from fuseflow.errors import did_you_mean
from fuseflow.memory import mapping as maps
from fuseflow.memory.memory_interface import Controller
from fuseflow.memory.table_files import preset

if TYPE_CHECKING:
    from fuseflow.memory.memory import Memory

MOST_PARTS = 1000
"""The largest numerator and denominator of the ratio of two clocks, so that products with cycles stay far inside 64 bits."""


MOST = 2**31 - 1
"""The largest number of a setting, so that its product with a number of firings stays inside 64 bits."""
MOST_LINE = 4096
MOST_LINES = 1 << 20
MOST_LATENCY = 1 << 20


class Strict(BaseModel):
    """Settings without unknown keys, which do not change."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


def whole_number(value: Any) -> int:
    """Return a whole number as a plain int, and -1 for anything else. Raise pydantic's error for a number above `MOST`."""
    if not isinstance(value, int) or isinstance(value, bool):
        return -1
    if value > MOST:
        raise PydanticCustomError("large", f"is above {MOST:,}, the largest number of a setting")
    return value


def number_in(allowed: Container[int], message: str) -> BeforeValidator:
    """Return a validator that takes the `allowed` whole numbers, and refuses all else with a message."""

    def check(value: Any) -> Any:
        if whole_number(value) not in allowed:
            raise PydanticCustomError("number", message)
        return whole_number(value)

    return BeforeValidator(check)


def _lines(least: int) -> BeforeValidator:
    return number_in(range(least, MOST_LINES + 1), f"must be a whole number of lines, {least} to {MOST_LINES:,}")


def _mapping(value: Any) -> Any:
    if not isinstance(value, str) or value not in maps.MAPPINGS:
        raise PydanticCustomError("mapping", "there is no such mapping", {"hint": did_you_mean(str(value), maps.MAPPINGS)})
    return value


LINES = tuple(1 << k for k in range(5, MOST_LINE.bit_length()))
"""The bytes that a line may have."""
Clock = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]


class IdealMemory(Strict):
    """A memory that answers at once."""

    model: Literal["ideal"] = "ideal"


class TimedMemory(Strict):
    """A memory that takes time, and how nodes make requests of it. `line` is the number of bytes of a request. `prefetch` is the
    number of lines that are fetched ahead where an array is read in order. `outstanding` is the largest number of unanswered
    lines at one port."""

    line: Annotated[
        int,
        number_in(
            LINES,
            f"must be a power of two of bytes, from {LINES[0]}, which is one transaction of the memory, to {MOST_LINE}",
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


class Hbm2Memory(TimedMemory):
    """HBM2, command by command (docs/memory.md), with 2 GB and 32 bytes a memory cycle for each channel."""

    model: Literal["hbm2"] = "hbm2"
    channels: Annotated[
        int, number_in(maps.CHANNEL_COUNTS, f"must be one of {', '.join(map(str, maps.CHANNEL_COUNTS))} channels")
    ] = 8
    mapping: Annotated[str, BeforeValidator(_mapping)] = maps.DEFAULT_MAPPING
    clock_ghz: Clock = 1.0


MemorySettings: TypeAlias = IdealMemory | FixedMemory | ComalFixedMemory | Hbm2Memory
MODEL_SETTINGS: dict[str, type[MemorySettings]] = {kind().model: kind for kind in get_args(MemorySettings)}
"""The settings of each model, by its name. A new model is a class above, a model in `models.py` and a line in `controller`."""


def memory_settings(value: Any) -> Any:
    """Return the memory settings of a machine file (`value`) as a mapping with the key `model`. The file may have such a mapping,
    or only the name of a model. Raises a pydantic error for anything else."""
    if isinstance(value, BaseModel):
        return value
    below = ("model",) if isinstance(value, Mapping) else ()  # the key that is refused
    if isinstance(value, str):
        value = {"model": value}
    if not isinstance(value, Mapping) or "model" not in value:
        hint = {"hint": "write `memory: hbm2`, or a mapping: `memory: {model: hbm2, channels: 8}`"}
        raise PydanticCustomError("memory", "must name a model: " + ", ".join(MODEL_SETTINGS), hint)
    if not isinstance(value["model"], str) or value["model"] not in MODEL_SETTINGS:
        model = "null" if value["model"] is None else value["model"]
        context = {"hint": did_you_mean(str(model), MODEL_SETTINGS), "below": below}
        raise PydanticCustomError("memory", f"there is no memory model `{model}`", context)
    return dict(value)


@cache
def clock_ratio(memory_ghz: float, machine_ghz: float) -> Fraction:
    """Return the number of memory cycles in a cycle of the machine. Raises `ValueError` if the ratio is not one of small whole
    numbers."""
    ratio = Fraction(str(memory_ghz)) / Fraction(str(machine_ghz))
    if max(ratio.numerator, ratio.denominator) > MOST_PARTS:
        raise ValueError(
            f"a memory of {memory_ghz} GHz is not in step with a machine of {machine_ghz} GHz: clocks must be in a ratio of whole "
            f"numbers up to {MOST_PARTS}"
        )
    return ratio


def controller(settings: MemorySettings, clock_ghz: float) -> Controller | None:
    """Return the controller of the memory of a new run, or None if the memory answers at once. `clock_ghz` is the clock of the
    machine."""
    if isinstance(settings, IdealMemory):
        return None
    clock, channels = Fraction(1), 16
    if isinstance(settings, Hbm2Memory):  # Other models ignore addresses.
        clock, channels = clock_ratio(settings.clock_ghz, clock_ghz), settings.channels
    make = partial(_make, settings, clock)
    return Controller(
        make, settings.line, settings.outstanding, settings.prefetch, channels * preset("hbm2").table().channel_bytes
    )


def _make(settings: TimedMemory, clock: Fraction, ports: int) -> Memory:
    from fuseflow.memory.memory import Memory  # loads the compiler
    from fuseflow.memory.models import ComalFixed, FixedLatency, Hbm2

    if isinstance(settings, Hbm2Memory):
        return Memory(Hbm2(settings.channels, maps.MAPPINGS[settings.mapping], clock=clock), ports)
    if isinstance(settings, FixedMemory):
        return Memory(FixedLatency(settings.latency, settings.line, ports), ports)
    return Memory(ComalFixed(), ports)
