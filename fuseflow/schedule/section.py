"""The kinds of sections of a schedule: how each is read from a file and from flags, checked, added to, and written.

A section is one field of `Schedule`, one key of a schedule file and one flag of the command line. `sections.py` has the table of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from fuseflow.errors import ScheduleError, UsageError, did_you_mean

T = TypeVar("T")
KEYWORDS = ("none", "layerwise", "full", "best", "auto")
"""The names that say what is fused in the whole model; no region can have such a name."""
Entries = tuple[tuple[str, T], ...]
"""The entries of a section of a schedule: names with values, sorted by name."""


def check_name(section: str, name: str) -> None:
    """Raise `ScheduleError` for a text that is not a name, in the section `section`."""
    if not name or re.search(r"[\s,=]", name):
        hint = "give several names by repeating the flag" if "," in name else ""
        raise ScheduleError(f"{section} `{name}`: not a name", hint=hint)


def split_lanes(name: str) -> tuple[str, str, str]:
    """Return the region, the stage and the index that a name in the section `par` means. A part that the name lacks is empty.

    >>> split_lanes("layer1/T1.i"), split_lanes("layer1.i"), split_lanes("i")
    (('layer1', 'T1', 'i'), ('layer1', '', 'i'), ('', '', 'i'))
    """
    place, _, index = name.rpartition(".")
    region, _, stage = place.partition("/")
    return region, stage, index


def split_fifo(name: str) -> tuple[str, str]:
    """Return the region and the FIFO that a name in the section `depth` means. For a whole region the second is empty.

    >>> split_fifo("layer1/sub/k0.1"), split_fifo("layer1")
    (('layer1', 'sub/k0.1'), ('layer1', ''))
    """
    region, _, fifo = name.partition("/")
    return region, fifo


def parse_assignments(flag: str, texts: Iterable[str], example: str, otherwise: str = "") -> dict[str, str]:
    """Return the texts `NAME=VALUE` of a flag as a dictionary. Raises `UsageError` for another form, and for two values of one
    name. The message shows an `example`, and `otherwise` adds another form of the flag."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise UsageError(f"cannot read `{flag} {text}`", hint=f"write `{flag} {example}`" + ("" if equals else otherwise))
        if values.setdefault(name, value) != value:
            raise UsageError(f"`{flag}` gives `{name}` twice: {values[name]} and {value}")
    return values


Completion = Literal["", "parts", "tensors", "indices"]
"""Which names of a model a shell completes in a flag; parts are modules and Einsums."""


