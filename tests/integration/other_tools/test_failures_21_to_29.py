"""Traps 21 to 29: where compilers of sparse programs go wrong. `pytest -k trap_28` runs one. And: no number is left out."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from driving import drive, inputs_of
from scipy import sparse
from trapping import Dense, positive, program, ran, ran_graph

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import FileError, ProgramError, ScheduleError
from fuseflow.lower.program import lower
from fuseflow.samml.nodes import Accumulate, Drop, Load, Repeat, Scan
from fuseflow.schedule import Schedule

TWO_RESULTS = """
    tensor A[5, 4] csr f64
    tensor X[4, 3] csr f64
    T[i, j] = sum(k) A[i, k] * X[k, j]
    s[i] = sum(j) T[i, j]
    m[i] = max(j) T[i, j]
    Y[i, j] = T[i, j] / (s[i] * s[i] + 1)
    output T
    output s
    output m
    output Y
"""


def test_trap_21_several_results_of_one_region() -> None:
    """Every result is written; what they share is there once."""
    a, x = positive(1, 5, 4, density=0.6), positive(2, 4, 3, density=0.6)
    compiled, result = ran(TWO_RESULTS, Schedule.fuse("full"), A=a, X=x)
    (region,) = compiled.regions
    assert region.graph.outputs == ("T", "s", "m", "Y")
    t = a @ x
    expected = {"T": t, "s": t.sum(axis=1), "m": t.max(axis=1), "Y": t / (t.sum(axis=1) ** 2 + 1)[:, None]}
    for name, want in expected.items():
        np.testing.assert_allclose(result.tensors[name].to_dense(), want)
    prefix = [n for n in region.graph.nodes if isinstance(n, Scan | Load | Accumulate)]
    assert len(prefix) == len({(n.op, getattr(n, "tensor", ""), getattr(n, "level", -1)) for n in prefix})
    assert sum(isinstance(n, Load) for n in prefix) == 2 and sum(isinstance(n, Accumulate) for n in prefix) == 1


def stack(kind: str, count: int) -> str:
    """`count` uses of what comes before: a value used twice, a softmax, a norm, one intermediate used by all."""
    lines = ["tensor A[4, 4] csr f64", "tensor X[4, 3] f64", "T0[i, j] = sum(k) A[i, k] * X[k, j]"]
    for n in range(count):
        lines += {
            "twice": [f"T{n + 1}[i, j] = T{n}[i, j] * T{n}[i, j]"],
            "softmax": [
                f"m{n}[i] = max(j) T{n}[i, j]",
                f"E{n}[i, j] = exp(T{n}[i, j] - m{n}[i])",
                f"T{n + 1}[i, j] = E{n}[i, j] / (sum(k) E{n}[i, k])",
            ],
            "norm": [
                f"u{n}[i] = (sum(j) T{n}[i, j]) / 3",
                f"z{n}[i, j] = T{n}[i, j] - u{n}[i]",
                f"v{n}[i] = sum(j) z{n}[i, j] * z{n}[i, j]",
                f"T{n + 1}[i, j] = z{n}[i, j] * rsqrt(v{n}[i] + 1)",
            ],
            "shared": [f"T{n + 1}[i, j] = T0[i, j] + exp(T{n}[i, j])"],
        }[kind]
    return "\n".join([*lines, f"output T{count}", ""])


@pytest.mark.parametrize("kind", ["twice", "softmax", "norm", "shared"])
def test_trap_22_an_intermediate_used_often_is_one_producer(kind: str) -> None:
    """Each further use adds as many nodes as the one before, in one order of the loops, and the matmul stays one."""
    sizes = []
    for count in (2, 3, 4, 8, 16):
        source = parse(stack(kind, count))
        whole = Schedule.region("whole", *(e.name for e in source.einsums)).fuse("whole")  # one that is named is not divided
        _, (region,) = lower(source, whole, {})
        i, k = next(view.indices for view in region.fused.views if view.tensor == "A")
        _, (region,) = lower(source, whole.order("whole", (i, k, "j")), {})
        assert sorted(n.tensor for n in region.graph.nodes if isinstance(n, Load)) == ["A", "X"]
        sizes.append(len(region.graph.nodes))
    step = sizes[1] - sizes[0]
    assert step > 0 and [sizes[0] + step * n for n in (0, 1, 2, 6, 14)] == sizes


@pytest.mark.parametrize("fuse", ["full", "none"])
@pytest.mark.parametrize("format", ["csr", "dense"])
@pytest.mark.parametrize(
    "body",
    [
        *("2 * {}", "{} * 2", "1 / {}", "{} / 2", "1 - {}", "{} - 1", "3 + {}", "max(0, {})", "min({}, 1)", "2 < {}", "{} < 2"),
        *("pow(2, {})", "pow({}, 2)", "-inf + {}", "0 / {}", "2 * (3 + {}) * 4"),
    ],
)
def test_trap_23_constants_on_either_side(body: str, format: str, fuse: str) -> None:
    """Of a stored tensor and of an intermediate."""
    a = positive(1, 4, 3, density=1.0 if "1 / " in body else 0.6)
    text = f"tensor A[4, 3] {format} f64\nT[i, j] = {body.format('A[i, j]')}\nY[i, j] = {body.format('(sum(k) A[i, k] * A[j, k])')}\n"
    ran(text + "output T\noutput Y\n", Schedule.fuse(fuse), A=a)


def test_trap_24_an_index_that_is_not_there_is_named() -> None:
    """Lanes are asked for by the name of an index, not by its number."""
    with pytest.raises(ScheduleError, match=r"4 lanes of `q`: no region has this index") as error:
        ff.compile(parse("tensor A[3] dense\nY[i] = A[i] * 2\noutput Y\n"), schedule=Schedule().par(q=4))
    assert "`i`" in error.value.hint


def escaping(streams: int, lanes: int) -> str:
    """Several values of every row, each computed in every lane and merged."""
    lines = ["graph escaping", "tensor A[7, 3]  csr f64"]
    lines += [f"tensor Y{s}[7, 3]  csr f64" for s in range(streams)]
    lines += [f"output Y{s}" for s in range(streams)]
    lines += ["root = root()", "A_i = scan(root) A.0", "A_j = scan(A_i.ref) A.1", f"dealt = fork(A_j.ref) {lanes}"]
    lines += [f"v{k} = load(dealt.lane{k}) A" for k in range(lanes)]
    for s in range(streams):
        lines += [f"w{s}_{k} = alu(v{k}) mul N->0,{s + 1}" for k in range(lanes)]
        lines += [f"y{s} = merge({', '.join(f'w{s}_{k}' for k in range(lanes))}) levels=0"]
        lines += [f"Y{s}_i = write(A_i.crd) Y{s}.0", f"Y{s}_j = write(A_j.crd) Y{s}.1", f"Y{s}_v = write(y{s}) Y{s}.vals"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("lanes", [2, 5])
@pytest.mark.parametrize("streams", [1, 4, 5, 9])
def test_trap_24_any_number_of_streams_escapes_the_lanes(streams: int, lanes: int) -> None:
    a = positive(1, 7, 3, density=0.5)
    outputs = ran_graph(escaping(streams, lanes), A=a).outputs
    for s in range(streams):
        np.testing.assert_array_equal(outputs[f"Y{s}"].to_dense(), a * (s + 1))


def coo(a: Dense, *explicit: tuple[int, int]) -> sparse.coo_array:
    """The entries of a matrix, and some zeros that are stored all the same."""
    found = sparse.coo_array(a)
    rows, columns = (np.concatenate([c, [e[d] for e in explicit]]).astype(int) for d, c in enumerate(found.coords))
    return sparse.coo_array((np.concatenate([found.data, np.zeros(len(explicit))]), (rows, columns)), shape=a.shape)


CANCELLED = "tensor A[4, 3] dcsr f64\ntensor B[4, 3] dcsr f64\ntensor Y[4, 3] dcsr f64\nY[i, j] = A[i, j] - B[i, j]\noutput Y\n"


def test_trap_25_zeros_are_kept_unless_the_schedule_drops_them() -> None:
    """An explicit zero and a difference of equals are stored values; `drop_zeros` leaves them out, with the rows that become empty."""
    a = np.array([[1, 0, 2], [0, 0, 0], [3, 0, 0], [0, 4, 0]], dtype=float)
    b = np.array([[1, 0, 0], [0, 0, 0], [3, 0, 0], [0, 0, 5]], dtype=float)
    kept = ran(CANCELLED, A=coo(a, (1, 1)), B=coo(b))[1].tensors["Y"]
    assert kept.coordinates().T.tolist() == [[0, 0], [0, 2], [1, 1], [2, 0], [3, 1], [3, 2]]
    dropped = ran(CANCELLED, Schedule().lower(drop_zeros=["Y"]), A=coo(a, (1, 1)), B=coo(b))[1].tensors["Y"]
    assert dropped.coordinates().T.tolist() == [[0, 2], [3, 1], [3, 2]]
    assert dropped.levels[0].elements == 2
    np.testing.assert_array_equal(dropped.to_dense(), a - b)


def test_trap_25_rows_of_nothing_are_not_stored_where_rows_are_compressed() -> None:
    """Row 0 of A meets row 1 of X, which is empty: no entry comes of it, and so no row."""
    text = """
        tensor A[3, 3] dcsr f64
        tensor X[3, 3] dcsr f64
        tensor Y[3, 3] dcsr f64
        Y[i, j] = sum(k) A[i, k] * X[k, j]
        output Y
    """
    a, x = np.eye(3)[[1, 0, 2]], np.diag([2.0, 0.0, 3.0])
    compiled, result = ran(text, A=a, X=x)
    assert any(isinstance(n, Drop) for n in compiled.regions[0].graph.nodes)
    assert result.tensors["Y"].coordinates().T.tolist() == [[1, 0], [2, 2]]
    assert result.tensors["Y"].levels[0].elements == 2


PLAIN = {
    "matmul": "tensor A[{n}, {m}] {f} f64\ntensor X[{m}, {n}] {f} f64\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y\n",
    "sum": "tensor A[{n}, {m}] {f} f64\ntensor X[{m}, {n}] {f} f64\nY[i, j] = A[i, j] + X[j, i]\noutput Y\n",
    "row maxima": "tensor A[{n}, {m}] {f} f64\nY[i] = max(j) A[i, j]\noutput Y\n",
    "total": "tensor A[{n}, {m}] {f} f64\ns[] = sum(i, j) A[i, j]\noutput s\n",
    "scaled by its total": "tensor A[{n}, {m}] {f} f64\ns[] = sum(i, j) A[i, j]\nY[i, j] = A[i, j] * s[]\noutput Y\n",
    "softmax": """
        tensor A[{n}, {m}] {f} f64
        m[i] = max(j) A[i, j]
        E[i, j] = exp(A[i, j] - m[i])
        Y[i, j] = E[i, j] / (sum(k) E[i, k])
        output Y
    """,
}


@pytest.mark.parametrize("fuse", ["full", "none"])
@pytest.mark.parametrize("format", ["dense", "csr", "dcsr"])
@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 0), (0, 0), (1, 1), (1, 3), (3, 1)])
@pytest.mark.parametrize("kernel", PLAIN)
def test_trap_26_sizes_of_zero_and_one(kernel: str, n: int, m: int, format: str, fuse: str) -> None:
    source = program(PLAIN[kernel].format(n=n, m=m, f=format))
    for density in (0.0, 1.0):
        ran(source, Schedule.fuse(fuse), **{t.name: positive(1, *t.shape, density=density) for t in source.inputs})


def test_trap_26_results_without_dimensions() -> None:
    text = "tensor a[] f64\ntensor b[3] csf f64\ns[] = a[] * (sum(i) b[i]) + 1\noutput s\n"
    _, result = ran(text, a=np.array(2.0), b=np.array([0.0, 3.0, 4.0]))
    assert result.tensors["s"].to_dense() == 15 and result.tensors["s"].shape == ()


def test_trap_27_values_that_are_repeated_no_times() -> None:
    """The final stop closes what the look-ahead has seen: `0 S0 1 S1 D` where nothing runs below the 0."""
    node = Repeat("rep", inputs_of(2))
    assert [str(t) for t in drive(node, "0 S0 1 S1 D", "S1 5 S2 D").tokens[0]] == ["S1", "1", "S2", "D"]
    assert [str(t) for t in drive(node, "0 D", "S0 D").tokens[0]] == ["S0", "D"]
    assert [str(t) for t in drive(node, "0 D", "4 5 S0 D").tokens[0]] == ["0", "0", "S0", "D"]


@pytest.mark.parametrize("rows", [(), (0,), (4,), (1, 2), (0, 1, 2, 3, 4)], ids=str)
def test_trap_27_a_scalar_and_a_row_vector_over_empty_rows(rows: tuple[int, ...]) -> None:
    """The root reference is repeated over rows that may be none, a value over entries that may be none; on both simulators."""
    a = positive(1, 5, 4)
    a[list(rows)] = 0
    for format in ("csr", "dcsr"):
        text = f"tensor A[5, 4] {format} f64\ntensor s[] f64\ntensor b[5] f64\nY[i, j] = A[i, j] * s[] * b[i]\noutput Y\n"
        ran(text, A=a, s=np.array(3.0), b=np.arange(5.0))


def words(result: ff.Result) -> dict[tuple[str, str, str], int]:
    (region,) = result.regions
    return {(t.tensor, t.kind, t.direction): t.words for t in region.simulation.traffic}


@pytest.mark.parametrize("order", ["i,k,j", "i,j,k", "k,i,j", "j,k,i"])
def test_trap_28_totals_of_a_dense_matmul(order: str) -> None:
    """An operand is read once for every iteration of the loops down to its innermost index; nothing but values moves."""
    n = {"i": 3, "k": 4, "j": 5}
    text = "tensor A[3, 4] f64\ntensor X[4, 5] f64\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y\n"
    loops = order.split(",")
    _, result = ran(text, Schedule.order("Y", loops), A=positive(1, 3, 4), X=positive(2, 4, 5))

    def reads(indices: str) -> int:
        return int(np.prod([n[v] for v in loops[: max(loops.index(v) for v in indices) + 1]]))

    assert words(result) == {("A", "val", "read"): reads("ik"), ("X", "val", "read"): reads("kj"), ("Y", "val", "write"): 15}
    assert result.stats["bytes"]["by_tensor"]["A"] == {"val": {"read": 8 * reads("ik"), "write": 0}}
    (region,) = result.regions
    assert dict(region.simulation.operators) == {"mul": 60, "sum": 60}


@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_trap_28_totals_of_spmm(density: float) -> None:
    """Rows of A once, a row of X for every entry of A, two positions for every fiber that is scanned."""
    a, x = positive(1, 6, 5, density=density), positive(2, 5, 4, density=0.5)
    text = (
        "tensor A[6, 5] csr f64\ntensor X[5, 4] csr f64\ntensor Y[6, 4] csr f64\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y\n"
    )
    _, result = ran(text, Schedule.order("Y", "i,k,j"), A=a, X=x)
    entries = np.count_nonzero(a)
    products = int(((a != 0) @ (x != 0).sum(axis=1)).sum())
    stored = np.count_nonzero((a != 0).astype(int) @ (x != 0).astype(int))
    expected = {
        ("A", "pos", "read"): 2 * 6, ("A", "crd", "read"): entries, ("A", "val", "read"): entries,
        ("X", "pos", "read"): 2 * entries, ("X", "crd", "read"): products, ("X", "val", "read"): products,
        ("Y", "pos", "write"): 6 + 1, ("Y", "crd", "write"): stored, ("Y", "val", "write"): stored,
    }  # fmt: skip
    assert words(result) == {key: count for key, count in expected.items() if count}
    (region,) = result.regions
    assert dict(region.simulation.operators) == ({"mul": products, "sum": products} if products else {})


SPMV = "tensor A[3, 4] csr\ntensor x[4] dense\ny[i] = sum(k) A[i, k] * x[k]\noutput y\n"


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3, 5), "tensor `A`: shape [3, 5], declared [3, 4]: dimension 1 has size 5, not 4"),
        ((2, 4), "tensor `A`: shape [2, 4], declared [3, 4]: dimension 0 has size 2, not 3"),
        ((12,), "tensor `A`: shape [12], declared [3, 4]"),
    ],
)
def test_trap_29_data_of_another_shape(shape: tuple[int, ...], message: str, tmp_path: Path) -> None:
    """From Python and from a file, which is named with the line."""
    arrays = {"A": np.ones(shape), "x": np.ones(4)}
    with pytest.raises(FileError) as error:
        ff.compile(parse(SPMV), tensors=arrays)
    assert error.value.message == message
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "tensors.yaml").write_text("x: {path: x.npy}\nA: {path: A.npy}\n")
    with pytest.raises(FileError) as error:
        ff.compile(parse(SPMV), tensors=tmp_path / "tensors.yaml")
    assert error.value.message == message and str(error.value.span).endswith("tensors.yaml:2:1")


def test_trap_29_declarations_that_disagree() -> None:
    with pytest.raises(ProgramError, match=r"index `k` has the extent 4 in `A\[i, k\]` and 5 in `x\[k\]`"):
        ff.compile(parse(SPMV.replace("x[4]", "x[5]")))


def test_every_trap_is_a_test() -> None:
    """The 29 traps, by number."""
    texts = "".join(path.read_text() for path in sorted(Path(__file__).parent.glob("test_failures_*.py")))
    assert sorted({int(n) for n in re.findall(r"^def test_trap_(\d\d)_", texts, re.MULTILINE)}) == list(range(1, 30))
