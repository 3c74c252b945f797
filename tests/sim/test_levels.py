"""Levels in both simulators: a locate in a stored level, what each asks memory for, and levels that no simulator knows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Any, cast

import numpy as np
import pytest
from engines import LIMITS, disagreements
from random_graphs import Case

import fuseflow as ff
from fuseflow.einsum.parse import parse as parse_program
from fuseflow.errors import GraphError, TensorError
from fuseflow.memory.settings import DramMemory
from fuseflow.samml.nodes import Graph, Scan
from fuseflow.samml.text import parse, show
from fuseflow.samml.verify import verify
from fuseflow.sim import Machine, load_machine, simulate
from fuseflow.sim.engine_names import Engine
from fuseflow.tensors import Format, Tensor, pack
from fuseflow.tensors.levels import LEVELS, Level
from fuseflow.tensors.levels.base import Fibers, Ints, StoredArray

ENGINES = pytest.mark.parametrize("engine", ["reference", "fast"])
MACHINES = pytest.mark.parametrize("machine", ["ideal", "comal", "rda"])
ROWS, COLUMNS = 3, 70
LOCATE = parse(f"""
graph g
tensor A[{ROWS}, {COLUMNS}]  (dense, bitmap)
tensor M[{ROWS}, {COLUMNS}]  csr
tensor Y[{ROWS}, {COLUMNS}]  csr
output Y
root = root()
m_i = scan(root) M.0
m_j = scan(m_i.ref) M.1
a_i = locate(m_i.crd) A.0
below = repeat(a_i, m_j.crd)
a_j = locate(m_j.crd, below) A.1
a_v = load(a_j) A
y_i = write(m_i.crd) Y.0
y_j = write(m_j.crd) Y.1
y_v = write(a_v) Y.vals
""")
"""Of A what stands where M stores something: a locate in a bitmap gives `N` where A stores nothing."""


def arrays() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    a, m = (np.where(rng.random((ROWS, COLUMNS)) < share, rng.integers(1, 9, (ROWS, COLUMNS)), 0.0) for share in (0.4, 0.5))
    m[1] = 0
    return a, m


def tensors(graph: Graph = LOCATE) -> dict[str, Tensor]:
    a, m = arrays()
    return {"A": pack(a, graph.declared["A"].format), "M": pack(m, graph.declared["M"].format)}


@ENGINES
@MACHINES
def test_a_locate_of_what_is_not_stored_gives_nothing(engine: Engine, machine: str) -> None:
    a, m = arrays()
    run = simulate(LOCATE, tensors(), load_machine(machine), engine=engine)
    assert run.outputs["Y"].to_dense().tolist() == np.where(m != 0, a, 0).tolist()
    read = {(t.tensor, t.kind): t.words for t in run.traffic if t.direction == "read"}
    asked = np.count_nonzero(m)
    assert read["A", "pos"] == read["A", "crd"] == asked  # a word of bits and its rank for each coordinate, found or not
    assert read["A", "val"] == np.count_nonzero((m != 0) & (a != 0))


KEPT = parse(f"""
graph g
tensor A[{ROWS}, {COLUMNS}]  (compressed, compressed)
tensor M[{COLUMNS}, {ROWS}]  csr
tensor Y[{COLUMNS}]  dense
output Y
root = root()
m_i = scan(root) M.0
m_j = scan(m_i.ref) M.1
a_j = locate(m_j.crd) A.0
a_k = scan(a_j) A.1
a_v = load(a_k.ref) A
inner = reduce(a_v) sum
outer = reduce(inner) sum
y_i = write(m_i.crd) Y.0
y_v = write(outer) Y.vals
""")
"""For each row of M the sum of the rows of A that it names, whose outermost level is kept."""


def kept_tensors() -> tuple[dict[str, Tensor], np.ndarray]:
    a, m = arrays()
    a[2] = 0
    return {"A": pack(a, KEPT.declared["A"].format), "M": pack(m.T, KEPT.declared["M"].format)}, (m.T != 0) @ a.sum(axis=1)


@ENGINES
@MACHINES
def test_a_compressed_level_that_is_located_is_read_once(engine: Engine, machine: str) -> None:
    tensors, expected = kept_tensors()
    run = simulate(KEPT, tensors, load_machine(machine), engine=engine)
    assert run.outputs["Y"].to_dense().tolist() == expected.tolist()
    read = {(t.tensor, t.kind): t.words for t in run.traffic if t.direction == "read"}
    rows = arrays()[1][:2] != 0  # row 2 of A stores nothing
    assert read["A", "pos"] == 2 * rows.sum()
    assert read["A", "crd"] == 2 + rows.sum(axis=1) @ (arrays()[0][:2] != 0).sum(axis=1)


@pytest.mark.parametrize("limits", range(len(LIMITS)))
@pytest.mark.parametrize("outstanding", [1, 2, 32])
def test_simulators_agree_on_a_level_that_is_kept(limits: int, outstanding: int) -> None:
    wide = np.ones((400, 2))
    wide[::3] = 0
    graph = parse(show(KEPT).replace(f"A[{ROWS}, {COLUMNS}]", "A[400, 2]").replace(f"M[{COLUMNS}, {ROWS}]", f"M[{COLUMNS}, 400]"))
    tensors = {"A": pack(wide, graph.declared["A"].format), "M": pack(np.eye(COLUMNS, 400, 7), graph.declared["M"].format)}
    machine = Machine(name="test", memory=DramMemory(channels=2, outstanding=outstanding, prefetch=0), fifo_depth=3)
    assert list(disagreements(Case(graph, tensors, machine), LIMITS[limits])) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((" dcsr", " coo"), "`A` is compressed(nonunique)"),
        (("locate(m_j.crd) A.0", "locate(m_j.crd, m_j.ref) A.0"), "it is located by coordinates alone"),
        (("a_k = scan(a_j) A.1", "a_k = scan(a_j) A.1\nbad = locate(a_k.crd, a_k.ref) A.1"), "`A` is compressed"),
    ],
)
def test_only_an_outermost_compressed_level_is_kept(change: tuple[str, str], message: str) -> None:
    with pytest.raises(GraphError) as caught:
        verify(parse(show(KEPT).replace(*change)))
    assert message in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize("limits", range(len(LIMITS)))
@pytest.mark.parametrize("outstanding", [1, 2, 32])
def test_simulators_agree_on_a_locate_that_asks_memory(limits: int, outstanding: int) -> None:
    machine = Machine(name="test", memory=DramMemory(channels=2, outstanding=outstanding, prefetch=0), fifo_depth=3)
    assert list(disagreements(Case(LOCATE, tensors(), machine), LIMITS[limits])) == []


@ENGINES
def test_the_outermost_level_is_located_by_coordinates_alone(engine: Engine) -> None:
    graph = parse("""
