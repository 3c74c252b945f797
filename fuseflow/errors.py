"""The exception root and one subclass for each stage.

A message says what was asked, why it cannot be, and what can, in the user's words: the names of their tensors, indices, modules and
files. The command line prints it without a traceback and exits with the class's `exit_status`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text that the user wrote: a file (or `<text>`), a line and a column, both counted from 1."""

    file: str
    line: int
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column is not None else "")


class FuseFlowError(Exception):
    """Root of everything that fuseflow raises on purpose.

    >>> print(FuseFlowError("no tensor `B`", hint="did you mean `b`?", span=Span("p.ein", 3, 7)))
    p.ein:3:7: error[error]: no tensor `B`
      hint: did you mean `b`?
    """

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 2  # 2: bad input or usage; 1: a run or a check failed

    def __init__(self, message: str, *, hint: str = "", notes: Iterable[str] = (), span: Span | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.notes = tuple(notes)
        self.span = span

    def __str__(self) -> str:
        where = f"{self.span}: " if self.span else ""
        lines = [f"{where}error[{self.code}]: {self.message}"]
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  hint: {self.hint}"] if self.hint else []
        return "\n".join(lines)


class UsageError(FuseFlowError):
    """A flag, option or argument that cannot be acted on."""

    code = "usage"


class FileError(FuseFlowError):
    """A file or directory that is missing, unreadable, malformed or not writable."""

    code = "file"


class TensorError(FuseFlowError):
    """A format or an array that cannot be packed."""

    code = "tensor"


class ProgramError(FuseFlowError):
    """An Einsum program that does not parse or verify."""

    code = "program"


class FrontendError(FuseFlowError):
    """A PyTorch model or a Linalg module that has no Einsum form."""

    code = "frontend"


class DataError(FuseFlowError):
    """A data set that is unknown or cannot be loaded."""

    code = "data"


class ScheduleError(FuseFlowError):
    """A schedule that names something that is not there, or asks for what cannot be done."""

    code = "schedule"


class FusionError(FuseFlowError):
    """A region that cannot be fused, or not in the order asked for."""

    code = "fusion"


class GraphError(FuseFlowError):
    """A SAMML graph that does not verify, parse or translate."""

    code = "graph"


class MachineError(FuseFlowError):
    """A machine description that is unknown or invalid."""

    code = "machine"


class SimulationError(FuseFlowError):
    """A run that cannot finish."""

    code = "simulation"
    exit_status = 1


class DeadlockError(SimulationError):
    """No firing is possible and some stream has not ended."""

    code = "deadlock"


class CheckError(FuseFlowError):
    """An output that differs from its reference."""

    code = "check"
    exit_status = 1


class SweepError(FuseFlowError):
    """A sweep that cannot be read, kept or run."""

    code = "sweep"


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """A hint that names the nearest right name, or lists what there is.

    >>> did_you_mean("lyaer1", ["layer1", "layer2"]), did_you_mean("CSR", ["csc", "csr"])
    ('did you mean `layer1`?', 'did you mean `csr`?')
    """
    known = sorted(set(choices))
    folded = {k.casefold(): k for k in reversed(known)}  # of names that differ in case only, the first
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    near = near or [folded[k] for k in difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)]
    if near:
        return f"did you mean `{near[0]}`?"
    if not known:
        return ""
    shown = ", ".join(f"`{k}`" for k in known[:12])
    return f"known: {shown}" + (f" and {len(known) - 12} more" if len(known) > 12 else "")
