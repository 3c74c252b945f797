"""Many inputs in one process, each within limits of time and memory, in a child whose end does not end the campaign."""

from __future__ import annotations

import faulthandler
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from fuseflow.dialects import sandboxed_parser
from fuseflow.errors import FuseFlowError
from input_fuzz import parser_server
from input_fuzz.kinds import Kind, prepare

SECONDS = 2.0
"""What one input may take of a processor."""
MEMORY = 1 << 30
"""What one input may take of memory."""


class TooSlow(BaseException):
    """An input that took too long. Readers catch `Exception`, and must not catch this."""


@dataclass(slots=True)
class Tally:
    """What became of the inputs of one kind. `past` of them got past the first parser, and `accepted` were read without an error."""

    inputs: int = 0
    past: int = 0
    accepted: int = 0
    faults: list[str] = field(default_factory=list)

    def line(self, kind: str) -> str:
        share = 100 * self.past / max(self.inputs, 1)
        taken = 100 * self.accepted / max(self.inputs, 1)
        shares = f"{share:5.1f} % past the first parser, {taken:5.1f} % accepted"
        return f"{kind:<13} {self.inputs:>9,} inputs, {shares}, {len(self.faults)} faults"


def content_of(kind: Kind, seed: int, number: int) -> bytes:
    """Return one input, which is the same in every run."""
    return kind.draw(random.Random(f"{seed}/{kind.name}/{number}"))


def judge(kind: Kind, content: bytes, folder: Path) -> tuple[bool, bool, str]:
    """Return whether a content gets past the first parser, whether it is read, and what is wrong with how it is read, or ''."""
    try:
        kind.first(content)
        past = True
    except Exception:
        past = False
    try:
        with limited():
            kind.read(content, folder)
        return past, True, ""
    except FuseFlowError as error:
        return (
            past,
            False,
            "" if error.exit_status == 2 and _is_short(error) else f"status {error.exit_status}, {len(str(error))} characters",
        )
    except TooSlow:
        return past, False, f"more than {SECONDS:g} s at {_place()}"
    except BaseException as error:
        return past, False, f"{type(error).__name__} at {_place()}: {str(error)[:200]}"


def _place() -> str:
    """Return the innermost lines that led to the error, of fuseflow first."""
    frames = traceback.extract_tb(sys.exc_info()[2])
    own = [frame for frame in frames if "/fuseflow/" in frame.filename][-2:]
    return " < ".join(f"{frame.filename.rpartition('/fuseflow/')[2]}:{frame.lineno}" for frame in reversed([*own, *frames[-1:]]))


def _is_short(error: FuseFlowError) -> bool:
    return len(str(error)) < 40_000


@contextmanager
def limited() -> Iterator[None]:
    """Raise `TooSlow` for a block that takes more than `SECONDS` of a processor."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def bounded_memory() -> None:
    """Let this process have `MEMORY` more than it has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def run(kind: Kind, seed: int, numbers: range) -> Tally:
    """Read inputs in this process."""
    tally = Tally()
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    try:
        for number in numbers:
            inside = folder / "in"
            inside.mkdir()
            _note(tally, kind, seed, number, *judge(kind, content_of(kind, seed, number), inside))
            shutil.rmtree(inside)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return tally


def _note(tally: Tally, kind: Kind, seed: int, number: int, past: bool, accepted: bool, fault: str) -> None:
    tally.inputs += 1
    tally.past += past
    tally.accepted += accepted
    if fault:
        tally.faults.append(f"{kind.name} --seed {seed} --only {number}: {fault}")


def run_in_child(kind: Kind, seed: int, numbers: range) -> Tally:
    """Read inputs in a child of this process, and in another one from the next input on where it was ended by one of them."""
    prepare([kind])
    total, start = Tally(), numbers.start
    while start < numbers.stop:
        state = mmap.mmap(-1, 64)
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read_end)
            _child(kind, seed, range(start, numbers.stop), state, write_end)
        os.close(write_end)
        with os.fdopen(read_end) as stream:
            total.faults += [line for line in stream.read().split("\0") if line]
        _, status = os.waitpid(child, 0)
        inputs, past, accepted, number = struct.unpack_from("4q", state)
        total.inputs, total.past, total.accepted = total.inputs + inputs, total.past + past, total.accepted + accepted
        if os.waitstatus_to_exitcode(status) == 0:
            return total
        total.inputs += 1
        total.faults.append(
            f"{kind.name} --seed {seed} --only {number}: the process ended with {os.waitstatus_to_exitcode(status)}"
        )
        start = number + 1
    return total


def _child(kind: Kind, seed: int, numbers: range, state: mmap.mmap, write_end: int) -> None:
    """Read inputs, and note before each which one it is."""
    bounded_memory()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sandboxed_parser.ask = parser_server.ask
    tally, told = Tally(), 0
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what native code says of damaged files
    faulthandler.disable()  # which would write where pytest keeps its standard error
    for number in numbers:
        struct.pack_into("4q", state, 0, tally.inputs, tally.past, tally.accepted, number)
        signal.alarm(60)  # a hang in native code ends the process
        inside = folder / "in"
        inside.mkdir()
        _note(tally, kind, seed, number, *judge(kind, content_of(kind, seed, number), inside))
        shutil.rmtree(inside)
        for fault in tally.faults[told:]:
            os.write(write_end, fault.encode("utf-8", "replace")[:4000] + b"\0")
        told = len(tally.faults)
    struct.pack_into("4q", state, 0, tally.inputs, tally.past, tally.accepted, numbers.stop)
    shutil.rmtree(folder, ignore_errors=True)
    parser_server.close()
    os._exit(0)
