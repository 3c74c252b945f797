"""The options of a data spec, `NAME:variant,key=value`, read with their types."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fuseflow.errors import DataError, did_you_mean


@dataclass(frozen=True, slots=True)
class SpecOptions:
    """What stands behind the name of a data set; what `finish` finds unread is unknown."""

    spec: str
    variant: str
    given: dict[str, str]
    known: list[str] = field(default_factory=list)

    @classmethod
    def parse(cls, spec: str, variants: Iterable[str] = ()) -> SpecOptions:
        """`variants`: what may stand alone, in the first place."""
        name, _, text = spec.partition(":")
        parts = [part.strip() for part in text.split(",")] if text else []
        variant = parts.pop(0) if parts and "=" not in parts[0] and variants else ""
        if variant and variant not in variants:
            raise DataError(f"data `{spec}`: there is no `{name}:{variant}`", hint=did_you_mean(variant, variants))
        pairs: dict[str, str] = {}
        for part in parts:
            key, equals, value = (word.strip() for word in part.partition("="))
            if not equals or not key or key in pairs:
                raise DataError(
                    f"data `{spec}`: cannot read the option `{part}`", hint="write NAME:key=value,key=value, each key once"
                )
            pairs[key] = value
        return cls(spec, variant, pairs)

    def integer(self, key: str, default: int, least: int) -> int:
        value = self.number(key, default, least)
        if value != int(value):
            raise DataError(f"data `{self.spec}`: `{key}` is a whole number, not {self.given[key]}")
        return int(value)

    def number(self, key: str, default: float, least: float, most: float = float("inf")) -> float:
        self.known.append(key)
        text = self.given.get(key, str(default))
        try:
            value = float(text)
        except ValueError:
            raise DataError(f"data `{self.spec}`: `{key}={text}` is not a number") from None
        if not least <= value <= most or value == float("inf"):
            upper = "" if most == float("inf") else f" and at most {most:g}"
            raise DataError(f"data `{self.spec}`: `{key}` is at least {least:g}{upper}, not {text}")
        return value

    def choice(self, key: str, among: Iterable[str]) -> str | None:
        self.known.append(key)
        value = self.given.get(key)
        if value is not None and value not in among:
            raise DataError(f"data `{self.spec}`: `{key}={value}` is none of {', '.join(among)}", hint=did_you_mean(value, among))
        return value

    def finish(self) -> None:
        for key in self.given:
            if key not in self.known:
                raise DataError(f"data `{self.spec}`: unknown option `{key}`", hint=did_you_mean(key, self.known))
