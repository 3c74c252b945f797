"""The energies of events, read from a file: of an addition, a bit through a FIFO, or an opened row of the DRAM.

The file that comes with the package is `energy.yaml`. A file of the user has the same keys. A missing or unknown key, or a
negative number, is an error with its line.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationError
from pydantic_core import PydanticCustomError

from fuseflow.errors import EnergyError, Span, did_you_mean
from fuseflow.filesystem import read_text
from fuseflow.yaml_text import read_yaml

Mark: TypeAlias = Literal["measured", "published", "quoted", "derived", "guessed"]
"""The origin of a number, in order of trust: it was measured, a source states it, a quotation of a source states it, it is
computed from numbers of a source, or it is a guess."""
FILE = "energy.yaml"


def _energy(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise PydanticCustomError("energy", "must be a number")
    if value < 0:
        raise PydanticCustomError("energy", "must not be negative")
    return float(value)


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


Text = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1)]


class EventEnergy(_Strict):
    """The energy of one event, with its source. The unit is picojoules, or nanowatts for leakage."""

    value: Annotated[float, BeforeValidator(_energy)]
    mark: Mark
    source: Text


class _Part(_Strict):
    technology: Text


class OperatorEnergies(_Part):
    """The energy of an operator, by the class of its unit; `add_16` is an addition of numbers of up to 16 bits."""

    add: EventEnergy
    mul: EventEnergy
    div: EventEnergy
    transcendental: EventEnergy
    logic: EventEnergy
    add_16: EventEnergy
    mul_16: EventEnergy
    add_8: EventEnergy
    mul_8: EventEnergy


class AccessEnergies(_Part):
    """The energy of a bit that is written or read, in a memory of up to 64 words, and in SRAM."""

    write: EventEnergy
    read: EventEnergy
    sram_write: EventEnergy
    sram_read: EventEnergy


class ControlEnergies(_Part):
    """The energy of a gate that switches, and the share of the gates of a node that switch when it fires."""

    gate: EventEnergy
    activity: EventEnergy


class DramEnergies(_Part):
    """The energy of an opened row, of a bit that is moved, and of a refresh of all banks of a channel."""

    activation: EventEnergy
    move: EventEnergy
    io: EventEnergy
    ecc: EventEnergy
    refresh: EventEnergy


class LeakageEnergies(_Part):
    """The power that a gate leaks, and the power that a bit of SRAM leaks."""

    gate: EventEnergy
    sram_bit: EventEnergy


class EventEnergies(_Strict):
    """The energies of all events."""

    operators: OperatorEnergies
    fifos: AccessEnergies
    control: ControlEnergies
    workspaces: AccessEnergies
    dram: DramEnergies
    leakage: LeakageEnergies

    def constants(self) -> dict[tuple[str, str], EventEnergy]:
        """Return every energy, by its part of the hardware and its name."""
        return {
            (part, name): getattr(section, name)
            for part in type(self).model_fields
            for section in (getattr(self, part),)
            for name in type(section).model_fields
            if name != "technology"
        }

    def scaled(self, part: str, name: str, factor: float) -> EventEnergies:
        """Return the energies with one of them, given by part and name, multiplied by a factor."""
        section = getattr(self, part)
        constant = getattr(section, name)
        changed = section.model_copy(update={name: constant.model_copy(update={"value": constant.value * factor})})
        return self.model_copy(update={part: changed})


def load_event_energies(path: str | Path | None = None) -> EventEnergies:
    """Return the energies of a file, or without a path those that come with the package. Raises `FileError` or `EnergyError`."""
    return _usual_event_energies() if path is None else read_event_energies(read_text(Path(path), "the energies"), str(path))


@cache
def _usual_event_energies() -> EventEnergies:
    return read_event_energies(resources.files("fuseflow.energy").joinpath(FILE).read_text(encoding="utf-8"), FILE)


def read_event_energies(text: str, file: str = "<text>") -> EventEnergies:
    """Return energies from YAML text; `file` names it in errors. Raises `EnergyError` with the line of the mistake, and the
    nearest right key."""
    data = read_yaml(text, file, EnergyError)
    if not isinstance(data.content, dict):
        raise EnergyError(
            "energies are a YAML mapping", hint=f"keys: {', '.join(EventEnergies.model_fields)}", span=Span(file, 1)
        )
    try:
        return EventEnergies.model_validate(data.content)
    except ValidationError as error:
        first = min(
            error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden"
        )  # a typo, before what it lacks
        path = tuple(step for step in first["loc"] if step != "[key]")
        raise _refused(first, path, data.place(*path)) from error


def _refused(first: Any, path: tuple[int | str, ...], span: Span) -> EnergyError:
    key, keys = ".".join(map(str, path)), _keys(path[:-1])
    if first["type"] == "extra_forbidden":
        return EnergyError(f"unknown key `{key}`", hint=did_you_mean(str(path[-1]), keys), span=span)
    if first["type"] == "missing":
        return EnergyError(
            f"the key `{key}` is missing", hint="a file has all keys of the one that `docs/energy.md` shows", span=span
        )
    if first["type"] == "literal_error":
        return EnergyError(f"`{key}` is none of the marks", hint=did_you_mean(str(first["input"]), get_args(Mark)), span=span)
    if isinstance(first["input"], dict) or first["type"] == "model_type":
        return EnergyError(f"`{key}` is a mapping", hint=f"keys: {', '.join(_keys(path))}", span=span)
    return EnergyError(f"`{key}`: {first['msg'][0].lower()}{first['msg'][1:]}, not `{first['input']}`", span=span)


def _keys(path: tuple[int | str, ...]) -> tuple[str, ...]:
    """Return the keys that the mapping at a path of keys may have, none if there is no mapping."""
    model: type[BaseModel] = EventEnergies
    for step in path:
        field = model.model_fields.get(str(step))
        if field is None or not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            return ()
        model = field.annotation
    return tuple(model.model_fields)
