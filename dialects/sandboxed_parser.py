"""Texts of modules that users give, as MLIR itself prints them.

MLIR's parser may damage the memory of its process on a text that is no valid module, and its passes were never meant for hostile modules.
So another process reads the text, verifies the module and runs the passes, within bounds of time and memory. The parser of this process
sees only what that one printed.
"""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fuseflow.dialects import declaration, parser_process

SECONDS = 2
"""The seconds of processor time that an empty text may take."""
BYTES_A_SECOND = 4 << 20
"""How many bytes of a text may take one second more. Lists of numbers in decimals are the slowest, with 15 MB a second."""
MEMORY = 1 << 30
"""The bytes of memory that an empty text may take, including the memory of the process itself."""
MEMORY_A_BYTE = 64
"""How many bytes of memory each byte of a text may take."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message of MLIR about a text. `location` is the text of an MLIR location, such as `loc("-":3:7)`, or '' if there is none."""

    message: str
    location: str = ""
    notes: tuple[str, ...] = ()


class InvalidModuleError(Exception):
    """A text that is no valid module. The first of its `diagnostics` names the fault."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(diagnostics[0].message)
        self.diagnostics = tuple(diagnostics)


def canonical_text(text: str, dialects: Sequence[str] = (), passes: str = "", marks: Mapping[str, str] | None = None) -> str:
    """Return the module of a text, after a pipeline of passes, as MLIR prints it with locations. `dialects` are the dialects of
    fuseflow that it may hold, beside the ones of torch-mlir. `marks` gives an attribute to each operation of a name that is in
    the text, so that it differs from operations that the passes make. Raise `InvalidModuleError` for a text on which the parser
    or a pass gives up, breaks off, or takes too much time or memory."""
    size = len(text.encode())
    request = {
        "text": text,
        "declarations": [declaration_text(dialect) for dialect in dialects],
        "passes": passes,
        "marks": dict(marks or {}),
        "seconds": SECONDS + size // BYTES_A_SECOND,
        "bytes": MEMORY + MEMORY_A_BYTE * size,
        "packages": _packages(),
    }
    status, output = ask(json.dumps(request).encode())
    answer = json.loads(output) if status == 0 else {"diagnostics": [_ending(status, request)]}
    if "text" in answer:
        return str(answer["text"])
    diagnostics = [Diagnostic(d["message"], d["location"], tuple(d["notes"])) for d in answer["diagnostics"]]
    raise InvalidModuleError(diagnostics or [Diagnostic("not a module, and MLIR does not say why")])


def ask(request: bytes) -> tuple[int, bytes]:
    """Give a request to a new process, and return its exit status, which is negative for a signal, and its answer."""
    command = [sys.executable, "-I", "-S", parser_process.__file__]
    done = subprocess.run(command, input=request, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.returncode, done.stdout


def _ending(status: int, request: dict[str, Any]) -> dict[str, Any]:
    """Return the diagnostic of a process that ended without an answer."""
    if status in (-signal.SIGXCPU, -signal.SIGALRM):
        return {"message": f"MLIR takes more than {request['seconds']} s for this text", "location": "", "notes": []}
    ending = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    return {"message": f"MLIR breaks off on this text, with {ending}", "location": "", "notes": []}


@cache
def declaration_text(dialect: str) -> str:
    """Return the declaration of a dialect."""
    return declaration(dialect).read_text(encoding="utf-8")


@cache
def _packages() -> str:
    """Return the folder that torch-mlir is installed in."""
    spec = importlib.util.find_spec("torch_mlir")
    assert spec is not None and spec.submodule_search_locations is not None
    return str(Path(next(iter(spec.submodule_search_locations))).parent)
