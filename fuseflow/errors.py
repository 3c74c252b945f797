"""The root of all exceptions of fuseflow, and one subclass for each stage.

A message names the request, the reason why it is impossible, and a way that works. It uses the names of the user's own tensors,
indices, modules and files. The command line prints the message without a traceback and exits with the `exit_status` of the class.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text that the user wrote: a file (or `<text>`), a line and a column. Lines and columns are counted from 1."""

    file: str
    line: int
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column is not None else "")


class FuseFlowError(Exception):
    """The root of all exceptions that fuseflow raises on purpose.

    >>> print(FuseFlowError("no tensor `B`", hint="did you mean `b`?", span=Span("p.ein", 3, 7)))
    p.ein:3:7: error[error]: no tensor `B`
      hint: did you mean `b`?
    """

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 2  # The status is 2 for bad input or usage, and 1 for a run or a check that failed.

    def __init_subclass__(cls, code: str = "") -> None:
        """Set the code of a class. A class without one of its own has the code of the class above it."""
        cls.code = code or cls.code

    def __init__(self, message: str, *, hint: str = "", notes: Iterable[str] = (), span: Span | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.notes = tuple(notes)
        self.span = span

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span else ""
        lines = [f"{place}error[{self.code}]: {self.message}"]
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  hint: {self.hint}"] if self.hint else []
        return _LONG_WORD.sub(_shortened, "\n".join(lines))


class UsageError(FuseFlowError, code="usage"):
    """A flag, an option or an argument is wrong."""


class FileError(FuseFlowError, code="file"):
    """A file or a directory is missing, unreadable, malformed or not writable."""


class TensorError(FuseFlowError, code="tensor"):
    """A format is wrong, or an array cannot be packed in it."""


class OverfullError(TensorError, code="overfull"):
    """A level has no room for what is stored."""

    @classmethod
    @contextmanager
    def naming(cls, tensor: str) -> Iterator[None]:
        """Name a tensor in the message of an `OverfullError` that the block raises."""
        try:
            yield
        except OverfullError as error:
            raise cls(f"tensor `{tensor}`: {error.message}", hint=error.hint) from None


class ProgramError(FuseFlowError, code="program"):
    """An Einsum program does not parse or verify."""


class FrontendError(FuseFlowError, code="frontend"):
    """A PyTorch model or a Linalg module has no Einsum form."""


class SparsityError(FuseFlowError, code="sparsity"):
    """A sparsifier or a layout is wrong, or does not fit a tensor or a model."""


class TrainingError(FuseFlowError, code="training"):
    """A loss or an optimizer is wrong, or has no formula, or does not fit a model."""


class AttributesError(FuseFlowError, code="attributes"):
    """An attribute is of a tensor that is not there, or does not fit it."""


class DispatchError(SparsityError, code="dispatch"):
    """An operator on stored sparse tensors has no implementation, or one that does not keep its word."""


class DispatchWarning(UserWarning):
    """An operator on stored sparse tensors has no implementation, so that its arguments were made dense."""


class NarrowTypesWarning(UserWarning):
    """Types of fewer bits would make a program no faster."""


class PlanError(FuseFlowError, code="plan"):
    """A plan is wrong, or an operand cannot be divided as it says."""


class DataError(FuseFlowError, code="data"):
    """A data set is unknown or cannot be loaded."""


class ScheduleError(FuseFlowError, code="schedule"):
    """A schedule names something that does not exist, or asks for something impossible."""


class FusionError(FuseFlowError, code="fusion"):
    """A region cannot be fused at all, or not in the loop order that was asked for. `region` is the region, once that is known, and
    `producer` the Einsum, or the reduction in one, at which a region has to end, if there is such a one."""

    region: str = ""
    producer: str = ""


class PlacesError(FusionError, code="places"):
    """A region would compute an Einsum in too many places."""


class OrdersError(FusionError, code="orders"):
    """A region cannot run in the loop orders that the user wrote with its Einsums."""


class GraphError(FuseFlowError, code="graph"):
    """A SAMML graph does not verify, parse or translate."""


class MachineError(FuseFlowError, code="machine"):
    """A machine description is unknown or invalid."""


class ArrayError(FuseFlowError, code="array"):
    """An array of tiles is wrong, or a graph does not fit it."""


class HardwareError(FuseFlowError, code="hardware"):
    """A graph has no circuit, or the tools that a circuit needs are missing."""


class EnergyError(FuseFlowError, code="energy"):
    """A file of energies is invalid, or a run has no energy."""


class SimulationError(FuseFlowError, code="simulation"):
    """A simulation cannot finish."""

    exit_status = 1


class DeadlockError(SimulationError, code="deadlock"):
    """No node of a graph can fire, and some stream has not ended. `region` is the region of the graph, empty if it is not known."""

    region: str = ""


class ScratchpadError(SimulationError, code="scratchpad"):
    """A tensor of a graph finds no room in the scratchpad. `tensor` has `size` bytes, 0 if that is not known before, and the tensors before
    it leave `room` bytes."""

    tensor: str = ""
    size: int = 0
    room: int = 0


class SamplingError(FuseFlowError, code="sampling"):
    """A region cannot be sampled, or not as it was asked for."""


class CheckError(FuseFlowError, code="check"):
    """An output differs from its reference."""

    exit_status = 1


class SweepError(FuseFlowError, code="sweep"):
    """A sweep cannot be read, stored or run."""


_LONG_WORD = re.compile(r"\S{2001,}")
"""A word that is longer than any place in a file system. A message may name an index of 10,000 letters several times."""


def _shortened(match: re.Match[str]) -> str:
    """Return the two ends of a word with the number of characters that are left out.

    >>> len(str(FuseFlowError("no tensor `" + "a" * 10_000 + "`")))
    648
    """
    word = match[0]
    return f"{word[:500]}...({len(word) - 600:,} characters)...{word[-100:]}"


def refuse_unknown(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise `TypeError`, as Python does, for a keyword argument that a function does not have, with the nearest one that it has.

    >>> refuse_unknown("compile", ["shedule"], ["machine", "schedule"])
    Traceback (most recent call last):
    TypeError: compile() got an unexpected keyword argument 'shedule': did you mean `schedule`?
    """
    names = list(known)
    for name in given:
        if name not in names:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}': {did_you_mean(name, names)}")


INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""Control characters but for tabs and line breaks, marks that turn the direction of a text, and halves of pairs, which no file can hold."""


def visible(text: str) -> str:
    """Return a text whose control characters and marks of direction are written out: a terminal obeys them, and a name may hold any.

    >>> print(visible("red \x1b[31m, turned \u202e"))
    red \\x1b[31m, turned \\u202e
    """
    return INVISIBLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "level"), counted(2, "dimension")
    ('1 level', '2 dimensions')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def first_names(names: Sequence[str], most: int = 4) -> str:
    """Return the first `most` names of a list, and how many more there are.

    >>> first_names(["a", "b", "c"], 2), first_names(["a", "b"])
    ('`a`, `b` and 1 more', '`a`, `b`')
    """
    return ", ".join(f"`{name}`" for name in names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


_SHORTEST_BEGINNING = 3
"""The fewest letters that say something of a name that begins with them."""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return a hint that names the choice nearest to `name`, or lists the choices if none is near. A choice that begins with `name` is
    nearer than one with other letters, so that `hbm3` is `hbm3-6400`, and not `hbm2`.

    >>> did_you_mean("lyaer1", ["layer1", "layer2"]), did_you_mean("CSR", ["csc", "csr"])
    ('did you mean `layer1`?', 'did you mean `csr`?')
    """
    from difflib import get_close_matches  # takes a while, and no command needs it that goes well

    names = sorted(set(choices))
    folded = {k.casefold(): k for k in reversed(names)}  # Of names that differ in case only, the first one stays.
    matches = get_close_matches(name, names, n=1, cutoff=0.8)
    if len(name) >= _SHORTEST_BEGINNING:
        matches = matches or sorted((k for k in names if k.casefold().startswith(name.casefold())), key=len)
    matches = matches or [folded[k] for k in get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)]
    if matches:
        return f"did you mean `{matches[0]}`?"
    if not names:
        return ""
    return f"known: {first_names(names, 12)}"
