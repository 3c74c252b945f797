"""Regions: which Einsums run together under each choice, and that any choice leaves an order in which they can run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.einsum.nodes import Access, Apply, Einsum, Location, Program, Reduce, Split, TensorType
from fuseflow.einsum.parse import parse
from fuseflow.errors import ScheduleError
from fuseflow.schedule import Region, Schedule, form_regions, region_results
from fuseflow.tensors import Format


def program(text: str, paths: dict[str, str] | None = None) -> Program:
    """A program in text form; `paths` gives Einsums their module paths."""
    parsed = parse(text)
    places = {name: Location(path) for name, path in (paths or {}).items()}
    einsums = tuple(
        Einsum(e.name, e.indices, e.body, places.get(e.name, Location("" if paths else e.location.path, e.location.span)))
        for e in parsed.einsums
    )
    return Program(parsed.tensors, einsums, parsed.outputs)


def regions(p: Program, schedule: Schedule) -> dict[str, str]:
    return {r.name: " ".join(r.einsums) for r in form_regions(p, schedule)}


GCN = """
tensor A[4, 4] csr
tensor X[4, 5] csr
tensor W1[5, 3] dense
tensor b1[3] dense
tensor W2[3, 2] dense
tensor b2[2] dense
T1[i, j] = sum(k) X[i, k] * W1[k, j]
H1[i, j] = sum(k) A[i, k] * T1[k, j]
B1[i, j] = H1[i, j] + b1[j]
R[i, j]  = relu(B1[i, j])
T2[i, j] = sum(k) R[i, k] * W2[k, j]
H2[i, j] = sum(k) A[i, k] * T2[k, j]
B2[i, j] = H2[i, j] + b2[j]
m[i]     = max(j) B2[i, j]
S[i, j]  = B2[i, j] - m[i]
E[i, j]  = exp(S[i, j])
d[i]     = sum(j) E[i, j]
l[i]     = log(d[i])
Y[i, j]  = S[i, j] - l[i]
output Y
"""
PATHS = {"T1": "layer1.lin", "H1": "layer1", "B1": "layer1", "T2": "layer2.lin", "H2": "layer2", "B2": "layer2"}
GCN_MODEL = program(GCN, PATHS)


def test_gcn_none() -> None:
    assert regions(GCN_MODEL, Schedule.fuse("none")) == {
        "T1": "T1", "H1": "H1", "B1": "B1", "R": "R", "T2": "T2", "H2": "H2", "B2": "B2", "Y": "m S E d l Y",
    }  # fmt: skip


def test_gcn_layerwise_puts_functional_operators_behind_their_layer() -> None:
    assert regions(GCN_MODEL, Schedule.fuse("layerwise")) == {"layer1": "T1 H1 B1 R", "layer2": "T2 H2 B2 m S E d l Y"}


def test_gcn_full() -> None:
    assert regions(GCN_MODEL, Schedule.fuse("full")) == {"full": " ".join(e.name for e in GCN_MODEL.einsums)}


def test_gcn_one_layer() -> None:
    assert regions(GCN_MODEL, Schedule.fuse("layer1")) == {
        "layer1": "T1 H1 B1 R", "T2": "T2", "H2": "H2", "B2": "B2", "Y": "m S E d l Y",
    }  # fmt: skip


def test_gcn_two_names_are_two_regions() -> None:
    assert regions(GCN_MODEL, Schedule.fuse("layer1", "layer2")) == regions(GCN_MODEL, Schedule.fuse("layerwise"))


def test_a_module_inside_a_layer_does_not_take_the_matmul_around_it() -> None:
    assert regions(GCN_MODEL, Schedule.fuse("layer1.lin"))["layer1.lin"] == "T1"


def test_an_einsum_by_name_is_taken_alone() -> None:
    assert regions(GCN_MODEL, Schedule.fuse("B2")) == regions(GCN_MODEL, Schedule.fuse("none"))


def test_a_region_of_the_file() -> None:
    schedule = Schedule.region("front", "T1", "H1").region("rest", "layer2").fuse("front", "rest")
    assert regions(GCN_MODEL, schedule) == {"front": "T1 H1", "B1": "B1", "R": "R", "rest": "T2 H2 B2 m S E d l Y"}


def test_a_list_of_a_region_means_the_einsum_where_a_module_has_the_same_name() -> None:
    p = parse("tensor A[4] dense\nm[i] = A[i] * 2  @loss\nloss[] = sum(i) m[i]  @loss\nn[] = loss[] + 1  @next\noutput n")
    assert regions(p, Schedule.fuse("loss")) == {"loss": "m loss", "n": "n"}
    assert regions(p, Schedule.fuse("end").region("end", "loss", "n")) == {"m": "m", "end": "loss n"}


def test_prefixes_are_compared_by_component() -> None:
    p = program(
        "tensor X[4] dense\nA[i] = exp(X[i])\nB[i] = exp(A[i])\nC[i] = exp(B[i])\noutput C",
        {"A": "layer1.lin", "B": "layer10", "C": "layer1"},
    )
    with pytest.raises(ScheduleError, match=r"`C` needs `B` from outside"):
        regions(p, Schedule.fuse("layer1"))
    assert regions(p, Schedule.fuse("layer10")) == {"A": "A", "layer10": "B", "C": "C"}
    assert regions(p, Schedule.fuse("layerwise")) == {"layer1": "A", "layer10": "B", "layer1-2": "C"}


def test_a_text_program_has_no_layers() -> None:
    assert list(regions(parse(GCN), Schedule.fuse("layerwise"))) == ["full"]


def test_containers_count_their_layers() -> None:
    text = (
        "tensor X[4] dense\nP[i] = X[i] + 1\nA[i] = exp(P[i])\nB[i] = exp(A[i])\nC[i] = A[i] + B[i]\nD[i] = exp(C[i])\noutput D"
    )
    p = program(text, {"P": "", "A": "net.h.0.up", "B": "net.h.1", "C": "net", "D": "net.h.1.down"})
    assert regions(p, Schedule.fuse("layerwise")) == {
        "net.h.0": "P A",
        "net.h.1": "B C D",
    }  # C follows A, unless that left and entered net.h.0


SOFTMAX = """
tensor S[4, 4] dense
m[i] = max(j) S[i, j]
E[i, j] = exp(S[i, j] - m[i])
d[i] = sum(j) E[i, j]
Y[i, j] = E[i, j] / d[i]
output Y
"""
NORM = """
tensor X[4, 8] dense
tensor g[8] dense
s[i] = sum(j) X[i, j]
u[i] = s[i] / 8
c[i, j] = X[i, j] - u[i]
q[i, j] = c[i, j] * c[i, j]
v[i] = sum(j) q[i, j]
r[i] = rsqrt(v[i] / 8 + 0.001)
n[i, j] = c[i, j] * r[i]
Z[i, j] = n[i, j] * g[j]
output Z
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SOFTMAX, {"Y": "m E d Y"}),
        (NORM, {"n": "s u c q v r n", "Z": "Z"}),
        # the denominator inside one Einsum
        ("tensor S[4, 4] dense\nm[i] = max(j) S[i, j]\nE[i, j] = exp(S[i, j] - m[i])\n"
         "Y[i, j] = E[i, j] / (sum(l) E[i, l])\nZ[i, j] = relu(Y[i, j])\noutput Z", {"Y": "m E Y", "Z": "Z"}),
        # down the columns
        ("tensor S[4, 4] dense\nd[j] = sum(i) S[i, j]\nY[i, j] = S[i, j] / d[j]\noutput Y", {"Y": "d Y"}),
        # residual connections and self products are none
        ("tensor X[4, 4] dense\ntensor W[4, 4] dense\nP[i, j] = sum(k) X[i, k] * W[k, j]\nY[i, j] = X[i, j] + P[i, j]\noutput Y",
         {"P": "P", "Y": "Y"}),
        ("tensor X[4, 4] dense\nP[i, j] = sum(k) X[i, k] * X[j, k]\nY[i, j] = X[i, j] + P[i, j]\noutput Y", {"P": "P", "Y": "Y"}),
        # a gate without a reduction is none
        ("tensor X[4] dense\nP[i] = sigmoid(X[i])\nY[i] = X[i] * P[i]\noutput Y", {"P": "P", "Y": "Y"}),
        # two softmaxes of one tensor, not connected with each other, and a product of them
        ("tensor S[4, 4] dense\nr[i] = sum(j) S[i, j]\nR[i, j] = S[i, j] / r[i]\nT[i, j] = R[i, j] * 2\n"
         "c[j] = sum(i) T[i, j]\nC[i, j] = T[i, j] / c[j]\noutput C", {"C": "r R T c C"}),
    ],
)  # fmt: skip
def test_softmaxes_and_norms_stay_together(text: str, expected: dict[str, str]) -> None:
    assert regions(parse(text), Schedule.fuse("none")) == expected


