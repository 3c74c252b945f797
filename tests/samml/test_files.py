"""Graphs of tiles with their tensors: another tool's, and our own, cut out of files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from tile_graphs import SPMM, blocked
from tile_graphs import sparse as sparse_tiles

from fuseflow.errors import FuseFlowError
from fuseflow.samml import tortilla_pb2 as pb
from fuseflow.samml.files import load_graph, merge_tiles
from fuseflow.samml.protobuf import to_proto
from fuseflow.samml.text import parse
from fuseflow.sim import load_machine, simulate
from fuseflow.tensors.array_files import write_fibertree

GRAPHS = Path(__file__).parents[1] / "data" / "comal"
SIDE = 3
Matrix = npt.NDArray[np.float64]


def blocked_graph(name: str) -> pb.ComalGraph:
    """Another tool's graph, on square tiles."""
    message = pb.ComalGraph.FromString((GRAPHS / f"{name}.bin").read_bytes())
    for op in message.graph.operators:
        if op.WhichOneof("op") == "array":
            op.array.blocked, op.array.stream_shape = True, SIDE
    return message


@pytest.fixture
def here(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "b.npy", sparse_tiles(rng, (4 * SIDE, 3 * SIDE), (SIDE, SIDE), 0.5))
    np.save(tmp_path / "c.npy", sparse_tiles(rng, (3 * SIDE, 5 * SIDE), (SIDE, SIDE), 0.8))
    return tmp_path


def result(folder: Path, message: pb.ComalGraph, listing: str, machine: str = "ideal") -> Matrix:
    (folder / "g.bin").write_bytes(message.SerializeToString())
    (folder / "t.yaml").write_text(listing)
    graph, tensors = load_graph(folder / "g.bin", folder / "t.yaml")
    (output,) = simulate(graph, tensors, load_machine(machine), check=True).outputs.values()
    assert output.tile == (SIDE, SIDE)
    return np.asarray(merge_tiles(output).to_dense(), np.float64)


def product(folder: Path) -> Matrix:
    found: Matrix = np.load(folder / "b.npy") @ np.load(folder / "c.npy")
    return found


@pytest.mark.parametrize("machine", ["ideal", "rda", "comal"])
def test_another_tools_product_of_tiles(here: Path, machine: str) -> None:
    """MUL of tiles is the matrix product, whether its operation says `blocked` or not."""
    message, listing = blocked_graph("spmm_ikj"), f"B: {{path: b.npy, block: [{SIDE}, {SIDE}]}}\nC: {{path: c.npy}}\n"
    np.testing.assert_array_equal(result(here, message, listing, machine), product(here))
    for op in message.graph.operators:
        for kind in ("alu", "reduce", "spacc"):
            if op.WhichOneof("op") == kind:
                getattr(op, kind).blocked, getattr(op, kind).stream_shape = True, SIDE
    np.testing.assert_array_equal(result(here, message, listing, machine), product(here))


def test_sparse_files_of_tiles(here: Path) -> None:
    sparse.save_npz(here / "b.npz", sparse.coo_array(np.load(here / "b.npy")))
    listing = "B: {path: b.npz, levels: [compressed, compressed]}\nC: {path: c.npy}\n"
    np.testing.assert_array_equal(result(here, blocked_graph("spmm_ikj"), listing), product(here))


def test_tiles_stand_as_the_file_has_them(here: Path) -> None:
    """C is stored by columns, of tiles that are rows by columns; with those turned as well the product would be another."""
    message = blocked_graph("spmm_ijk")
    indices = "order: [j, k], indices: [k, j]"
    np.testing.assert_array_equal(result(here, message, f"B: {{path: b.npy}}\nC: {{path: c.npy, {indices}}}\n"), product(here))
    np.save(here / "turned.npy", np.load(here / "c.npy").T)
    with pytest.raises(FuseFlowError, match=r"`matmul` of tiles of `i` x `k` and `j` x `k`: `k` meets `j`\n.*`indices`"):
        result(here, message, "B: {path: b.npy}\nC: {path: turned.npy}\n")