tensor a[40] (bitmap)
tensor m[40] (compressed)
tensor y[40] (bitmap)
output y
root = root()
m_i = scan(root) m.0
a_i = locate(m_i.crd) a.0
a_v = load(a_i) a
y_i = write(m_i.crd) y.0
y_v = write(a_v) y.vals
""")
    a, m = np.zeros(40), np.zeros(40)
    a[[0, 31, 32, 39]], m[[0, 5, 31, 32, 38]] = [1, 2, 3, 4], 1
    values = {"a": pack(a, graph.declared["a"].format), "m": pack(m, graph.declared["m"].format)}
    for machine in ("ideal", "rda"):
        run = simulate(graph, values, load_machine(machine), engine=engine)
        assert run.outputs["y"].values.tolist() == [1, 0, 2, 3, 0]
        assert run.outputs["y"].levels[0].arrays["rank"].tolist() == [0, 3]


def test_a_level_that_is_not_located_says_which_are() -> None:
    decl = replace(LOCATE.declared["A"], format=Format.parse("csr", 2))
    graph = replace(LOCATE, tensors=tuple(decl if t.name == "A" else t for t in LOCATE.tensors))
    with pytest.raises(GraphError, match="level 1 of `A` is compressed") as error:
        verify(graph)
    assert error.value.hint == "dense and bitmap levels are located, and compressed ones if they are outermost"


@ENGINES
@pytest.mark.parametrize("line", [32, 64])
def test_bytes_of_a_product(engine: Engine, line: int) -> None:
    """A scan asks for one rank a fiber and for all its bits, with empty fibers; a write writes all ranks and bits."""
    rows, inner = 20, 300
    rng = np.random.default_rng(3)
    a = np.where(rng.random((rows, inner)) < 0.1, 1.0, 0.0).astype(np.float32)
    a[4] = 0
    program = parse_program(f"""
