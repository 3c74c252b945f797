"""The programs that simulate SystemVerilog: Verilator and Icarus Verilog. They are searched for only when they are needed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import IO, TypeAlias

from fuseflow.errors import HardwareError, UsageError, did_you_mean

TESTBENCH = "ff_testbench"
"""The module of a testbench."""
TRACE = "trace.txt"
CHANNEL_MEMORY = "ff_sram.sv"
BANK = "ff_bank.sv"
"""The file of the banks of a scratchpad."""
DELAY = "ff_delay.sv"
"""The file of the module that delays tokens of channels and answers of a memory of fixed latency."""
PORT = "ff_port.sv"
MEMORY_PARTS = "ff_fixed_memory.sv", "ff_arrivals.sv", "ff_line_rom.sv"
"""Files of a testbench whose memory takes time: a port's view of a memory of fixed time, and arrays whose lines arrive."""
SCRATCHPAD_PART = "ff_words.sv"
"""The file of what a testbench keeps of the words that were read in a scratchpad."""
WIDE_UNITS = "ff_f64.sv"
"""The units of 64-bit floats, which are for simulation only."""
ARRAY = "ff_rom.sv"
"""The file of the module of an array of a testbench."""
VERILATOR_HEADER = "ff_reals.h"
ERROR_LINES = 5
"""The lines of a failed program that an error shows."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that simulates SystemVerilog. `build` returns, from the sources and whether waveforms are wanted, the command
    that compiles; `run` is the command that simulates; `waves` is the ending of waveform files."""

    name: str
    programs: tuple[str, ...]
    package: str
    build: Callable[[Sequence[str], bool], list[str]]
    run: tuple[str, ...]
    waves: str = "vcd"

    def require(self) -> None:
        """Raise `HardwareError` if one of the programs is not installed."""
        for program in self.programs:
            if shutil.which(program) is None:
                raise HardwareError(
                    f"`{program}` is not there, which `--tool {self.name}` runs",
                    hint=f"apt-get install {self.package}; `--tool python` needs no tool",
                )


def _icarus(sources: Sequence[str], waves: bool) -> list[str]:
    return ["iverilog", "-g2012", "-o", "circuit.vvp", "-s", TESTBENCH, *sources]


def _verilator(sources: Sequence[str], waves: bool) -> list[str]:
    unrolled = "--unroll-count 1024 --unroll-stmts 100000"  # loops over requests and registers must be unrolled
    flags = f"--binary -O3 -Wno-fatal -Wno-lint -Wno-style {unrolled} {'--trace' * waves} --top-module {TESTBENCH} --Mdir built".split()
    return ["verilator", *flags, "-CFLAGS", f"-include ../{VERILATOR_HEADER}", *sources]


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("verilator", ("verilator", "make", "g++"), "verilator", _verilator, (f"built/V{TESTBENCH}",)),
        Tool("icarus", ("iverilog", "vvp"), "iverilog", _icarus, ("vvp", "-n", "circuit.vvp")),
    )
}
PYTHON = "python"
NAMES = (*TOOLS, PYTHON)


def find_tool(name: str) -> Tool | None:
    """Return the tool with a name, or None for `python`, the evaluator. Raises `UsageError` for an unknown name, and
    `HardwareError` for a tool that is not installed."""
    if name == PYTHON:
        return None
    if name not in TOOLS:
        raise UsageError(f"unknown tool `{name}`", hint=did_you_mean(name, NAMES) or f"one of {', '.join(NAMES)}")
    TOOLS[name].require()
    return TOOLS[name]


def library_text(name: str) -> str:
    """Return the text of a file of the folder `sv`."""
    return (resources.files("fuseflow.hardware") / "sv" / name).read_text(encoding="utf-8")


def has_library(name: str) -> bool:
    """Return whether the folder `sv` has a file with a name."""
    return (resources.files("fuseflow.hardware") / "sv" / name).is_file()


Serve: TypeAlias = Callable[[IO[str], IO[str]], None]
"""A function that reads the requests of a program from its output, and writes answers to its input, until the program ends."""


def run_tool(tool: Tool, folder: Path, sources: Sequence[str], waves: bool, serve: Serve | None = None) -> None:
    """Build and run a testbench in a folder that has its sources. With `serve`, its requests are answered while it runs. Raises
    `HardwareError` if a command fails."""
    _run(folder, tool.build(sources, waves))
    command = [str(folder / tool.run[0]) if "/" in tool.run[0] else tool.run[0], *tool.run[1:]]
    if serve is None:
        _run(folder, command)
    else:
        _run_served(folder, command, serve)


def _run(folder: Path, command: Sequence[str]) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    _require_success(command, done.returncode, done.stderr + done.stdout)


def _run_served(folder: Path, command: Sequence[str], serve: Serve) -> None:
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as program:
            assert program.stdin is not None and program.stdout is not None
            try:
                with suppress(BrokenPipeError):
                    serve(program.stdout, program.stdin)
            except BaseException:
                program.kill()
                raise
        errors.seek(0)
        _require_success(command, program.returncode, errors.read())


def _require_success(command: Sequence[str], status: int, said: str) -> None:
    if status:
        raise HardwareError(f"`{command[0]}` failed with status {status}", notes=said.strip().splitlines()[:ERROR_LINES])
