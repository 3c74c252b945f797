"""The options of a data spec such as `NAME:variant,key=value`, which are read with their types."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fuseflow.errors import DataError, did_you_mean

ADJACENCIES = ("gcn", "raw")
"""The adjacencies that a model can get, by the values of the option `adj` of a graph."""


@dataclass(frozen=True, slots=True)
class SpecOptions:
    """The part of a data spec behind the name. `values` has the options as text, and `read_keys` the options that were read, so that
    `finish` can refuse the others."""

    spec: str
    variant: str
    values: dict[str, str]
    read_keys: list[str] = field(default_factory=list)

    @classmethod
    def parse(cls, spec: str, variants: Iterable[str] = ()) -> SpecOptions:
        """Parse a data spec. A word of `variants` may stand alone before the options. Raise `DataError` for a spec that cannot be read."""
        name, colon, text = spec.partition(":")
        if colon and not text.strip():
            raise DataError(f"data `{spec}`: nothing follows the colon", hint="write NAME:key=value, or NAME alone")
        parts = [part.strip() for part in text.split(",")] if text else []
        variant = parts.pop(0) if parts and "=" not in parts[0] and variants else ""
        if variant and variant not in variants:
            raise DataError(f"data `{spec}`: there is no `{name}:{variant}`", hint=did_you_mean(variant, variants))
        values: dict[str, str] = {}
        for part in parts:
            key, equals, value = (word.strip() for word in part.partition("="))
            if not equals or not key or key in values:
                raise DataError(
                    f"data `{spec}`: cannot read the option `{part}`", hint="write NAME:key=value,key=value, each key once"
                )
            values[key] = value
        return cls(spec, variant, values)

    def integer(self, key: str, default: int, least: int) -> int:
        """Return an option as a whole number. Raise `DataError` if it is not one or is below `least`."""
        value = self.number(key, default, least)
        if value != int(value):
            raise DataError(f"data `{self.spec}`: `{key}` is a whole number, not {self.values[key]}")
        return int(value)

    def number(self, key: str, default: float, least: float, most: float = float("inf")) -> float:
        """Return an option as a number. Raise `DataError` if it is not one or is outside `least` to `most`."""
        self.read_keys.append(key)
        text = self.values.get(key, str(default))
        try:
            value = float(text)
        except ValueError:
            raise DataError(f"data `{self.spec}`: `{key}={text}` is not a number") from None
        if not least <= value <= most or value == float("inf"):
            upper = "" if most == float("inf") else f" and at most {most:g}"
            raise DataError(f"data `{self.spec}`: `{key}` is at least {least:g}{upper}, not {text}")
        return value

    def choice(self, key: str, choices: Iterable[str]) -> str | None:
        """Return an option that is one of some words, or None if it is absent. Raise `DataError` for another word."""
        self.read_keys.append(key)
        value = self.values.get(key)
        if value is not None and value not in choices:
            raise DataError(
                f"data `{self.spec}`: `{key}={value}` is none of {', '.join(choices)}", hint=did_you_mean(value, choices)
            )
        return value

    def finish(self) -> None:
        """Raise `DataError` for an option that was never read, since the data set does not have it."""
        for key in self.values:
            if key not in self.read_keys:
                raise DataError(f"data `{self.spec}`: unknown option `{key}`", hint=did_you_mean(key, self.read_keys))