tensor A[{rows}, {inner}] (dense, bitmap)
tensor C[{rows}, {inner}] (dense, bitmap)
C[i, j] = A[i, j] * A[i, j]
output C
""")
    machine = load_machine("rda", {"memory.line": line})
    compiled = ff.compile(program, tensors={"A": a}, machine=machine)
    scans = sum(isinstance(node, Scan) and (node.tensor, node.level) == ("A", 1) for node in compiled.regions[0].graph.nodes)
    result = compiled.run(engine=engine)
    assert result.outputs["C"].toarray().tolist() == (a * a).tolist()
    words = ceil(inner / 32)
    (region,) = result.regions
    asked = {(t.tensor, t.kind, t.direction): t.words for t in region.simulation.traffic}
    assert asked["A", "pos", "read"] == scans * rows
    assert asked["A", "crd", "read"] == scans * rows * words
    assert asked["C", "pos", "write"] == asked["C", "crd", "write"] == rows * words
    memory = region.simulation.memory
    assert memory is not None
    for kind in ("pos", "crd"):
        moved = [of.moved_bytes for port, of in memory.ports if (port.tensor, port.kind, port.direction) == ("C", kind, "write")]
        assert moved == [line * ceil(rows * words * 4 / line)]


@dataclass(frozen=True, slots=True)
class Strange(Level):
    """Packed like another level; its arrays, or its fibers, are what no simulator knows."""

    like: Level
    stored_arrays: tuple[StoredArray, ...] = ()

    @property
    def text(self) -> str:
        return "strange"

    def arrays(self, size: int) -> tuple[StoredArray, ...]:
        return self.stored_arrays

    def pack(self, size: int, parents: int, refs: Ints, prefixes: Ints, crds: Ints) -> tuple[Fibers, Ints]:
        return self.like.pack(size, parents, refs, prefixes, crds)


SCAN = parse("""
tensor A[4] (compressed)
tensor Y[4] (compressed)
output Y
root = root()
i = scan(root) A.0
v = load(i.ref) A
y_i = write(i.crd) Y.0
y_v = write(v) Y.vals
""")


def strange(level: Level) -> tuple[Graph, dict[str, Tensor]]:
    format = Format((level,), (0,))
    graph = replace(SCAN, tensors=(replace(SCAN.tensors[0], format=format), SCAN.tensors[1]))
    return graph, {"A": pack(np.array([0, 5.0, 0, 6.0]), format)}


@ENGINES
def test_fibers_that_no_simulator_knows_are_an_error(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not taken for dense ones."""
    graph, values = strange(Strange(LEVELS["compressed"]))
    monkeypatch.setattr(type(values["A"].levels[0]), "walk", lambda self: "a way that is new")
    with pytest.raises(AssertionError, match="a way that is new"):
        simulate(graph, values, load_machine("ideal"), engine=engine)


@ENGINES
def test_arrays_that_no_scan_reads_are_an_error(engine: Engine) -> None:
    both = StoredArray("pos", "seg", 1, 1, 1, 2), StoredArray("crd", "crd", entry=1, scanned=1)
    graph, values = strange(Strange(LEVELS["compressed"], both))
    with pytest.raises(TensorError, match="no scan reads the arrays of a strange level"):
        values["A"].format.levels[0].reads(4)
    with pytest.raises((TensorError, KeyError, ValueError)):
        simulate(graph, values, load_machine("rda"), engine=engine)


def test_a_level_without_a_walk_cannot_be_made() -> None:
    class Lost(Fibers):
        entries = 0

        def fiber(self, ref: int) -> Any: ...
        def expand(self, refs: Ints) -> Any: ...

    with pytest.raises(TypeError, match="walk"):
        cast(Any, Lost)(4)