def test_elementwise_and_folded_rows(here: Path) -> None:
    """ELEMMUL is element by element, ADDSUM adds up the rows of the sum of the tiles."""
    text = """
    name: "g"
    graph {
      operators { name: "root" id: 1 root { output_ref { id { id: 1 } } } }
      operators { name: "i" id: 2 fiber_lookup { tensor: "B" index: "i" format: "dense" input_ref { id { id: 1 } }
        output_crd { id { id: 2 } } output_ref { id { id: 3 } } } }
      operators { name: "k" id: 3 fiber_lookup { tensor: "B" index: "k" mode: 1 format: "compressed" input_ref { id { id: 3 } }
        output_ref { id { id: 4 } } } }
      operators { name: "v" id: 4 array { tensor: "B" blocked: true stream_shape: 3 input_ref { id { id: 4 } }
        output_val { id { id: 5 } } } }
      operators { name: "two" id: 5 broadcast { val { input { id { id: 5 } } outputs { id { id: 6 } } outputs { id { id: 7 } } } } }
      operators { name: "mul" id: 6 alu { vals { inputs { id { id: 6 } } inputs { id { id: 7 } } output { id { id: 8 } } }
        stages { op: ELEMMUL } } }
      operators { name: "sum" id: 7 reduce { reduce_type: ADDSUM blocked: true stream_shape: 3 input_val { id { id: 8 } }
        output_val { id { id: 9 } } } }
      operators { name: "crd" id: 8 fiber_write { tensor: "y" index: "i" format: "dense" input_crd { id { id: 2 } } } }
      operators { name: "out" id: 9 val_write { tensor: "y" input_val { id { id: 9 } } } }
    }
    """
    (here / "g.txtpb").write_text(text)
    (here / "t.yaml").write_text("B: {path: b.npy}\n")
    graph, tensors = load_graph(here / "g.txtpb", here / "t.yaml")
    found = simulate(graph, tensors, load_machine("ideal"), check=True).outputs["y"]
    assert found.tile == (SIDE, 1)
    np.testing.assert_array_equal(merge_tiles(found).to_dense(), (np.load(here / "b.npy") ** 2).sum(axis=1))


@pytest.mark.parametrize(
    ("listing", "message"),
    [
        ("B: {path: b.npy, block: [2, 2]}\nC: {path: c.npy}\n", r"`B`: `block` is \[2, 2\], the graph has tiles of 3x3"),
        ("B: {path: b.npy, block: 3}\nC: {path: c.npy}\n", "`B.block` is not a list of names"),
        ("B: {path: odd.npy}\nC: {path: c.npy}\n", r"`B`: an array of \[11, 9\] is not \[4, 3\] tiles of 3x3"),
        ("B: {path: cube.npy}\nC: {path: c.npy}\n", "has 3 dimensions, the tensor 2 levels"),
        ("B: {path: line.npy}\nC: {path: c.npy}\n", "has 1 dimensions, the tensor 2 levels"),
    ],
)
def test_what_does_not_fit(here: Path, listing: str, message: str) -> None:
    for name, shape in (("odd", (11, 9)), ("cube", (3, 3, 3)), ("line", (9,))):
        np.save(here / f"{name}.npy", np.ones(shape))
    with pytest.raises(FuseFlowError, match=message):
        result(here, blocked_graph("spmm_ikj"), listing)