@dataclass(frozen=True, slots=True)
class Number:
    """The whole numbers that a section may have for a name: from `least` to `most`, or without an upper end if that is 0. `what`
    describes them in messages."""

    what: str
    least: int = 1
    most: int = 0

    @property
    def hint(self) -> str:
        return f"{self.least} to {self.most:,}" if self.most else f"{self.least} or more"

    def allows(self, number: int) -> bool:
        return not isinstance(number, bool) and self.least <= number <= (self.most or number)

    def read(self, flag: str, text: str) -> int:
        """Return the number in the text of a flag. Raises `UsageError` if it is not such a number."""
        if not re.fullmatch(r"[0-9]{1,9}", text) or not self.allows(int(text)):
            raise UsageError(f"`{flag}`: `{text}` is not {self.what}", hint=self.hint)
        return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section whose value is replaced by a later one.

    `key` is its name in a file, and with `-` for `_` the name of its flag; `field` is the field of `Schedule`, if that has
    another name. `of` is the type of its value in a file. `help`, `metavar` and `completion` describe the flag; there is none
    without `help`. `check` returns the value in its canonical form, `parse` the value of a flag, and `write` the value in a file;
    None is left out.
    """

    key: str
    field: str = ""
    of: Any = str
    help: str = ""
    metavar: str = ""
    completion: Completion = ""
    check: Callable[[Any], Any] = lambda value: value
    parse: Callable[[Any], Any] = lambda given: given
    write: Callable[[Any], Any] = lambda value: value

    @property
    def attribute(self) -> str:
        """The name of the field of `Schedule`."""
        return self.field or self.key

    def checked(self, value: Any) -> Any:
        """Return the value of the field in canonical form. Raises `ScheduleError` for a value that it cannot have."""
        return self.check(value)

    def read(self, given: Any) -> dict[str, Any]:
        """Return the values that the flag adds to sections, by their keys. Raises `UsageError` for a malformed flag."""
        return {self.key: self.parse(given)}

    def added(self, _value: Any, more: Any) -> Any:
        """Return the value of the field after `more` was added."""
        return more

    def pieces(self, content: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
        """Yield the values that the content of the section in a file adds, each with its path below the section."""
        if content is not None:
            yield (), content

    def written(self, value: Any) -> Any:
        """Return the section in the form that a file has. It is empty or None if it states nothing."""
        return self.write(value)

    def entries(self, _value: Any) -> Iterator[tuple[str, object]]:
        """Yield the names that the section has, with their values."""
        yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Word(Section):
    """A setting of all regions, which is one of some `words`. The first of them is the default."""

    words: tuple[str, ...]

    def checked(self, value: str) -> str:
        if value not in self.words:
            raise ScheduleError(f"`{self.key}: {value}` is none of {', '.join(self.words)}", hint=did_you_mean(value, self.words))
        return value

    def written(self, value: str) -> str | None:
        return None if value == self.words[0] else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Names(Section):
    """A section that is a set of names, to which a later one adds. `phrase` comes before a name in messages."""

    of: Any = list[str]
    phrase: str

    def checked(self, value: Iterable[str]) -> tuple[str, ...]:
        unique = set(value)
        for name in unique:
            check_name(self.phrase, name)
        return self.check(tuple(sorted(unique)))  # type: ignore[no-any-return]

    def added(self, value: tuple[str, ...], more: Sequence[str]) -> tuple[str, ...]:
        return (*value, *more)

    def written(self, value: tuple[str, ...]) -> list[str]:
        return list(value)

    def entries(self, value: tuple[str, ...]) -> Iterator[tuple[str, object]]:
        yield from ((name, name) for name in value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused(Names):
    """The names in the section `fuse`, which a later section replaces."""

    def added(self, value: tuple[str, ...], more: Sequence[str]) -> tuple[str, ...]:
        return tuple(more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Section):
    """A section that has a value for each of some names; a later one replaces the values of equal names.

    Its field of `Schedule` is the key with an s, if `field` does not say another. `of` is the type of a value in a file. `phrase`
    comes before a name in messages (without it, the key and `of`), and `example` shows its flag there.
    `check_entry` returns the value of a name in canonical form, `parse_entry` the value of one flag, and `number` says which
    numbers both may be. The flag may also be one of the words of a `policy`, which is for all else, and `otherwise` says so in
    messages. With `patterns`, names that are patterns come first and keep their order, since the last one counts.
    """

    phrase: str = ""
    example: str = ""
    check_entry: Callable[[str, Any], Any] = lambda _name, value: value
    parse_entry: Callable[[str, str], Any] = lambda _flag, text: text
    number: Number | None = None
    policy: Word | None = None
    otherwise: str = ""
    patterns: bool = False

    @property
    def attribute(self) -> str:
        return self.field or f"{self.key}s"

    @property
    def _before_name(self) -> str:
        return self.phrase or f"{self.key} of"

    def checked(self, value: Entries[Any]) -> Entries[Any]:
        if not value:
            return ()
        names = [name for name, _ in value]
        for name in names:
            check_name(self._before_name, name)
            if names.count(name) > 1:
                raise ScheduleError(f"{self._before_name} `{name}` is given twice")
        entries = sorted((name, self._checked_entry(name, each)) for name, each in value)
        if not self.patterns:
            return tuple(entries)
        first = [name for name in names if any(character in name for character in "*?[")]
        by_name = dict(entries)
        return tuple((name, by_name[name]) for name in dict.fromkeys((*first, *by_name)))

    def _checked_entry(self, name: str, value: Any) -> Any:
        value = self.check_entry(name, value)
        if self.number is not None and not self.number.allows(value):
            raise ScheduleError(f"{self._before_name} `{name}`: {value} is not {self.number.what}", hint=self.number.hint)
        return value

    def read(self, given: Sequence[str]) -> dict[str, Any]:
        flag, words = f"--{self.key}", self.policy.words if self.policy else ()
        said = sorted({text.strip() for text in given} & set(words))
        if len(said) > 1:
            raise UsageError(f"`{flag}` asks for {' and '.join(f'`{word}`' for word in said)}", hint="say one of them")
        texts = parse_assignments(flag, [text for text in given if text.strip() not in said], self.example, self.otherwise)
        parse = self.parse_entry if self.number is None else self.number.read
        values = {name: parse(f"{flag} {name}={text}", text) for name, text in texts.items()}
        return {self.key: values} | ({self.policy.key: said[0]} if self.policy and said else {})

    def added(self, value: Entries[Any], more: Mapping[str, Any]) -> Entries[Any]:
        return (*(entry for entry in value if entry[0] not in more), *more.items())

    def pieces(self, content: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
        yield from (((name,), {name: value}) for name, value in content.items())

    def written(self, value: Entries[Any]) -> dict[str, Any]:
        return {name: self.write(each) for name, each in value}

    def entries(self, value: Entries[Any]) -> Iterator[tuple[str, object]]:
        yield from value
