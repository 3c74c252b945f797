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


class PartEnergies(_Strict):
    """The energies of the events of one part of the hardware, and the technology for which they were found."""

    technology: Text

    def constants(self) -> dict[str, EventEnergy]:
        """Return every energy by its name."""
        return {name: getattr(self, name) for name in type(self).model_fields if name != "technology"}


class OperatorEnergies(PartEnergies):
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


class AccessEnergies(PartEnergies):
    """The energy of a bit that is written or read, in a memory of up to 64 words, and in SRAM."""

    write: EventEnergy
    read: EventEnergy
    sram_write: EventEnergy
    sram_read: EventEnergy


class ControlEnergies(PartEnergies):
    """The energy of a gate that switches, and the share of the gates of a node that switch when it fires."""

    gate: EventEnergy
    activity: EventEnergy


class DramEnergies(PartEnergies):
    """The energies of one DRAM: of a row that is opened and closed, of a bit that is moved, and of a refresh of all banks of a rank, or of
    a channel that has no ranks."""

    activation: EventEnergy
    move: EventEnergy
    io: EventEnergy
    ecc: EventEnergy
    refresh: EventEnergy


class LeakageEnergies(PartEnergies):
    """The power that a gate leaks, and the power that a bit of SRAM leaks."""

    gate: EventEnergy
    sram_bit: EventEnergy


class EventEnergies(_Strict):
    """The energies of all events. `dram` has those of each DRAM, by the name of the memory."""

    operators: OperatorEnergies
    fifos: AccessEnergies
    control: ControlEnergies
    workspaces: AccessEnergies
    dram: dict[str, DramEnergies]
    leakage: LeakageEnergies

    def parts(self, dram: str) -> dict[str, PartEnergies]:
        """Return the energies of each part of a hardware with the memory `dram`. Raises `EnergyError` if there are none for it."""
        if dram not in self.dram:
            raise EnergyError(
                f"there are no energies for the memory `{dram}`",
                hint=f"there are some for {', '.join(self.dram)}; take a file of your own with a section `{dram}` below `dram`",
            )
        return {part: self.dram[dram] if part == "dram" else getattr(self, part) for part in type(self).model_fields}


def load_event_energies(path: str | Path | None = None) -> EventEnergies:
    """Return the energies of a file, or without a path those that come with the package. Raises `FileError` or `EnergyError`."""
    return _usual_event_energies() if path is None else read_event_energies(read_text(Path(path), "the energies"), str(path))


@cache
def _usual_event_energies() -> EventEnergies:
    return read_event_energies(resources.files("fuseflow.energy").joinpath(FILE).read_text(encoding="utf-8"), FILE)


def read_event_energies(text: str, file: str = "<text>") -> EventEnergies:
    """Return energies from YAML text; `file` names it in errors. Raises `EnergyError` with the line and the nearest right key."""
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
            f"the key `{key}` is missing",
            hint="a file has all keys of the one that `docs/how-to/estimate-energy.md` shows",
            span=span,
        )
    if first["type"] == "literal_error":
        return EnergyError(f"`{key}` is none of the marks", hint=did_you_mean(str(first["input"]), get_args(Mark)), span=span)
    if isinstance(first["input"], dict) or first["type"] in ("model_type", "dict_type"):
        return EnergyError(f"`{key}` is a mapping", hint=f"keys: {', '.join(_keys(path)) or 'the names of memories'}", span=span)
    return EnergyError(f"`{key}`: {first['msg'][0].lower()}{first['msg'][1:]}, not `{first['input']}`", span=span)


def _keys(path: tuple[int | str, ...]) -> tuple[str, ...]:
    """Return the keys that the mapping at a path of keys may have, none if there is no mapping or any key will do."""
    model: type[BaseModel] = EventEnergies
    if path[:1] == ("dram",):
        if len(path) == 1:
            return ()
        model, path = DramEnergies, path[2:]
    for step in path:
        field = model.model_fields.get(str(step))
        if field is None or not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            return ()
        model = field.annotation
    return tuple(model.model_fields)