def test_our_own_graphs_of_tiles(tmp_path: Path) -> None:
    """Rectangles, from arrays and from a folder of fibertrees."""
    rng = np.random.default_rng(1)
    a, x = sparse_tiles(rng, (8, 15), (2, 3), 0.5), sparse_tiles(rng, (15, 12), (3, 4), 0.7)
    text = f"graph own\n{SPMM.format(format='csr', other='dense')}"
    (tmp_path / "g.samml").write_text(text)
    (tmp_path / "g.bin").write_bytes(to_proto(parse(text)))
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "turned.npy", a.T)
    np.save(tmp_path / "x.npy", x)
    write_fibertree(tmp_path / "trees", "A", blocked(a, (2, 3), "csr"))
    for graph_file in ("g.samml", "g.bin"):
        for entry in ("a.npy", "trees", "a.npy, block: [2, 3]", "turned.npy, order: [i, k], indices: [k, i]"):
            (tmp_path / "t.yaml").write_text(f"A: {{path: {entry}}}\nX: {{path: x.npy}}\n")
            graph, tensors = load_graph(tmp_path / graph_file, tmp_path / "t.yaml")
            found = simulate(graph, tensors, load_machine("ideal")).outputs["Y"]
            np.testing.assert_array_equal(merge_tiles(found).to_dense(), a @ x)
    (tmp_path / "trees" / "tensor_A_mode_vals").write_text("1\n")
    (tmp_path / "t.yaml").write_text("A: {path: trees}\nX: {path: x.npy}\n")
    with pytest.raises(FuseFlowError, match=r"holds 1 values, the levels have room for"):
        load_graph(tmp_path / "g.bin", tmp_path / "t.yaml")
    (tmp_path / "t.yaml").write_text("A: {path: a.npy}\nX: {path: a.npy}\n")
    with pytest.raises(FuseFlowError, match=r"`X`: an array of \[8, 15\] is not \[5, 3\] tiles of 3x4"):
        load_graph(tmp_path / "g.bin", tmp_path / "t.yaml")


ONE = """graph one
tensor A[{shape}]  dense tile {tile}
tensor Y[{shape}]  dense tile {tile}
output Y
r = root()
{scans}
v = load({last}.ref) A
y = alu(v) mul N->0,2
{writes}
w = write(y) Y.vals
"""


def doubled(folder: Path, array: Matrix, shape: tuple[int, ...], tile: str, entry: str = "") -> Matrix:
    names = ["r", *(f"i{k}" for k in range(len(shape)))]
    scans = "\n".join(f"i{k} = scan({names[k] if k == 0 else names[k] + '.ref'}) A.{k}" for k in range(len(shape)))
    writes = "\n".join(f"w{k} = write(i{k}.crd) Y.{k}" for k in range(len(shape)))
    text = ONE.format(shape=", ".join(map(str, shape)), tile=tile, scans=scans, last=names[-1], writes=writes)
    (folder / "g.samml").write_text(text)
    np.save(folder / "a.npy", array)
    (folder / "t.yaml").write_text(f"A: {{path: a.npy{entry}}}\n")
    graph, tensors = load_graph(folder / "g.samml", folder / "t.yaml")
    return np.asarray(merge_tiles(simulate(graph, tensors, load_machine("ideal")).outputs["Y"]).to_dense(), np.float64)


@pytest.mark.parametrize("tile", ["1x3", "3x1", "1x1"])
def test_vectors_in_tiles(tmp_path: Path, tile: str) -> None:
    array = np.arange(6.0)
    shape = (6,) if tile == "1x1" else (2,)
    np.testing.assert_array_equal(doubled(tmp_path, array, shape, tile), 2 * array)


def test_tiles_of_a_tensor_of_more_dimensions(tmp_path: Path) -> None:
    """The graph does not say along which dimensions they lie: that is asked for, and the result keeps them apart."""
    array = np.arange(4.0 * 5 * 6).reshape(4, 5, 6)
    with pytest.raises(
        FuseFlowError, match=r"`A`: the graph has tiles of 2x3, and does not say along which of 3 dimensions\n.*`block:"
    ):
        doubled(tmp_path, array, (2, 5, 2), "2x3")
    found = doubled(tmp_path, array, (2, 5, 2), "2x3", ", block: [2, 1, 3]")
    np.testing.assert_array_equal(found, 2 * array.reshape(2, 2, 5, 2, 3).transpose(0, 2, 3, 1, 4))
    with pytest.raises(FuseFlowError, match=r"`block` is \[1, 3, 2\], the graph has tiles of 2x3"):
        doubled(tmp_path, array, (2, 5, 2), "2x3", ", block: [1, 3, 2]")
    with pytest.raises(FuseFlowError, match="cannot read the block `2xy`"):
        doubled(tmp_path, np.ones((2, 3)), (1, 1), "2x3", ", block: [2, y]")


def test_the_last_tiles_of_our_own_graphs_may_be_padded(tmp_path: Path) -> None:
    found = doubled(tmp_path, np.ones((3, 4)), (2, 2), "2x3")
    np.testing.assert_array_equal(found, 2 * np.pad(np.ones((3, 4)), ((0, 1), (0, 2))))
