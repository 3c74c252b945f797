"""FIFOs, ports and workspaces of many sizes in front of a linter and a synthesizer: folders of SystemVerilog with `files.f`."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from workspace_graphs import workspace_graph

from fuseflow.hardware.circuit_files import library_closure, save_verilog
from fuseflow.hardware.rtl_simulators import library_text
from fuseflow.sim import load_machine

SIDES = {
    "fifos": "ff_channel",
    "ports": "ff_port",
}
NO_LATCH = "select -assert-none t:$_DLATCH* t:$dlatch* t:$adlatch* t:$_SR_* t:$sr"
TOP = "sizes"


def parameters(kind: str, size: int) -> dict[str, int]:
    """The parameters of a FIFO of so many slots, or of a port with so many lines without an answer."""
    if kind == "fifos":
        return {"W": 16, "D": size, "L": 1 + size % 4}
    return {"W": 12, "N": 22, "K": size, "T": max((size - 1).bit_length(), 1), "P": 5, "S": 6, "A": 40, "I": 10}


def pins(kind: str, size: int) -> tuple[dict[str, int], dict[str, int]]:
    """The inputs and the outputs of such a module, with their bits."""
    if kind == "fifos":
        return {"in_valid": 1, "in_data": 16, "out_take": 1}, {"in_ready": 1, "out_valid": 1, "out_data": 16}
    id_bits = 10 + parameters(kind, size)["T"]
    given = {"request_valid": 1, "request_data": 22, "base": 40, "ready": 1, "answer_valid": 1, "answer_id": id_bits}
    return given, {"request_ready": 1, "answers": 12, "valid": 1, "address": 40, "id": id_bits}


def save_modules(folder: Path, kind: str, sizes: Sequence[int]) -> str:
    """Write a module with an instance of each size, and return its name. For workspaces it is a whole circuit."""
    if kind == "workspaces":
        save_verilog(folder, [workspace_graph(sizes)], load_machine("rtl"))
        (file,) = folder.glob("[0-9][0-9]-*.sv")
        return file.stem.partition("-")[2]
    files = library_closure([SIDES[kind]])
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        (folder / file).write_text(library_text(file), encoding="utf-8")
    (folder / f"{TOP}.sv").write_text(_top(kind, sizes), encoding="utf-8")
    (folder / "files.f").write_text("".join(f"{file}\n" for file in (*files, f"{TOP}.sv")), encoding="utf-8")
    return TOP


def _top(kind: str, sizes: Sequence[int]) -> str:
    ports, instances = ["input clk", "input rst"], list[str]()
    for size in sizes:
        ins, outs = pins(kind, size)
        ports += [f"input [{bits - 1}:0] {name}_{size}" for name, bits in ins.items()]
        ports += [f"output [{bits - 1}:0] {name}_{size}" for name, bits in outs.items()]
        values = ", ".join(f".{name}({value})" for name, value in parameters(kind, size).items())
        wires = ", ".join(f".{name}({name}_{size})" for name in (*ins, *outs))
        instances.append(f"  {SIDES[kind]} #({values}) u{size} (.clk(clk), .rst(rst), {wires});\n")
    return f"module {TOP}({', '.join(ports)});\n{''.join(instances)}endmodule\n"


def lint(folder: Path, top: str) -> str:
    """What Verilator says of a module: nothing if it is fine."""
    command = ["verilator", "--lint-only", "-Wall", "--top-module", top, "-f", "files.f"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr or ("" if done.returncode == 0 else "failed")


def synthesis(folder: Path, top: str, gates: bool = True) -> str:
    """What yosys refuses of a module: a latch, a loop, or a wire that nothing drives. Nothing if it is fine. Without `gates` it looks at
    processes and registers alone, which takes a part of the time."""
    sources = " ".join((folder / "files.f").read_text(encoding="utf-8").split())
    steps = f"synth -top {top}" if gates else f"hierarchy -check -top {top}; proc"
    script = f"read_verilog -sv {sources}; {steps}; check -assert; {NO_LATCH}"
    done = subprocess.run(["yosys", "-q", "-p", script], cwd=folder, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr or done.stdout)[-2000:] or "failed"
