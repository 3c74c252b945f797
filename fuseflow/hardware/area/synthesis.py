"""Synthesis by yosys: the gates of modules, or their area in the cells of a library that the user has.

Each part is synthesized alone. The module of a node is synthesized around its units and memories, which are parts of their own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuseflow.errors import HardwareError
from fuseflow.hardware.area.gates import SQUARE_MICROMETRES
from fuseflow.hardware.area.liberty import Liberty
from fuseflow.hardware.area.parts import CircuitParts, Part
from fuseflow.hardware.tools import CHANNEL_MEMORY, library_text
from fuseflow.hardware.top import emit_circuit
from fuseflow.hardware.verilog import to_verilog

PROGRAM = "yosys"
GATES = "NAND,NOR,AND,OR,XOR,XNOR,MUX,AOI3,OAI3"
"""The gates that logic becomes, besides the inverter. Each has a row in the table of areas."""
REWRITE = "balance;rewrite;refactor;balance;rewrite;rewrite,-z;balance;refactor,-z;rewrite,-z;balance"
OPTIMIZE = f"+strash;ifraig;{REWRITE};ifraig;dc2;strash;dch,-f;map,-a"
"""What `abc` does with the logic. Its own script takes minutes for a divider, and this one seconds."""
CIRCUIT = "circuit.sv"
LIBERTY = "cells.lib"
SECONDS = 600
"""After so long a synthesis is given up."""
SCRIPT = 2
"""The version of what yosys is asked to do. It is a part of the key under which results are kept."""


def version() -> str:
    """Return what yosys says that it is. Raises `HardwareError` if it is not there."""
    if shutil.which(PROGRAM) is None:
        raise HardwareError(
            f"areas are those of gates that `{PROGRAM}` makes, and it is not there",
            hint="apt-get install yosys",
        )
    done = subprocess.run([PROGRAM, "-V"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of one part, by their name in yosys. `area` is what they take in the unit of a library, and None for generic gates."""

    counts: Mapping[str, int]
    area: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {"counts": dict(self.counts), "area": self.area}


def synthesize(parts: CircuitParts, missing: Sequence[Part], liberty: Liberty | None = None) -> dict[Part, Cells]:
    """Return the cells of some parts of a circuit that are no memories. Raises `HardwareError` if yosys refuses one."""
    if not missing:
        return {}
    version()
    with tempfile.TemporaryDirectory(prefix="fuseflow-area-") as directory:
        folder = Path(directory)
        for file in dict.fromkeys(file for part in missing for file in part.files):
            (folder / file).write_text(library_text(file), encoding="utf-8")
        if any(part.kind == "primitive" for part in missing):
            (folder / CIRCUIT).write_text(to_verilog(emit_circuit(parts.circuit).text), encoding="utf-8")
        if liberty is not None:
            (folder / LIBERTY).write_text(liberty.text, encoding="utf-8")
        script = "".join(_commands(n, part, parts, liberty) for n, part in enumerate(missing))
        (folder / "script.ys").write_text(script, encoding="utf-8")
        _run(folder)
        return {part: _cells(folder / f"{n}.json", part, liberty) for n, part in enumerate(missing)}


def _commands(number: int, part: Part, parts: CircuitParts, liberty: Liberty | None) -> str:
    """Return the script that synthesizes one part and writes its statistics."""
    if part.kind == "primitive":
        top, widths = parts.modules[part.body], ""
        boxes = f"read_verilog -sv -lib {' '.join(part.files)}\n" if part.files else ""
        read = f"{boxes}read_verilog -sv {CIRCUIT}"
    else:
        memories = [file for file in part.files if file == CHANNEL_MEMORY]
        boxes = "".join(f"read_verilog -sv -lib {file}\n" for file in memories)
        top, read = part.module, f"{boxes}read_verilog -sv {' '.join(file for file in part.files if file not in memories)}"
        widths = "".join(f" -chparam {name} {value}" for name, value in part.parameters)
    if liberty is None:
        cells, areas = f"abc -g {GATES} -script {OPTIMIZE}", ""
    else:
        cells, areas = f"dfflibmap -liberty {LIBERTY}\nabc -liberty {LIBERTY}", f" -liberty {LIBERTY}"
    return (
        f"design -reset\n{read}\nhierarchy -check -top {top}{widths}\nproc\nflatten\nsynth -run coarse: -noabc\n"
        f"dfflegalize -cell $_DFF_P_ x\nsimplemap\n{cells}\nopt_clean -purge\n"
        f"tee -q -o {number}.json stat{areas} -json\n"
    )


def _run(folder: Path) -> None:
    command = [PROGRAM, "-q", "-s", "script.ys"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise HardwareError(f"`{PROGRAM}` did not end in {SECONDS} seconds") from None
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if "ERROR" in line] or done.stderr.splitlines()
        raise HardwareError(f"`{PROGRAM}` failed with status {done.returncode}", notes=lines[-5:])


def _cells(file: Path, part: Part, liberty: Liberty | None) -> Cells:
    text = file.read_text(encoding="utf-8")
    design = json.loads(text[text.index("{") :])["design"]
    counts = {name: count for name, count in design["num_cells_by_type"].items() if not _is_instance(name)}
    if liberty is None:
        _require_rows(counts)
        return Cells(dict(sorted(counts.items())))
    unmapped = [name for name in counts if name.startswith("$")]
    if unmapped:
        raise HardwareError(
            f"liberty file `{liberty.path}` has no cell for {', '.join(f'`{name}`' for name in sorted(unmapped))} of yosys",
            hint="it needs an inverter, gates, and a flip-flop without reset that is clocked by a rising edge",
        )
    return Cells(dict(sorted(counts.items())), float(design["area"]))


def _is_instance(cell: str) -> bool:
    """Whether a cell is a unit or a memory, which is a part of its own."""
    return "ff_" in cell and (cell.startswith(("ff_", "$paramod")))


def _require_rows(counts: Iterable[str]) -> None:
    unknown = sorted(set(counts) - SQUARE_MICROMETRES.keys())
    if unknown:
        raise HardwareError(f"`{PROGRAM}` made cells that have no area: {', '.join(unknown)}", hint="take yosys 0.23 or later")