def test_a_group_is_named_after_what_its_members_share() -> None:
    names = {"m": "attn.softmax.max", "E": "attn.softmax.exp", "d": "attn.softmax.sum", "Y": "attn.softmax.out"}
    p = parse(SOFTMAX)
    renamed = [Einsum(names[e.name], e.indices, _renamed(e.body, names), e.location) for e in p.einsums]
    assert list(regions(Program(p.tensors, tuple(renamed), ("attn.softmax.out",)), Schedule.fuse("none"))) == ["attn.softmax"]


def _renamed(node, names):  # type: ignore[no-untyped-def]
    match node:
        case Access():
            return Access(names.get(node.tensor, node.tensor), node.indices)
        case Apply():
            return Apply(node.op, tuple(_renamed(a, names) for a in node.args))
        case Reduce():
            return Reduce(node.op, node.over, _renamed(node.body, names))
        case _:
            return node


def heads(size: int, inner: int) -> Program:
    """A projection, its split into heads, and something per head."""
    split = Access("P", ("i", Split("h", "d", inner)))
    return Program(
        (TensorType("X", (4, size), None),),
        (
            Einsum("P", ("i", "j"), Apply("exp", (Access("X", ("i", "j")),)), Location("h.0.attn")),
            Einsum("Q", ("h", "i", "d"), split, Location("h.0.attn")),
            Einsum("R", ("h", "i", "d"), Apply("exp", (Access("Q", ("h", "i", "d")),)), Location("h.0.attn")),
        ),
        ("R",),
    )


