"""The lines of source text that the Einsums of a region came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fuseflow.report.page.run_directory import Values
from fuseflow.report.page.things import Things
from fuseflow.run.program_values import CONTEXT


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of source text. `gap` tells that lines before it are left out. If an Einsum came from the line, `thing` is its number on the
    page, and `key` its place in the address bar."""

    number: int
    text: str
    thing: int | None
    key: str | None
    gap: bool


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The lines of one file."""

    file: str
    lines: tuple[SourceLine, ...]


def region_sources(program: Values, einsums: Sequence[str], things: Things) -> tuple[SourceFile, ...]:
    """Return, by file, the lines that some Einsums came from, with the lines around them."""
    wanted: dict[str, set[int]] = {}
    for values in program.get("einsums", ()):
        if values["name"] in einsums and values["file"] is not None:
            line = values["line"]
            wanted.setdefault(values["file"], set()).update(range(line - CONTEXT, line + CONTEXT + 1))
    sources = ((source["file"], source["lines"]) for source in program.get("sources", ()) if source["file"] in wanted)
    return tuple(SourceFile(file, tuple(_lines(file, lines, wanted[file], things))) for file, lines in sources)


def _lines(file: str, lines: Sequence[tuple[int, str]], wanted: set[int], things: Things) -> Iterator[SourceLine]:
    kept = [(number, text) for number, text in lines if number in wanted]
    numbers = [number for number, _ in kept]
    gaps = {b for a, b in pairwise(numbers) if b != a + 1}
    for number, text in kept:
        thing = things.number("line", f"{file}:{number}")
        yield SourceLine(number, text, thing, None if thing is None else things[thing].key, number in gaps)
