"""What users get of a circuit: MLIR text without any tool, and a directory of SystemVerilog that tools accept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hardware_tools import require
from sum_graph import GRAPH, TEXT

from fuseflow.errors import FileError, HardwareError
from fuseflow.hardware.circuit_files import circuit_text, save_verilog
from fuseflow.samml.nodes import Graph
from fuseflow.samml.text import parse
from fuseflow.sim import Machine, load_machine

PLAIN = Machine(name="plain", arithmetic="f32", fifo_depth=2, latency={"default": 1, "add": 3})


def test_text_needs_nothing_and_is_always_the_same() -> None:
    """The modules of the two scans and of the two loads are one each."""
    text = circuit_text(GRAPH, PLAIN)
    assert text == circuit_text(GRAPH, PLAIN)
    instances = [line.split("@")[1].split("(")[0] for line in text.splitlines() if 'hw.instance "n_' in line]
    modules = list(dict.fromkeys(instances))
    assert len(instances) == len(GRAPH.nodes)
    assert [instances.count(name) for name in modules if "_scan_" in name] == [1, 2]
    assert [instances.count(name) for name in modules if "_load_" in name] == [2]
    assert "@ff_channel<W: i32 = 34, D: i32 = 2, L: i32 = 3>" in text


def test_printing_loads_no_tool() -> None:
    program = "import sys, fuseflow.hardware.circuit_files; print([m for m in ('pycde', 'torch', 'numba') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_fifos_need_a_bound() -> None:
    with pytest.raises(HardwareError, match=r"input `0` of `A_i` has no bound on this machine") as error:
        circuit_text(GRAPH, Machine(name="ideal", arithmetic="f32"))
    assert "fifo_depth: 8" in error.value.hint


def test_directory_of_verilog(tmp_path: Path) -> None:
    require("pycde")
    save_verilog(tmp_path / "v", [GRAPH], PLAIN)
    about = json.loads((tmp_path / "v" / "circuit.json").read_text())
    listed = (tmp_path / "v" / "files.f").read_text().split()
    assert {*listed, "files.f"} == set(about["files"])
    assert listed[-1] == "01-ff_graph.sv" and "ff_f32_add.sv" in listed
    assert about["regions"][0]["simulation_only"] == []
    first = {name: (tmp_path / "v" / name).read_bytes() for name in listed}
    save_verilog(tmp_path / "v", [GRAPH], PLAIN)  # what was written this way is replaced, by the same
    assert {name: (tmp_path / "v" / name).read_bytes() for name in listed} == first
    (tmp_path / "v" / "notes.txt").write_text("mine")
    with pytest.raises(FileError, match=r"notes\.txt"):
        save_verilog(tmp_path / "v", [GRAPH], PLAIN)
    assert (tmp_path / "v" / "notes.txt").exists()


def test_two_regions_of_one_name(tmp_path: Path) -> None:
    with pytest.raises(HardwareError, match="two regions have one name"):
        save_verilog(tmp_path / "v", [GRAPH, GRAPH], PLAIN)
    assert not (tmp_path / "v").exists()


def test_tools_accept_the_verilog(tmp_path: Path) -> None:
    """Verilator has no warning, and yosys finds no latch, no loop and no wire that nothing drives."""
    require("pycde", "verilator", "yosys")
    _require_accepted(tmp_path, GRAPH, PLAIN)


TILES = """
tensor A[3, 3] csr f32 tile 2x3
tensor B[3] dense f32 tile 2x3
tensor y[3] dense f32 tile 2x2
output y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_v = load(A_j.ref) A
B_j = locate(A_j.crd) B.0
B_v = load(B_j) B
product = alu(A_v, B_v) matmul_t N->0,N->0
total = reduce(product) sum
square = alu(total) exp N->0
y_i = write(A_i.crd) y.0
y_v = write(square) y.vals
"""


def test_tools_accept_tiles(tmp_path: Path) -> None:
    """Arrays of units, of several steps and of one, and FIFOs of tiles in flip-flops and in memories."""
    require("pycde", "verilator", "yosys")
    for units, depth in ((1, 2), (4, 9), (64, 1)):
        machine = PLAIN.model_copy(update={"tile_macs": units, "fifo_depth": depth})
        _require_accepted(tmp_path / str(units), parse(TILES), machine)


def test_verilator_has_nothing_to_say_of_an_output_that_no_node_reads(tmp_path: Path) -> None:
    """The values of B are loaded, and the coordinates beside them are not looked at. Autoencoders have such a scan."""
    require("pycde", "verilator")
    text = TEXT.replace("B_v = load(B_j.ref) B", "B_k = scan(A_i.ref) B.1\nB_v = load(B_k.ref) B")
    save_verilog(tmp_path, [parse(text)], PLAIN)
    assert "(/* unused */)" in (tmp_path / "01-ff_graph.sv").read_text()
    assert _lint(tmp_path) == (0, "")


def _require_accepted(folder: Path, graph: Graph, machine: Machine) -> None:
    """Verilator and yosys have nothing to say of the circuit of a graph."""
    save_verilog(folder, [graph], machine)
    assert _lint(folder) == (0, "")
    sources = " ".join((folder / "files.f").read_text().split())
    script = f"read_verilog -sv {sources}; hierarchy -check -top ff_graph; proc; check -assert; select -assert-none t:$dlatch"
    done = subprocess.run(["yosys", "-q", "-p", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def _lint(folder: Path) -> tuple[int, str]:
    """What Verilator says of a directory."""
    command = ["verilator", "--lint-only", "-Wall", "--top-module", "ff_graph", "-f", "files.f"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


COMAL = """
tensor x[3] dense f32
tensor y[3] dense f32
output y
root = root()
x_i = scan(root) x.0
x_v = load(x_i.ref) x
y_i = write(x_i.crd) y.0
y_v = write(x_v) y.vals
"""


def test_machines_without_circuits() -> None:
    with pytest.raises(HardwareError, match="has `rules: comal`"):
        circuit_text(parse(COMAL), load_machine("comal"))


def test_workspace_that_is_too_large() -> None:
    graph = parse("""
