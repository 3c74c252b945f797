"""Arrays in files, the YAML file of a program's inputs, and fibertrees as text."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

from fuseflow.errors import FileError, Span
from fuseflow.tensors import Format, pack
from fuseflow.tensors.array_files import load_array, read_fibertree, save_array, write_fibertree
from fuseflow.tensors.blocks import to_blocks
from fuseflow.tensors.tensor_listing import load_tensors

A = sparse.random_array((5, 6), density=0.3, rng=np.random.default_rng(0))


def sparse_package_file(path, fill, kind="coo", **parts):
    """Write what the package `sparse` writes for [[0, 2], [0, 0]] with this fill value."""
    np.savez(path, format=kind, shape=(2, 2), data=np.array([2.0]), fill_value=fill, **parts)


COO = {"coords": np.array([[0], [1]])}
GCXS = {"indices": np.array([1]), "indptr": np.array([0, 1, 1]), "compressed_axes": np.array([0])}


@pytest.mark.parametrize("fill", [0.0, -0.0, np.int64(0), False])
def test_a_coo_array_of_the_package_sparse_is_read(tmp_path, fill):
    sparse_package_file(tmp_path / "a.npz", fill, **COO)
    assert load_array(tmp_path / "a.npz").toarray().tolist() == [[0, 2], [0, 0]]


@pytest.mark.parametrize("fill", [1.0, -np.inf, np.nan, np.int8(3), True, 0.5j, np.zeros(2), "0"])  # 1 is the case npz_fill_value
def test_a_fill_value_that_is_not_0_is_refused(tmp_path, fill):
    sparse_package_file(tmp_path / "a.npz", fill, **COO)
    with pytest.raises(
        FileError, match=r"a\.npz` has the fill value .*: what a sparse file does not store is read as 0"
    ) as error:
        load_array(tmp_path / "a.npz")
    assert error.value.hint == "write it dense, by `numpy.save(FILE, array.todense())`"


def test_what_is_advised_for_a_fill_value_works(tmp_path):
    """The array of the case npz_fill_value, written dense, in a tensor with its implicit value."""
    np.save(tmp_path / "a.npy", np.array([[1.0, 2], [1, 1]]))
    packed = load(tmp_path, [Input("A", (2, 2), Format.parse("csr", 2), fill=1.0)], "A: {path: a.npy}")["A"]
    assert packed.stored == 1 and packed.to_dense().tolist() == [[1, 2], [1, 1]]


def test_a_gcxs_array_is_refused(tmp_path):
    sparse_package_file(tmp_path / "a.npz", 0.0, "gcxs", **GCXS)
    with pytest.raises(FileError, match="has a GCXS array of the package `sparse`") as error:
        load_array(tmp_path / "a.npz")
    assert "sparse.save_npz(FILE, array.tocoo())" in error.value.hint


@dataclass(frozen=True)
class Input:
    name: str
    shape: tuple[int, ...]
    format: Format | None = None
    dtype: str = "f32"
    fill: float = 0.0


@pytest.mark.parametrize("name", ["a.npz", "a.mtx"])
def test_sparse_arrays_come_back(tmp_path, name):
    save_array(tmp_path / name, A)
    found = load_array(tmp_path / name)
    assert sparse.issparse(found)
    np.testing.assert_allclose(found.toarray(), A.toarray())


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.mtx"])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_dense_arrays_come_back(tmp_path, name, dtype):
    array = np.arange(6, dtype=dtype).reshape(2, 3)
    save_array(tmp_path / name, array)
    np.testing.assert_array_equal(load_array(tmp_path / name), array)


def test_arrays_of_other_ranks(tmp_path):
    for array in (np.float64(3.0), np.zeros(0), np.ones((2, 3, 4))):
        save_array(tmp_path / "a.npy", array)
        np.testing.assert_array_equal(load_array(tmp_path / "a.npy"), array)
    blocks = sparse.bsr_array(np.array([[0, 1.0, 0, 0], [2, 0, 0, 0]]), blocksize=(2, 2))
    sparse.save_npz(tmp_path / "blocks.npz", blocks)
    found = load_array(tmp_path / "blocks.npz")
    assert found.nnz == 4 and np.array_equal(found.toarray(), blocks.toarray())  # all elements of a stored block
    save_array(tmp_path / "v.npz", sparse.coo_array(np.array([0, 1.0])))
    assert load_array(tmp_path / "v.npz").shape == (2,)


def test_the_same_array_gives_the_same_bytes(tmp_path):
    for name in ("a.npz", "a.mtx"):
        save_array(tmp_path / name, A)
        first = (tmp_path / name).read_bytes()
        save_array(tmp_path / name, A)
        assert (tmp_path / name).read_bytes() == first
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert {entry.date_time[0] for entry in archive.infolist()} == {1980}  # no clock


class Malice:
    def __reduce__(self):
        return os.mkdir, ("unpickled",)


def damaged(tmp_path):
    """Files that are not what their names say, and what is said of them."""
    np.savez(tmp_path / "two.npz", a=np.ones(1), b=np.ones(1))
    np.savez(tmp_path / "none.npz")
    np.savez(tmp_path / "half.npz", format="csr", shape=(2, 2))
    np.save(tmp_path / "objects.npy", np.array([Malice()], dtype=object), allow_pickle=True)
    np.save(tmp_path / "complex.npy", np.array([1j]))
    np.save(tmp_path / "text.npy", np.array(["a"]))
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps(Malice()))
    (tmp_path / "short.npy").write_bytes(npy_bytes()[:-3])
    (tmp_path / "archive.npy").write_bytes((tmp_path / "two.npz").read_bytes())
    (tmp_path / "words.mtx").write_text("hello")
    (tmp_path / "table.csv").write_text("1,2")
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "folder.npy").mkdir()


def npy_bytes():
    buffer = io.BytesIO()
    np.save(buffer, np.ones(4))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.npy", "no file `"),
        ("folder.npy", "is not a file"),
        ("two.npz", "holds `a`, `b`\n  hint: store one array, or a sparse one by `scipy.sparse.save_npz`"),
        ("none.npz", "holds no array"),
        ("half.npz", "holds no array `indptr`"),
        ("objects.npy", "it holds Python objects"),
        ("pickle.npz", "cannot read `"),
        ("complex.npy", "holds elements of type `complex128`"),
        ("text.npy", "holds elements of type `<U1`"),
        ("short.npy", "cannot read `"),
        ("archive.npy", "does not hold one NumPy array"),
        ("words.mtx", "is no MatrixMarket file"),
        ("table.csv", "unknown kind of file `.csv`\n  hint: known: .npy, .npz, .mtx"),
        ("empty.npz", "cannot read `"),
    ],
)
def test_other_files_are_refused_and_never_unpickled(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    damaged(tmp_path)
    with pytest.raises(FileError) as error:
        load_array(tmp_path / name)
    assert message in str(error.value)
    assert str(tmp_path / name) in str(error.value)
    assert not (tmp_path / "unpickled").exists()


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("a.npy", A, "cannot write a sparse array to"),
        ("a.txt", np.ones(2), "cannot write a dense array to"),
        ("a.mtx", np.ones((2, 2, 2)), "cannot write an array of 3 dimensions to"),
        ("below/a.file/a.npy", np.ones(2), "cannot write"),
    ],
)
def test_what_cannot_be_written_leaves_nothing_behind(tmp_path, name, array, message):
    (tmp_path / "below").mkdir()
    (tmp_path / "below/a.file").write_text("in the way")
    with pytest.raises(FileError, match=message):
        save_array(tmp_path / name, array)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.file", "below"]


@pytest.fixture
def inputs(tmp_path):
    save_array(tmp_path / "a.mtx", A)
    save_array(tmp_path / "x.npy", np.arange(6.0))
    save_array(tmp_path / "half.npy", np.full(6, 0.5))
    return [Input("A", (5, 6), Format.parse("csr", 2)), Input("layer1.x", (6,), dtype="i64")]


def load(tmp_path, inputs, text):
    (tmp_path / "tensors.yaml").write_text(text)
    return load_tensors(tmp_path / "tensors.yaml", inputs)


def test_inputs_are_packed_as_declared(tmp_path, inputs):
    tensors = load(tmp_path, inputs, "layer1.x: {path: x.npy}  # dense\nA:\n  path: a.mtx\n")
    assert list(tensors) == ["A", "layer1.x"]
    assert tensors["A"].format == Format.parse("csr", 2)
    assert tensors["A"].dtype == np.float32
    assert tensors["layer1.x"].dtype == np.int64
    assert tensors["layer1.x"].format.all_dense
    np.testing.assert_allclose(tensors["A"].to_dense(), A.toarray(), rtol=1e-6)


def test_absolute_paths_and_other_folders(tmp_path, inputs):
    (tmp_path / "data").mkdir()
    (tmp_path / "a.mtx").rename(tmp_path / "data/a.mtx")
    assert load(tmp_path, inputs, f"A: {{path: data/a.mtx}}\nlayer1.x: {{path: {tmp_path / 'x.npy'}}}")["A"].stored == A.nnz


def test_the_implicit_value_is_the_declared_one(tmp_path):
    save_array(tmp_path / "m.npy", np.array([-np.inf, 0.0, 1.0]))
    tensors = load(tmp_path, [Input("m", (3,), Format.of("compressed"), fill=-np.inf)], "m: {path: m.npy}")
    assert tensors["m"].values.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", None, None, "has no entry for `A`, `layer1.x`\n  hint: add `A: {path: FILE}`"),
        ("A: {path: a.mtx}", None, None, "has no entry for `layer1.x`"),
        ("A: {path: a.mtx}\nlayer.x: {path: x.npy}", 2, 1, "no input `layer.x`\n  hint: did you mean `layer1.x`?"),
        ("A: {path: a.mtx}\nA: {path: a.mtx}", 2, 1, "tensor `A` has two entries"),
        ("A: {pth: a.mtx}", 1, 5, "unknown key `A.pth`\n  hint: did you mean `path`?"),
        ("A: {path: [a, b]}", 1, 5, "`A.path` is not a file name"),
        ("A: {path: }", 1, 5, "`A.path` is not a file name"),
        ("A: {}", 1, 4, "tensor `A` has no `path`"),
        ("A: a.mtx", 1, 4, "expected `A: {path: FILE}`"),
        ("- A", 1, 1, "expected a mapping from tensors to their files, as in `A: {path: a.npz}`"),
        ("[A]: {path: a}", 1, 1, "expected a mapping from tensors to their files"),
        ("A: {path: a.mtx", 1, 16, "not YAML"),
        ("A: {path: b.mtx}\nlayer1.x: {path: x.npy}", 1, 1, "tensor `A`: no file `"),
        ("A: {path: x.npy}\nlayer1.x: {path: x.npy}", 1, 1, "tensor `A`: shape [6], declared [5, 6]"),
        ("A: {path: a.mtx}\nlayer1.x: {path: half.npy}", 2, 1, "some values are not of the declared type i64"),
    ],
)
def test_wrong_entries_are_shown_at_their_place(tmp_path, inputs, text, line, column, message):
    with pytest.raises(FileError) as error:
        load(tmp_path, inputs, text)
    assert message in str(error.value)
    assert error.value.span == (Span(str(tmp_path / "tensors.yaml"), line, column) if line else None)


def test_a_missing_yaml_file(tmp_path):
    with pytest.raises(FileError, match=r"cannot read the list of tensors `.*tensors.yaml`: No such file or directory"):
        load_tensors(tmp_path / "tensors.yaml", [])


def fibertree(directory):
    return {p.name: p.read_text().split() for p in sorted(directory.iterdir())}


MATRIX = np.array([[0, 5, 0.1], [0, 0, 0], [7, 0, 0]], dtype=np.float32)


def test_a_fibertree_of_compressed_levels(tmp_path):
    write_fibertree(tmp_path / "trees", "layer1.w", pack(MATRIX, Format.parse("dcsc", 2)))
    assert fibertree(tmp_path / "trees") == {
        "tensor_layer1.w_mode_0_crd": ["0", "1", "2"],
        "tensor_layer1.w_mode_0_seg": ["0", "3"],
        "tensor_layer1.w_mode_1_crd": ["2", "0", "0"],
        "tensor_layer1.w_mode_1_seg": ["0", "1", "2", "3"],
        "tensor_layer1.w_mode_shape": ["3", "3"],
        "tensor_layer1.w_mode_vals": ["7.0", "5.0", "0.1"],
    }


def test_dense_and_singleton_levels_write_what_they_store(tmp_path):
    write_fibertree(tmp_path / "csr", "A", pack(MATRIX.astype(np.int32), Format.parse("csr", 2)))
    assert set(fibertree(tmp_path / "csr")) == {f"tensor_A_mode_{x}" for x in ("1_crd", "1_seg", "shape", "vals")}
    assert fibertree(tmp_path / "csr")["tensor_A_mode_vals"] == ["5", "7"]
    write_fibertree(tmp_path / "coo", "A", pack(MATRIX, Format.parse("coo", 2)))
    assert set(fibertree(tmp_path / "coo")) == {f"tensor_A_mode_{x}" for x in ("0_crd", "0_seg", "1_crd", "shape", "vals")}


@pytest.mark.parametrize("format", ["dense", "csr", "csc", "dcsr", "dcsc"])
def test_fibertrees_come_back(tmp_path, format):
    tensor = pack(MATRIX[:2], Format.parse(format, 2))
    write_fibertree(tmp_path, "A", tensor)
    found = read_fibertree(tmp_path, "A", tensor.format)
    np.testing.assert_array_equal(found.to_dense().astype(np.float32), MATRIX[:2])
    assert found.stored == tensor.stored


def test_a_fibertree_of_tiles(tmp_path):
    """Levels over blocks, and the elements of one tile after the other."""
    tensor = to_blocks(pack(MATRIX, Format.parse("dcsr", 2)), (2, 2))
    write_fibertree(tmp_path, "A", tensor)
    assert fibertree(tmp_path)["tensor_A_mode_shape"] == ["2", "2"]
    assert fibertree(tmp_path)["tensor_A_mode_vals"][:6] == ["0.0", "5.0", "0.0", "0.0", "0.1", "0.0"]
    found = read_fibertree(tmp_path, "A", tensor.format, (2, 2))
    np.testing.assert_array_equal(found.values.astype(np.float32), tensor.values)
    with pytest.raises(FileError, match="holds 12 values, the levels have room for 3 tiles of 2 x 3"):
        read_fibertree(tmp_path, "A", tensor.format, (2, 3))


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        ("0_seg", None, "cannot read `"),
        ("0_seg", "0\n1\n", "the positions do not divide 1 fibers with 2 coordinates"),
        ("1_seg", "0\n2\n1\n", "the positions do not divide 2 fibers with 3 coordinates"),
        ("1_seg", "1\n2\n3\n", "the positions do not divide"),
        ("1_seg", "", "the positions do not divide"),
        ("0_crd", "0\n7\n", "a coordinate is outside 0..2"),
        ("0_crd", "2\n0\n", "the coordinates of a fiber do not ascend"),
        ("1_crd", "2\n1\n0\n", "the coordinates of a fiber do not ascend"),
        ("1_crd", "1\n2\nx\n", "line 3, holds what is not a whole number: `x`"),
        ("1_crd", "1\n\n2\n1_0\n", "line 4, holds what is not a whole number: `1_0`"),
        ("1_crd", "1\n2\n9223372036854775808\n", "line 3, holds what is not a whole number"),
        ("0_seg", "0\n3.0\n", "line 2, holds what is not a whole number: `3.0`"),
        ("vals", "1\n2 3\n", "line 2, holds what is not a number: `2 3`"),
        ("vals", "1\n2_000\n3\n", "line 2, holds what is not a number: `2_000`"),
        ("vals", "1\n2\n1e999\n", "line 3, holds what is not a number: `1e999`"),
        ("vals", "1\n2\n", "holds 2 values, the levels have room for 3"),
        ("vals", "1\n2\nNaN!\n", "line 3, holds what is not a number: `NaN!`"),
        ("shape", "3\n", "has 1 dimensions, the format (compressed, compressed) 2 levels"),
        ("shape", None, "holds no fibertree of `A`\n  hint: known: `B`"),
    ],
)
def test_fibertrees_that_do_not_fit(tmp_path, column, text, message):
    tensor = pack(MATRIX, Format.parse("dcsr", 2))
    write_fibertree(tmp_path, "A", tensor)
    write_fibertree(tmp_path, "B", tensor)
    path = tmp_path / f"tensor_A_mode_{column}"
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(FileError) as error:
        read_fibertree(tmp_path, "A", tensor.format)
    assert message in str(error.value)


def test_singleton_levels_are_not_read_from_fibertrees(tmp_path):
    tensor = pack(MATRIX, Format.parse("coo", 2))
    write_fibertree(tmp_path, "A", tensor)
    with pytest.raises(FileError, match=r"a compressed\(nonunique\) level is not read"):
        read_fibertree(tmp_path, "A", tensor.format)


def test_a_fibertree_has_its_sizes_in_the_order_of_the_levels(tmp_path):
    """Public tools take the size of dense level k from line k, whichever dimension it stores."""
    array = np.arange(15.0).reshape(3, 5)
    tensor = pack(array, Format.of("dense", "dense", order=(1, 0)))
    write_fibertree(tmp_path, "A", tensor)
    assert (tmp_path / "tensor_A_mode_shape").read_text().split() == ["5", "3"]
    found = read_fibertree(tmp_path, "A", tensor.format)
    assert found.shape == (3, 5)
    np.testing.assert_array_equal(found.to_dense(), array)


def coo_file(path, values, dtype):
    """Write values at one coordinate of a sparse 2 x 2 array, and 1 at another."""
    rows = [1] + [0] * len(values)
    np.savez(path, format="coo", shape=(2, 2), row=rows, col=[0] + [1] * len(values), data=np.array([1, *values], dtype=dtype))


@pytest.mark.parametrize("declared", ["f32", "f64", "i64", "i32", "i16", "bf16"])
@pytest.mark.parametrize(
    ("values", "dtype", "total"),
    [
        ([100, 27], np.int8, 127),
        ([200, 50], np.uint8, 250),
        ([-5, 5], np.int64, 0),
        ([True, True], np.bool_, 1),
        ([2**40, 3 - 2**40], np.int64, 3),
    ],
)
def test_entries_of_one_coordinate_are_added_up_before_they_are_packed(tmp_path, values, dtype, total, declared):
    coo_file(tmp_path / "a.npz", values, dtype)
    packed = load(tmp_path, [Input("A", (2, 2), Format.parse("csr", 2), declared)], "A: {path: a.npz}")["A"]
    assert packed.to_dense().tolist() == [[0, total], [1, 0]]


@pytest.mark.parametrize("declared", ["f32", "f64", "i64", "i8", "f16"])
@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([2**62, 2**62], np.int64),
        ([-(2**63), -1], np.int64),
        ([2**63 - 1] * 5, np.int64),
        ([2**63, 2**63], np.uint64),
        ([2**31 - 1, 1], np.int32),
        ([100, 28], np.int8),
        ([255, 1], np.uint8),
    ],
)
def test_a_sum_of_integers_that_wraps_around_is_refused(tmp_path, values, dtype, declared):
    coo_file(tmp_path / "a.npz", values, dtype)
    with pytest.raises(FileError, match=rf"the sum of the entries at \(0, 1\) is more than `{np.dtype(dtype)}` holds"):
        load(tmp_path, [Input("A", (2, 2), Format.parse("csr", 2), declared)], "A: {path: a.npz}")


@pytest.mark.parametrize(
    ("values", "declared"), [([2**52, 2**52], "i64"), ([2**30, 2**30], "i32"), ([2**64 - 1], "i8"), ([100, 100], "i8")]
)
def test_a_sum_that_the_declared_type_does_not_hold_is_refused(tmp_path, values, declared):
    coo_file(tmp_path / "a.npz", values, np.uint64 if max(values) >= 2**63 else np.int64)
    with pytest.raises(FileError, match=r"2\^53 or more|are not of the declared type"):
        load(tmp_path, [Input("A", (2, 2), Format.parse("csr", 2), declared)], "A: {path: a.npz}")


def test_repeated_entries_of_a_matrix_market_file(tmp_path):
    text = "%%MatrixMarket matrix coordinate integer {}\n2 2 3\n2 1 {}\n1 1 3\n2 1 {}\n"
    (tmp_path / "a.mtx").write_text(text.format("symmetric", 5, -7))
    packed = load(tmp_path, [Input("A", (2, 2), Format.parse("csc", 2), "i32")], "A: {path: a.mtx}")["A"]
    assert packed.to_dense().tolist() == [[3, -2], [-2, 0]]
    (tmp_path / "a.mtx").write_text(text.format("general", 2**63 - 1, 1))
    with pytest.raises(FileError, match=r"the sum of the entries at \(1, 0\) is more than `int64` holds"):
        load(tmp_path, [Input("A", (2, 2), Format.parse("csc", 2), "f64")], "A: {path: a.mtx}")
