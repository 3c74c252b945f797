"""The options of a data spec such as `NAME:variant,key=value`, which are read with their types."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fuseflow.errors import DataError, did_you_mean

MATRICES: Final = (".mtx", ".npz")
"""The suffixes of files that hold the adjacency of a graph as a matrix."""
EDGE_LISTS: Final = (".txt", ".csv", ".tsv", ".el", ".wel", ".edges")
"""The suffixes of lists of edges, which may be packed: `.gz` follows then, as in `edges.csv.gz`."""

ADJACENCIES = ("gcn", "raw")
"""The adjacencies that a model can get, by the values of the option `adj` of a graph."""


_FILE: Final = re.compile(rf"(.*?(?:{'|'.join(map(re.escape, (*MATRICES, *EDGE_LISTS)))})(?:\.gz)?)(?::(.*))?", re.DOTALL)


def split_spec(spec: str) -> tuple[str, str | None]:
    """Return the name of a data spec (of a data set or of a file) and its options, or None if no colon follows the name.

    >>> split_spec("karate:nodes=9"), split_spec("a:b/graph.mtx:adj=raw"), split_spec("edges.csv.gz")
    (('karate', 'nodes=9'), ('a:b/graph.mtx', 'adj=raw'), ('edges.csv.gz', None))
    """
    if file := _FILE.fullmatch(spec):
        return file[1], file[2]
    name, colon, options = spec.partition(":")
    return name, options if colon else None


def names_file(name: str) -> bool:
    """Return whether the name in a data spec names a file: no data set has a dot or a slash in its name."""
    return "." in name or "/" in name


def without_folder(spec: str) -> str:
    """Return a data spec in which a file has its name alone.

    >>> without_folder("a/graph.mtx:adj=raw"), without_folder("karate:nodes=9")
    ('graph.mtx:adj=raw', 'karate:nodes=9')
    """
    name = split_spec(spec)[0]
    return Path(name).name + spec[len(name) :] if names_file(name) else spec


def graph_suffix(name: str) -> str:
    """Return the suffix of a file. For a packed list of edges it is the suffix before `.gz`.

    >>> graph_suffix("graph.mtx"), graph_suffix("edges.csv.gz"), graph_suffix("graph.mtx.gz")
    ('.mtx', '.csv', '.gz')
    """
    path = Path(name)
    inner = Path(path.stem).suffix if path.suffix == ".gz" else ""
    return inner if inner in EDGE_LISTS else path.suffix


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
        name, text = split_spec(spec)
        if text is not None and not text.strip():
            raise DataError(f"data `{spec}`: nothing follows the colon", hint="write NAME:key=value, or NAME alone")
        parts = [part.strip() for part in text.split(",")] if text else []
        variant = parts.pop(0) if parts and "=" not in parts[0] and variants else ""
        if variant and variant not in variants:
            raise DataError(f"data `{spec}`: there is no `{name}:{variant}`", hint=did_you_mean(variant, variants))
        values: dict[str, str] = {}
        for part in parts:
            key, equals, value = (word.strip() for word in part.partition("="))
            if not equals or not key or key in values:
                hint = "write NAME:key=value,key=value, each key once"
                raise DataError(f"data `{spec}`: cannot read the option `{part}`", hint=hint)
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
        """Return an option that is one of the words `choices`, or None if it is absent. Raise `DataError` for another word."""
        self.read_keys.append(key)
        value = self.values.get(key)
        if value is not None and value not in choices:
            hint = did_you_mean(value, choices)
            raise DataError(f"data `{self.spec}`: `{key}={value}` is none of {', '.join(choices)}", hint=hint)
        return value

    def finish(self) -> None:
        """Raise `DataError` for an option that was never read, since the data set does not have it."""
        for key in self.values:
            if key not in self.read_keys:
                raise DataError(f"data `{self.spec}`: unknown option `{key}`", hint=did_you_mean(key, self.read_keys))
