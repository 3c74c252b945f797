"""Synthesis by yosys: the gates of modules, or their area in the cells of a library of the user, and a cache of both.

Each part is synthesized alone. The module of a node is synthesized without its units and memories, which are separate parts.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fuseflow.errors import FileError, HardwareError
from fuseflow.filesystem import parse_json, read_text
from fuseflow.hardware.area.parts import CircuitParts, Part
from fuseflow.hardware.circuit_files import to_verilog
from fuseflow.hardware.rtl_simulators import CHANNEL_MEMORY, library_text
from fuseflow.hardware.top import emit_circuit
from fuseflow.private_store import cache_root, private_directory, read_private, write_private
from fuseflow.resources.gate_areas import SQUARE_MICROMETRES

MOST_BYTES = 64 * 1024 * 1024
"""The largest size of a library file."""
_CELL = re.compile(r"\bcell\s*\(\s*\"?([\w.$\[\]]+)\"?\s*\)\s*\{")
_FLIP_FLOP = re.compile(r"\bff\s*\(")
_LIBRARY = re.compile(r"\blibrary\s*\(\s*\"?([\w.$-]+)\"?\s*\)\s*\{")
_CELL_AREA = re.compile(r"\barea\s*:\s*\"?([0-9.eE+-]+)\"?\s*;")


@dataclass(frozen=True, slots=True)
class Liberty:
    """The text of a library that has at least one cell with an area, and a flip-flop. `name` is the library's name in the text.
    `flip_flops` are the names of the cells that are flip-flops."""

    path: Path
    name: str
    text: str
    flip_flops: frozenset[str]


def read_liberty(path: Path) -> Liberty:
    """Read a library of cells. Raises `FileError` if it cannot be read, is too large, or lacks cells, areas or a flip-flop."""
    text = read_text(path, "the liberty file", MOST_BYTES)
    library = _LIBRARY.search(text)
    if library is None:
        raise FileError(
            f"`{path}` is no liberty file: it has no `library (NAME) {{`", hint="a library of cells in the Liberty format"
        )
    if not _CELL.search(text) or not _CELL_AREA.search(text):
        raise FileError(f"liberty file `{path}` has no cell with an `area`", hint="areas are what it is read for")
    flip_flops = frozenset(_flip_flops(text))
    if not flip_flops:
        raise FileError(
            f"liberty file `{path}` has no flip-flop, a cell with an `ff (...)` group",
            hint="take the library of sequential and combinational cells together",
        )
    return Liberty(path, library[1], text, flip_flops)


def _flip_flops(text: str) -> Iterator[str]:
    cells = list(_CELL.finditer(text))
    for cell, behind in zip(cells, (*(other.start() for other in cells[1:]), len(text)), strict=True):
        if _FLIP_FLOP.search(text, cell.end(), behind):
            yield cell[1]


PROGRAM = "yosys"
GATES = "NAND,NOR,AND,OR,XOR,XNOR,MUX,AOI3,OAI3"
"""The gates to which logic is mapped, besides the inverter. Each has a row in the table of areas."""
REWRITE = "balance;rewrite;refactor;balance;rewrite;rewrite,-z;balance;refactor,-z;rewrite,-z;balance"
OPTIMIZE = f"+strash;ifraig;{REWRITE};ifraig;dc2;strash;dch,-f;map,-a"
"""The script of `abc` for the logic. Its own script takes minutes for a divider, and this one seconds."""
CIRCUIT = "circuit.sv"
LIBERTY = "cells.lib"
CELLS = "a library needs an inverter, gates, and a flip-flop without reset that is clocked by a rising edge"
"""The hint where a library lacks cells."""
SECONDS = 600
"""The most seconds of one synthesis."""
PROBE = "module probe(input c, input a, input b, output reg q);\n  always @(posedge c) q <= a & b;\nendmodule\n"
PROBE_SECONDS, BYTES_A_SECOND, PROBE_KILOBYTES = 2, 1 << 20, 1 << 20
"""The limits of a library's first use: processor seconds, bytes of the library for each further second, kilobytes of memory."""
STEPS = "proc\nflatten\nsynth -run coarse: -noabc -nordff\ndfflegalize -cell $_DFF_P_ x\nsimplemap"
"""The steps that turn a module into simple gates and flip-flops. Read ports of memories get no registers."""