tensor A[3, 100, 90] (dense, dense, dense) f32
tensor Y[100, 90] (dense, dense) f32
output Y
root = root()
A_k = scan(root) A.0
A_i = scan(A_k.ref) A.1
A_j = scan(A_i.ref) A.2
A_v = load(A_j.ref) A
acc = accumulate(A_k.crd, A_i.crd, A_j.crd, A_v) sum order=2
Y_i = write(acc.crd1) Y.0
Y_j = write(acc.crd2) Y.1
Y_v = write(acc.val) Y.vals
""")
    with pytest.raises(HardwareError, match=r"node `acc` \(accumulate\) needs a workspace of 12,800 entries") as error:
        circuit_text(graph, load_machine("rtl"))
    assert "loop order" in error.value.hint


def test_select_has_no_circuit() -> None:
    select = parse("""
tensor A[1, 5] csr f32
tensor Y[1, 5] csr f32
output Y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_v = load(A_j.ref) A
best = select(A_j.crd, A_v) keep=2 every=4 levels=1
Y_i = write(A_i.crd) Y.0
Y_j = write(best.crd) Y.1
Y_v = write(best.val) Y.vals
""")
    with pytest.raises(HardwareError, match=r"node `best` \(select\) has no circuit"):
        circuit_text(select, load_machine("rtl"))


def test_tiles_that_are_too_large() -> None:
    large = COMAL.replace("[3] dense f32", "[3] dense f32 tile 64x65")
    with pytest.raises(
        HardwareError, match="`x_v` carries tiles of 64x65, and in a circuit a tile has at most 4,096 elements"
    ) as error:
        circuit_text(parse(large), load_machine("rtl"))
    assert "smaller blocks" in error.value.hint
    circuit_text(parse(large.replace("64x65", "64x64")), load_machine("rtl"))


def test_streams_that_are_too_deep() -> None:
    levels = 17
    format_ = f"({', '.join(['dense'] * levels)})"
    shape = ", ".join(["1"] * levels)
    scans = [f"s{k} = scan({f's{k - 1}.ref' if k else 'root'}) A.{k}" for k in range(levels)]
    writes = [f"w{k} = write(s{k}.crd) Y.{k}" for k in range(levels)]
    lines = [f"tensor A[{shape}] {format_} f32", f"tensor Y[{shape}] {format_} f32", "output Y", "root = root()", *scans]
    lines += [f"v = load(s{levels - 1}.ref) A", *writes, "wv = write(v) Y.vals"]
    with pytest.raises(HardwareError, match="17 levels deep; the stops of a circuit have 16"):
        circuit_text(parse("\n".join(lines)), load_machine("rtl"))


def test_elements_that_32_bits_do_not_hold() -> None:
    from fuseflow.errors import MachineError

    with pytest.raises(MachineError, match="has elements of f64"):
        circuit_text(parse(COMAL.replace("f32", "f64")), load_machine("rtl"))