def test_reshapes_cut() -> None:
    p = heads(8, 4)
    assert regions(p, Schedule.fuse("layerwise")) == {"h.0": "P", "Q": "Q", "h.0-2": "R"}
    assert regions(p, Schedule.fuse("full")) == {"full": "P", "Q": "Q", "full-2": "R"}
    assert regions(p, Schedule.fuse("none")) == {"P": "P", "Q": "Q", "R": "R"}
    assert regions(p, Schedule.fuse("Q")) == {"P": "P", "Q": "Q", "R": "R"}


def test_a_named_region_spans_a_reshape_that_vanishes() -> None:
    assert regions(heads(8, 4), Schedule.fuse("h.0")) == {"h.0": "P Q R"}


@pytest.mark.parametrize(("size", "inner", "format"), [(4, 4, None), (4, 1, None), (8, 4, Format.parse("csr", 2))])
def test_a_reshape_that_stays_ends_a_named_region(size: int, inner: int, format: Format | None) -> None:
    p = heads(size, inner)
    p = replace(p, tensors=(replace(p.tensors[0], format=format),))
    assert regions(p, Schedule.fuse("layerwise")) == {"h.0": "P", "Q": "Q", "h.0-2": "R"}
    with pytest.raises(ScheduleError, match=r"region `h\.0` holds `Q`, which reshapes data"):
        regions(p, Schedule.fuse("h.0"))