_COUNT = re.compile(r"^ {5,}(\$?[\w$\\.=]+) +(\d+)$", re.MULTILINE)
_AREA = re.compile(r"Chip area for (?:top )?module .*: ([\d.e+]+)$", re.MULTILINE)


def version() -> str:
    """Return the version that yosys prints. Raises `HardwareError` if yosys is not installed."""
    if shutil.which(PROGRAM) is None:
        raise HardwareError(
            f"areas are those of gates that `{PROGRAM}` makes, and it is not there",
            hint="apt-get install yosys",
        )
    done = subprocess.run([PROGRAM, "-V"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of one part, by their name in yosys. `area` is their area in the unit of a library, or None for generic gates."""

    counts: Mapping[str, int]
    area: float | None = None


def synthesize(parts: CircuitParts, missing: Sequence[Part], liberty: Liberty | None = None) -> dict[Part, Cells]:
    """Synthesize the parts of a circuit whose cells are `missing` in what is kept, and return the cells of each. None of them may be
    a memory. Raises `HardwareError` if yosys refuses one.

    Each part has a separate run of yosys, since the result for a module depends on the modules that yosys read before.
    """
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
            _require_usable(folder, liberty)

        def cells(numbered: tuple[int, Part]) -> Cells:
            number, part = numbered
            (folder / f"{number}.ys").write_text(_commands(number, part, parts, liberty), encoding="utf-8")
            _run(folder, f"{number}.ys", liberty)
            return _cells(folder / f"{number}.txt", liberty)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            return dict(zip(missing, pool.map(cells, enumerate(missing)), strict=True))


def _commands(number: int, part: Part, parts: CircuitParts, liberty: Liberty | None) -> str:
    """Return the yosys script that synthesizes one part and writes its statistics to the file `NUMBER.txt`."""
    boxed: tuple[str, ...]
    sources: tuple[str, ...]
    if part.kind == "primitive":
        boxed, sources, top = part.files, (CIRCUIT,), parts.modules[part.body]
    else:
        boxed = tuple(file for file in part.files if file == CHANNEL_MEMORY)
        sources, top = tuple(file for file in part.files if file not in boxed), part.module
    widths = "".join(f" -chparam {name} {value}" for name, value in part.parameters)
    boxes = f"read_verilog -sv -lib {' '.join(boxed)}\n" if boxed else ""
    if liberty is None:
        mapping, areas = f"abc -g {GATES} -script {OPTIMIZE}", ""
    else:
        mapping, areas = f"dfflibmap -liberty {LIBERTY}\nabc -liberty {LIBERTY}", f" -liberty {LIBERTY}"
    return (
        f"{boxes}read_verilog -sv {' '.join(sources)}\nhierarchy -check -top {top}{widths}\n{STEPS}\n{mapping}\nopt_clean -purge\n"
        f"tee -q -o {number}.txt stat{areas}\n"
    )


def _require_usable(folder: Path, liberty: Liberty) -> None:
    """Raise `HardwareError` for a library with which yosys cannot map one gate and one flip-flop: it crashes, or never finishes,
    on some texts. The trial runs in `folder` with limits on time and memory."""
    (folder / "probe.v").write_text(PROBE, encoding="utf-8")
    mapping = f"dfflibmap -liberty {LIBERTY}\nabc -liberty {LIBERTY}\nstat -liberty {LIBERTY}"
    (folder / "probe.ys").write_text(f"read_verilog probe.v\n{STEPS}\n{mapping}\n", encoding="utf-8")
    seconds = PROBE_SECONDS + len(liberty.text) // BYTES_A_SECOND
    bounds = f"ulimit -t {seconds}; ulimit -v {PROBE_KILOBYTES + len(liberty.text) // 16}"
    done = subprocess.run(
        ["sh", "-c", f"{bounds}; exec {PROGRAM} -q -s probe.ys"], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        why = "breaks off" if done.returncode < 0 else f"ends with status {done.returncode}"
        raise HardwareError(
            f"`{PROGRAM}` {why} where it maps one gate and one flip-flop to liberty file `{liberty.path}`",
            hint=CELLS,
            notes=[line for line in (done.stderr + done.stdout).splitlines() if "ERROR" in line][-5:],
        )


def _run(folder: Path, script: str, liberty: Liberty | None) -> None:
    try:
        done = subprocess.run(
            [PROGRAM, "-q", "-s", script], cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise HardwareError(f"`{PROGRAM}` did not end in {SECONDS} seconds") from None
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if "ERROR" in line] or done.stderr.splitlines()
        if liberty is not None:
            raise HardwareError(f"`{PROGRAM}` makes no circuit of the cells in `{liberty.path}`", hint=CELLS, notes=lines[-5:])
        raise HardwareError(f"`{PROGRAM}` failed with status {done.returncode}", notes=lines[-5:])


def _cells(file: Path, liberty: Liberty | None) -> Cells:
    """Return the cells in a file of statistics of yosys. Raises `HardwareError` if one has no area or no cell in the library."""
    text = file.read_text(encoding="utf-8")
    listed = {name: int(count) for name, count in _COUNT.findall(text) if not _is_instance(name)}
    counts = dict(sorted(listed.items()))
    if liberty is None:
        if unknown := sorted(counts.keys() - SQUARE_MICROMETRES.keys()):
            raise HardwareError(
                f"`{PROGRAM}` made cells that have no area: {', '.join(unknown)}", hint="take yosys 0.23 or later"
            )
        return Cells(counts)
    unmapped = [name for name in counts if name.startswith("$")]
    if unmapped:
        raise HardwareError(
            f"liberty file `{liberty.path}` has no cell for {', '.join(f'`{name}`' for name in unmapped)} of yosys",
            hint=CELLS,
        )
    area = _AREA.search(text)
    return Cells(counts, 0.0 if area is None else float(area[1]))


def _is_instance(cell: str) -> bool:
    """Return whether a cell is a unit or a memory, which is a separate part."""
    return "ff_" in cell and (cell.startswith(("ff_", "$paramod")))


@dataclass(frozen=True, slots=True)
class KeptCells:
    """The cached cells of parts, from one version of yosys for one library, or for generic gates (`made_by`). `directory` is None
    where no directory can be trusted, and then nothing is cached.

    The files are private: a file that others could write is not read, and a damaged file is ignored."""

    directory: Path | None
    made_by: str

    @classmethod
    def of(cls, version: str, liberty: Liberty | None) -> KeptCells:
        library = "" if liberty is None else hashlib.sha256(liberty.text.encode()).hexdigest()
        return cls(private_directory(cache_root() / "area"), f"{version}\n{STEPS}\n{GATES}\n{OPTIMIZE}\n{library}")

    def read(self, part: Part) -> Cells | None:
        """Return the cached cells of a part, or None if there are none."""
        content = None if self.directory is None else read_private(self._path(part))
        return None if content is None else readable_cells(content)

    def write(self, part: Part, cells: Cells) -> None:
        """Write the cells of a part to the cache, if that is possible."""
        if self.directory is not None:
            with suppress(OSError):
                write_private(
                    self._path(part), json.dumps({"counts": dict(cells.counts), "area": cells.area}, sort_keys=True).encode()
                )

    def _path(self, part: Part) -> Path:
        assert self.directory is not None
        texts = [self.made_by, part.kind, part.module, repr(part.parameters), part.body]
        texts += [text for file in part.files for text in (file, library_text(file))]
        return self.directory / f"{hashlib.sha256(json.dumps(texts).encode()).hexdigest()}.json"


def readable_cells(content: bytes) -> Cells | None:
    """Return the cells in the content of a cache file, or None if it is damaged or has generic gates without a known area."""
    try:
        values = parse_json(content, "what was kept")
        counts, area = values["counts"], values["area"]
        cells = Cells({str(name): int(count) for name, count in counts.items()}, None if area is None else float(area))
    except (FileError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None
    is_generic = cells.area is None
    return None if is_generic and not cells.counts.keys() <= SQUARE_MICROMETRES.keys() else cells
