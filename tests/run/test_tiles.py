"""Products and a GCN on a scratchpad of 1 MB, by hand and to the byte: operands that fit, and operands that do not and are tiled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import program_fuzz
import pytest
from scipy import sparse
from tiled_programs import KINDS

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import HardwareError, SamplingError, ScheduleError, SimulationError
from fuseflow.memory.statistics import MemoryStatistics
from fuseflow.run.result import RegionResult
from fuseflow.sim import load_machine
from fuseflow.sim.traced_rerun import find_timeline
from fuseflow.tensors import Format, pack

NODES, PER_ROW = 4096, 2
SPMM = """
tensor A[{rows}, 4096] csr
tensor X[4096, {columns}]
Y[i, j] = sum(k) A[i, k] * X[k, j]
output Y
"""
GCN = """
tensor A[96, 96] csr
tensor X[96, 64]
tensor W1[64, {hidden}]
tensor W2[{hidden}, 8]
T1[i, j] = sum(k) X[i, k] * W1[k, j]
T2[i, j] = sum(k) A[i, k] * T1[k, j]
H[i, j] = relu(T2[i, j])
T3[i, l] = sum(j) H[i, j] * W2[j, l]
Y[i, l] = sum(k) A[i, k] * T3[k, l]
output Y
"""


def matrix(rows: int, columns: int, seed: int = 0) -> sparse.csr_array:
    """Two entries in each row, at random."""
    rng = np.random.default_rng(seed)
    coordinates = np.sort(np.array([rng.choice(columns, PER_ROW, replace=False) for _ in range(rows)]), axis=1)
    values = rng.random(rows * PER_ROW).astype(np.float32)
    return sparse.csr_array((values, coordinates.ravel(), np.arange(0, PER_ROW * rows + 1, PER_ROW)), shape=(rows, columns))


def run(text: str, schedule: ff.Schedule, **arrays: object) -> ff.Result:
    """The run on the engine of a machine with a scratchpad of 1 MB, checked against the interpreter."""
    rng, program = np.random.default_rng(7), parse(text)
    tensors = {t.name: arrays.get(t.name, rng.random(t.shape).astype(np.float32)) for t in program.inputs}
    machine = load_machine("rda", {"scratchpad": "1MB"})
    result = ff.compile(program, tensors=tensors, schedule=schedule, machine=machine).run()
    assert result.check is not None and result.check.passed
    return result


def spmm(rows: int, columns: int, schedule: ff.Schedule) -> ff.Result:
    """Y = A X, where A has two entries in each row, in loops i, k, j."""
    return run(SPMM.format(rows=rows, columns=columns), schedule.order("Y", "i,k,j"), A=matrix(rows, NODES))


def memory_of(region: RegionResult) -> MemoryStatistics:
    memory = region.simulation.memory
    assert memory is not None
    return memory


def lines(size: int) -> int:
    """The bytes of the lines of an array."""
    return -(-size // 64) * 64


def csr_bytes(rows: int) -> int:
    """The bytes of the lines of positions, coordinates and values of `rows` rows."""
    return lines(4 * (rows + 1)) + 2 * lines(4 * PER_ROW * rows)


def test_an_operand_that_fits_is_loaded_once() -> None:
    """X has 4096 x 32 values, which are 512 KB. Of 512 entries of A each reads a row of it there, of two words."""
    (region,) = spmm(256, 32, ff.Schedule().memory("X")).regions
    memory = memory_of(region)
    assert memory.transferred_bytes("read") == 4096 * 32 * 4
    assert memory.moved_bytes("read") == 4096 * 32 * 4 + csr_bytes(256)
    assert memory.moved_bytes("write") == 256 * 32 * 4 and memory.transferred_bytes("write") == 0
    assert memory.words("read") == 512 * 2 and memory.words("write") == 0


def test_an_operand_that_does_not_fit_is_refused_with_the_tile_that_would() -> None:
    """X has 4096 x 128 values, which are 2 MB; two tiles of 32 columns are 1 MB. Its rows are reduced, so there are no tiles of them."""
    with pytest.raises(SimulationError, match="`X` has 2,097,152 bytes, and the scratchpad 1,048,576") as caught:
        spmm(256, 128, ff.Schedule().memory("X"))
    assert caught.value.hint == "two tiles of 32 of 128 coordinates of `j` fit: `--tile Y.j=32`"
    spmm(256, 128, ff.Schedule().memory("X").tile(**{"Y.j": 32}))


def test_tiles_that_are_too_large_are_refused_with_those_that_would_fit() -> None:
    """A tile of 64 columns takes all of the scratchpad, and two are to lie there."""
    with pytest.raises(
        SimulationError, match=r"each of two tiles of `X` has 1,048,576 bytes, and the scratchpad 1,048,576"
    ) as caught:
        spmm(256, 128, ff.Schedule().memory("X").tile(j=64))
    assert caught.value.hint == "two tiles of 32 of 64 coordinates of `j` fit: `--tile Y.j=32`"


def test_a_result_that_does_not_fit_is_refused_with_the_tiles_of_all_its_indices() -> None:
    """Y has 4096 x 128 values; X is in the memory."""
    with pytest.raises(SimulationError, match="`Y` has 2,097,152 bytes") as caught:
        spmm(4096, 128, ff.Schedule().memory("Y"))
    fitting = "1,024 of 4,096 coordinates of `i` fit: `--tile Y.i=1024`, or of 32 of 128 coordinates of `j` fit: `--tile Y.j=32`"
    assert caught.value.hint == f"two tiles of {fitting}"


def test_a_tensor_that_lacks_the_tiled_index_is_not_helped_by_smaller_tiles() -> None:
    with pytest.raises(SimulationError, match="`X` has 2,097,152 bytes") as caught:
        spmm(64, 128, ff.Schedule().memory("X").tile(i=32))
    assert caught.value.hint == "leave it in the memory, or give the machine a larger scratchpad"


def test_an_operand_that_does_not_fit_is_tiled_and_each_byte_of_it_read_once() -> None:
    """Four tiles of 32 columns, of 512 KB each: two fit. A is read four times."""
    plain = spmm(256, 128, ff.Schedule())
    tiled = spmm(256, 128, ff.Schedule().memory("X").tile(j=32))
    assert np.array_equal(plain.outputs["Y"], tiled.outputs["Y"])
    (region,) = tiled.regions
    memory = memory_of(region)
    assert region.simulation.tiles == 4
    assert memory.transferred_bytes("read") == 4096 * 128 * 4
    assert memory.moved_bytes("read") == 4096 * 128 * 4 + 4 * csr_bytes(256)
    assert memory.moved_bytes("write") == 256 * 128 * 4
    assert memory.words("read") == 4 * 512 * 2
    assert region.cycles >= region.simulation.bound
    # without tiles, X alone takes 36 ports' worth of rows again; with them, three of four loads are behind a run
    loads = 4096 * 128 * 4 / memory.peak
    assert region.cycles < 4 * loads + 4 * spmm(256, 32, ff.Schedule()).cycles


def test_rows_in_tiles_read_an_operand_without_them_once_and_the_last_tile_is_smaller() -> None:
    """100 rows by 32: tiles of 32, 32, 32 and 4 rows. X is loaded before the first. Results are stored behind the next tile."""
    plain = spmm(100, 32, ff.Schedule())
    tiled = spmm(100, 32, ff.Schedule().memory("X").memory("Y").tile(i=32))
    assert np.array_equal(plain.outputs["Y"], tiled.outputs["Y"])
    (region,) = tiled.regions
    memory = memory_of(region)
    assert region.simulation.tiles == 4
    assert memory.transferred_bytes("read") == 4096 * 32 * 4
    assert memory.moved_bytes("read") == 4096 * 32 * 4 + 3 * csr_bytes(32) + csr_bytes(4)
    assert memory.moved_bytes("write") == memory.transferred_bytes("write") == 100 * 32 * 4
    assert memory.words("write") == 100 * 2


def test_a_gcn_keeps_what_the_next_region_reads() -> None:
    """T1, T2, H and T3 stay in the scratchpad: only X, A (which both products read, and no region in between) and Y are moved."""
    schedule = ff.Schedule.fuse("none")
    for name in ("T1", "T2", "H", "T3"):
        schedule = schedule.memory(name)
    result = run(GCN.format(hidden=16), schedule, A=matrix(96, 96))
    moved = {
        region.name: (memory_of(region).moved_bytes("read"), memory_of(region).moved_bytes("write")) for region in result.regions
    }
    assert all(memory_of(region).transferred_bytes("read") == 0 for region in result.regions)
    assert moved["T2"] == (csr_bytes(96), 0)
    assert moved["H"] == (0, 0)
    assert moved["Y"] == (csr_bytes(96), 96 * 8 * 4)
    assert moved["T1"][1] == moved["T3"][1] == 0
    for region in result.regions:
        words = memory_of(region).words("write")
        assert words == {"T1": 96, "T2": 96, "H": 96, "T3": 48, "Y": 0}[region.name]  # 64 bytes each


def test_a_gcn_with_a_hidden_layer_that_does_not_fit_runs_it_in_tiles() -> None:
    """T1 has 96 x 4096 values, which are 1.5 MB: tiles of 1024 columns have 384 KB, and two of them fit."""
    text, schedule = GCN.format(hidden=4096), ff.Schedule.fuse("none").order("T2", "i,k,j")
    placed = schedule.memory("T1").tile(**{"T1.j": 1024, "T2.j": 1024})
    plain, tiled = (run(text, each, A=matrix(96, 96)) for each in (schedule, placed))
    assert np.array_equal(plain.outputs["Y"], tiled.outputs["Y"])
    first, second = (next(r for r in tiled.regions if r.name == name) for name in ("T1", "T2"))
    size = 96 * 4096 * 4
    assert memory_of(first).transferred_bytes("write") == memory_of(first).moved_bytes("write") == size
    assert memory_of(second).transferred_bytes("read") == size
    assert memory_of(second).moved_bytes("read") == size + 4 * csr_bytes(96)
    assert memory_of(second).words("read") == 96 * PER_ROW * 4096 * 4 // 64


def test_an_estimate_of_tiles_is_near() -> None:
    program = parse(SPMM.format(rows=256, columns=128))
    tensors = {"A": matrix(256, NODES), "X": np.ones((4096, 128), np.float32)}
    schedule = ff.Schedule().order("Y", "i,k,j").memory("X").tile(j=32)
    compiled = ff.compile(program, tensors=tensors, schedule=schedule, machine=load_machine("rda", {"scratchpad": "1MB"}))
    run, estimate = compiled.run(check=False), compiled.estimate()
    assert 0.7 * run.cycles < estimate.cycles < 1.4 * run.cycles
    assert estimate.stats["bytes"]["read"] == pytest.approx(run.stats["bytes"]["read"], rel=0.05)


@pytest.mark.parametrize(
    ("tiles", "message"),
    [
        ({"q": 4}, "tiles of `q`: no region has this index"),
        ({"k": 4}, "tiles of `k` in region `Y`: it is reduced"),
        ({"i": 4, "j": 4}, "tiles of `i` in region `Y`: so are those of `j`"),
    ],
)
def test_what_cannot_be_tiled(tiles: dict[str, int], message: str) -> None:
    with pytest.raises(ScheduleError, match=message) as caught:
        spmm(16, 32, ff.Schedule().tile(**tiles))
    assert caught.value.hint == "`Y` can be tiled over `i` or `j`: `--tile Y.i=4`" or "q" in tiles


def test_a_region_without_an_index_for_tiles_says_so() -> None:
    text = "tensor X[8, 4]\nS[i] = sum(j) X[i, j]\nY = sum(i) S[i]\noutput Y\n"
    with pytest.raises(ScheduleError, match="tiles of `i` in region `Y`: it is reduced") as caught:
        run(text, ff.Schedule.fuse("none").tile(i=4))
    assert caught.value.hint == "`Y` can be tiled over no index; other regions are named as `--tile REGION.i=4`"


def test_random_programs_in_tiles() -> None:
    """Some are sparse, some tiles do not divide, some have places, and all give what they give without tiles, to the last bit."""
    tally = program_fuzz.run(5, examples=25, tile=True, smaller=False)
    assert not tally.differing
    assert all(tally.quotas[kind] > 0 for kind in KINDS)


def test_all_coordinates_in_one_tile_are_a_run_without_tiles() -> None:
    assert spmm(16, 32, ff.Schedule().tile(j=32)).cycles == spmm(16, 32, ff.Schedule()).cycles


def test_samples_circuits_and_traces_refuse_tiles(tmp_path: Path) -> None:
    program = parse(SPMM.format(rows=16, columns=32))
    tensors = {"A": matrix(16, NODES), "X": pack(np.ones((4096, 32), np.float32), Format.dense(2))}
    compiled = ff.compile(program, tensors=tensors, schedule=ff.Schedule().tile(j=8))
    with pytest.raises(SamplingError, match="a run in tiles cannot be sampled"):
        compiled.run(sample=ff.Sample(fraction=1))
    with pytest.raises(HardwareError, match="region `Y` runs in tiles"):
        compiled.save_verilog(tmp_path)
    (region,), memory = compiled.regions, compiled.memory()
    with pytest.raises(SimulationError, match="graph `Y` ran in 4 tiles, and a trace follows one run"):
        find_timeline(region.graph, memory, compiled.machine, compiled.run().regions[0].simulation)
