"""What the coordinates of each primitive are below, and what the verifier makes of it."""

import pytest

from fuseflow.errors import GraphError
from fuseflow.samml import nodes as n
from fuseflow.samml.graph import UNBOUNDED, stream_bounds
from fuseflow.samml.text import parse
from fuseflow.samml.verify import stream_facts, verify

HEAD = """
tensor A[5, 7]  (compressed, compressed) order (1, 0)
tensor B[4]  dense
root = root()
A_j = scan(root) A.0
A_i = scan(A_j.ref) A.1
B_i = scan(root) B.0
"""

# (a graph, the streams of its last node, their bounds)
EXAMPLES = [
    ("x = scan(root) A.0", (7, UNBOUNDED)),  # the dimension that the level stores
    ("x = range(root) 9", (9,)),
    ("x = join(A_j.crd; B_i.crd, B_i.ref) intersect", (4, UNBOUNDED)),
    ("x = join(A_j.crd; B_i.crd, B_i.ref) union", (7, UNBOUNDED)),
    ("x = join(B_i.crd; A_j.crd) left", (4,)),
    ("r = repeat(A_j.crd, A_i.crd)\nx = join(A_i.crd, r) union", (5, 7)),
    ("x = align(A_j.crd, B_i.crd, A_i.crd)", (5,)),
    ("x = repeat(A_j.crd, A_i.crd)", (7,)),
    ("v = load(A_i.ref) A\nx = accumulate(A_j.crd, A_i.crd, v) sum order=1", (5, UNBOUNDED)),
    ("v = load(A_i.ref) A\nx = permute(A_j.crd, A_i.crd, v) order=1,0", (5, 7, UNBOUNDED)),
    ("v = load(A_i.ref) A\nx = drop(A_j.crd, A_i.crd, v)", (7, 5, UNBOUNDED)),
    ("x = flatten(A_j.crd, A_i.crd) 6", (6 * 6 + 5,)),
    ("x = split(A_j.crd) 3", (3, 3)),
    ("x = split(A_j.crd) 10", (1, 7)),
    ("x = fork(A_j.crd) 2", (7, 7)),
    ("f = fork(A_j.crd) 2\nx = merge(f.lane0, f.lane1) levels=0", (7,)),
    ("x = locate(B_i.crd) B.0", (UNBOUNDED,)),
]


@pytest.mark.parametrize(("text", "expected"), EXAMPLES)
def test_of_a_primitive(text: str, expected: tuple[int, ...]) -> None:
    graph = parse(HEAD + text)
    known = stream_facts(graph)
    found = stream_bounds(graph)
    assert tuple(found[n.Port("x", k)] for k in range(len(expected))) == expected
    assert {port: stream.bound for port, stream in known.items()} == found


def test_of_lanes_that_differ() -> None:
    """What is merged is as large as the largest lane."""
    graph = parse("""
        tensor A[3]  dense
        tensor B[4, 7]  csr
        tensor C[4, 9]  csr
        root = root()
        i = scan(root) B.0
        C_i = scan(root) C.0
        b = fork(i.ref) 2
        c = fork(C_i.ref) 2
        b0 = scan(b.lane0) B.1
        c1 = scan(c.lane1) C.1
        both = merge(b0.crd, c1.crd) levels=1
    """)
    assert stream_bounds(graph)[n.Port("both")] == 9


UNION = """
tensor A[4]  dense
tensor B[3]  dense
tensor C[9]  (compressed)
root = root()
A_i = scan(root) A.0
B_i = scan(root) B.0
C_i = scan(root) C.0
"""


@pytest.mark.parametrize(
    ("join", "nullable"),
    [
        ("join(A_i.crd, A_i.ref; B_i.crd, B_i.ref) union", (False, True)),
        ("join(B_i.crd, B_i.ref; A_i.crd, A_i.ref) union", (True, False)),
        ("join(B_i.crd, B_i.ref; A_i.crd, A_i.ref) left", (False, False)),
        ("join(A_i.crd, A_i.ref; B_i.crd, B_i.ref) left", (False, True)),
        ("join(A_i.crd, A_i.ref; B_i.crd, B_i.ref) intersect", (False, False)),
        ("join(A_i.crd, A_i.ref; C_i.crd, C_i.ref) union", (True, True)),  # C may have coordinates beyond those of A
    ],
)
def test_a_full_side_is_never_hidden_if_no_other_is_larger(join: str, nullable: tuple[bool, bool]) -> None:
    known = stream_facts(parse(f"{UNION}x = {join}"))
    assert (known[n.Port("x", 1)].nullable, known[n.Port("x", 2)].nullable) == nullable


def test_a_smaller_full_side_is_not_written() -> None:
    text = f"graph g\n{UNION}B_v = load(B_i.ref) B\nx = join(A_i.crd; B_i.crd, B_v) union\nw = write(x.crd) Y.0\nv = write(x.out0) Y.vals\n"
    text = text.replace("root =", "tensor Y[4]  dense\noutput Y\nroot =", 1)
    with pytest.raises(GraphError, match=r"`v` .*may hold `N`"):
        verify(parse(text))


LOCATED = """
graph g
tensor A[5]  (compressed)
tensor V[3, 2]  dense
root = root()
A_i = scan(root) A.0
"""


@pytest.mark.parametrize(
    "text",
    [
        "x = locate(A_i.crd) V.0",
        "r = repeat(root, A_i.crd)\nx = locate(A_i.crd, r) V.0",
        "all = range(A_i.ref) 3\nc = repeat(A_i.crd, all)\nx = locate(c) V.0",  # coordinates of the loop around
    ],
)
def test_coordinates_beyond_a_level_are_not_located(text: str) -> None:
    with pytest.raises(
        GraphError, match=r"(?s)`x` .*input 0 .*coordinates below 5; the size of level 0 of `V` is 3\n.*`range` of 3"
    ):
        verify(parse(LOCATED + text))


def test_coordinates_intersected_with_a_range_are_located() -> None:
    verify(parse(f"{LOCATED}all = range(root) 3\nfew = join(A_i.crd; all) intersect\nx = locate(few) V.0"))


ABSENT = """
graph g
tensor A[3]  (compressed)
tensor V[3]  dense
root = root()
A_i = scan(root) A.0
one = range(A_i.ref) 1
two = range(A_i.ref) 2
c = repeat(A_i.crd, one)
r = repeat(root, A_i.crd)
refs = repeat(r, two)
j = join(one, c; two, refs) union
x = locate(j.out0, j.out1) V.0
"""
"""Of two coordinates of the join, the second has no `c`."""


def test_what_is_located_may_be_absent_where_its_coordinate_may() -> None:
    graph = parse(ABSENT)
    verify(graph)
    known = stream_facts(graph)
    assert [known[n.Port("j", k)].nullable for k in (1, 2)] == [True, False]
    assert known[n.Port("x")].nullable


@pytest.mark.parametrize(("size", "refused"), [(6, True), (7, False), (1 << 60, True)])
def test_flatten_keeps_coordinates_ascending(size: int, refused: bool) -> None:
    """An inner coordinate of `size` or more would come after the next outer one; and all must fit a word."""
    graph = parse(
        f"graph g\ntensor A[5, 7]  csr\nroot = root()\ni = scan(root) A.0\nj = scan(i.ref) A.1\nx = flatten(i.crd, j.crd) {size}"
    )
    if not refused:
        verify(graph)
        return
    with pytest.raises(GraphError, match=r"`x` .*coordinates below (7; its size is 6|5: .*too many)"):
        verify(graph)
