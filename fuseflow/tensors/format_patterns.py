"""Formats that are given to tensors by patterns of their names, as in `*.weight=csr`.

In a pattern, `*` stands for any text, `?` for one character, and `[ab]` for one of some. The exact name of a tensor counts more
than any pattern. Of several patterns the last one counts whose format is for tensors of that rank: `*=csr` leaves vectors as they
are. A pattern applies to given tensors (inputs), and to computed ones only if it matches no given tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeAlias

from fuseflow.errors import FuseFlowError, TensorError, did_you_mean, first_names
from fuseflow.tensors.format import Format

Ranks: TypeAlias = Mapping[str, Sequence[int]]
"""The ranks that each tensor may be seen with, by its name: two if dimensions of extent 1 may be left out."""


def is_pattern(name: str) -> bool:
    """Return whether a name is a pattern. Names of tensors have none of these characters."""
    return any(character in name for character in "*?[")


@dataclass(frozen=True, slots=True)
class ExactFormats:
    """The formats of tensors by their exact names. `notices` say what patterns leave out."""

    formats: dict[str, str]
    notices: tuple[str, ...]


def exact_formats(
    entries: Sequence[tuple[str, str]],
    given: Ranks,
    computed: Callable[[], Ranks],
    refusal: Callable[[str, TensorError], FuseFlowError],
) -> ExactFormats:
    """Return the formats that names and patterns, in order, give to tensors. Exact names are not looked up. `given` are the ranks
    of inputs, and `computed` returns those of results when it is needed.

    Raises the `refusal` of a pattern that matches no tensor, or none that its format is for.
    """
    formats: dict[str, str] = {}
    left_out: list[tuple[str, str, list[str]]] = []
    for pattern, text in entries:
        if is_pattern(pattern):
            try:
                fitting, others = _matches(pattern, text, given, computed)
            except TensorError as error:
                raise refusal(pattern, error) from error
            formats |= dict.fromkeys(fitting, text)
            left_out.append((pattern, text, others))
    formats |= {name: text for name, text in entries if not is_pattern(name)}
    notices = (_notice(pattern, text, [name for name in others if name not in formats]) for pattern, text, others in left_out)
    return ExactFormats(formats, tuple(filter(None, notices)))


def _matches(pattern: str, text: str, given: Ranks, computed: Callable[[], Ranks]) -> tuple[list[str], list[str]]:
    """Return two lists of the tensors that a pattern matches: those that the format `text` fits, and the others. Raise
    `TensorError` if none fits."""
    ranks = given if any(fnmatchcase(name, pattern) for name in given) else computed()
    names = [name for name in ranks if fnmatchcase(name, pattern)]
    if not names:
        known = (*given, *ranks)
        endings = (f"*.{name.rpartition('.')[2]}" for name in known if "." in name)
        raise TensorError("it matches no tensor", hint=did_you_mean(pattern, (*known, *endings)))
    fitting = [name for name in names if _fits(text, ranks[name])]
    if not fitting:
        try:
            Format.parse(text, ranks[names[0]][0])
        except TensorError as error:  # of the text, or of the first tensor
            raise TensorError(f"it matches `{names[0]}`: {error.message}", hint=error.hint) from None
    return fitting, [name for name in names if name not in fitting]


def _fits(text: str, ranks: Sequence[int]) -> bool:
    """Return whether the text of a format fits tensors of one of these ranks."""
    for rank in ranks:
        try:
            Format.parse(text, rank)
        except TensorError:
            continue
        return True
    return False


def _notice(pattern: str, text: str, names: Sequence[str]) -> str:
    """Return what to say of the tensors that a pattern matches and its format is not for, or '' if there are none."""
    if not names:
        return ""
    return f"`{pattern}={text}` leaves out {first_names(names)}: `{text}` is for another number of dimensions"