@pytest.mark.parametrize(
    ("schedule", "what"),
    [
        (Schedule.fuse("lyaer1"), "did you mean `layer1`?"),
        (Schedule.fuse("layer1.lim"), "did you mean `layer1.lin`?"),
        (Schedule.fuse("layerwize"), "did you mean `layerwise`?"),
        (Schedule.region("r", "layer3").fuse("r"), "`layer3` for region `r`"),
        (Schedule.region("front", "T1").fuse("frnt"), "did you mean `front`?"),
        (Schedule.fuse("layer1", "layer1.lin"), "regions `layer1` and `layer1.lin` both hold `T1`"),
        (Schedule.region("r", "T1", "B1").fuse("r"), "its `B1` needs `H1` from outside"),
    ],
)
def test_a_wrong_name_or_an_impossible_region(schedule: Schedule, what: str) -> None:
    with pytest.raises(ScheduleError) as error:
        form_regions(GCN_MODEL, schedule)
    assert what in str(error.value)


def test_two_regions_that_need_each_other() -> None:
    p = parse(
        "tensor X[4] dense\nA[i] = exp(X[i])\nB[i] = exp(X[i])\nC[i] = exp(B[i])\nD[i] = exp(A[i])\nY[i] = C[i] + D[i]\noutput Y"
    )
    with pytest.raises(ScheduleError, match="region `q` would be left and entered again: its `D` needs `A`"):
        form_regions(p, Schedule.region("p", "A", "C").region("q", "B", "D").fuse("p", "q"))


def test_results_are_what_is_read_elsewhere_or_leaves() -> None:
    chosen = form_regions(GCN_MODEL, Schedule.fuse("layerwise"))
    assert region_results(GCN_MODEL, chosen) == {"layer1": ("R",), "layer2": ("Y",)}
    alone = region_results(GCN_MODEL, form_regions(GCN_MODEL, Schedule.fuse("none")))
    assert alone["H1"] == ("H1",)
    assert alone["Y"] == ("Y",)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Random vectors computed from each other, in random modules."""
    count = draw(st.integers(1, 12))
    einsums = []
    for n in range(count):
        reads = draw(st.lists(st.integers(-1, n - 1), min_size=1, max_size=3))
        body = Apply("exp", (Access("X" if reads[0] < 0 else f"e{reads[0]}", ("i",)),))
        for r in reads[1:]:
            body = Apply("add", (body, Access("X" if r < 0 else f"e{r}", ("i",))))
        einsums.append(Einsum(f"e{n}", ("i",), body, Location(draw(st.sampled_from(["", "a", "a.x", "b", "h.0", "h.1"])))))
    return Program((TensorType("X", (4,), None),), tuple(einsums), (einsums[-1].name,))


@given(programs(), st.sampled_from(["none", "layerwise", "full", "a", "b", "h", "e0", "e1"]))
def test_any_choice_is_a_partition_that_can_run(p: Program, choice: str) -> None:
    try:
        chosen = form_regions(p, Schedule.fuse(choice))
    except ScheduleError:
        assert choice not in ("none", "layerwise", "full")
        return
    assert sorted(e for r in chosen for e in r.einsums) == sorted(p.defined)
    assert len({r.name for r in chosen}) == len(chosen)
    done = {"X"}
    for region in chosen:
        assert isinstance(region, Region)
        positions = [int(name[1:]) for name in region.einsums]
        assert positions == sorted(positions)
        for name in region.einsums:
            assert done.union(region.einsums).issuperset(p.defined[name].operands)
        done |= set(region.einsums)
    assert chosen == form_regions(p, Schedule.fuse(choice))
