"""The text form: goldens, round trips, errors with their line, how the work grows."""

import math
import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import GraphError
from fuseflow.samml import nodes as n
from fuseflow.samml.dot import dot
from fuseflow.samml.text import parse, show
from fuseflow.tensors import Format


def test_golden(graph: n.Graph, golden):
    golden(f"samml/{graph.name}.txt", show(graph))


def test_round_trip(graph: n.Graph):
    assert parse(show(graph)) == graph


def test_by_hand_from_values():
    graph = n.Graph(
        name="row maxima",
        tensors=(
            n.TensorDecl("layer1.A", (2, 3), Format.parse("csc", 2), "f64", -math.inf),
            n.TensorDecl("y", (2,), Format.dense(1)),
        ),
        nodes=(
            n.Root("root", ()),
            n.Scan("A_i", (n.Port("root"),), "layer1.A", 0, sequential=True),
            n.Join("two", (n.Port("A_i"), n.Port("A_i", 1), n.Port("A_i", 1), n.Port("A_i")), "left", (2, 0)),
            n.Alu("c", (n.Port("v"),) * 0, "add", (n.Operand(-0.0, constant=True), n.Operand(1e300))),
            n.Drop("d", (n.Port("A_i"), n.Port("c")), 0.5),
            n.WriteValues("w", (n.Port("d", 1),), "y"),
        ),
        outputs=("y",),
        depths=((n.Edge("d", 1), 3),),
        hops=((n.Edge("d", 0), n.Hops(4)), (n.Edge("w", 0), n.Hops(2, slots=0))),
        turns=(("A_i", n.Turn(0, 2)), ("w", n.Turn(63, 64))),
        node_hops=(("d", n.NodeHops(inner=2)), ("w", n.NodeHops(port=5))),
    )
    text = """\
graph row maxima
tensor layer1.A[2, 3]  csc f64 fill -inf
tensor y[2]  dense
output y

root = root()
A_i = scan(root) layer1.A.0 sequential
two = join(A_i.crd, A_i.ref, A_i.ref; A_i.crd) left
c = alu() add -0,N->1e300
d = drop(A_i.crd, c) value=0.5
w = write(d.val) y.vals

depth d[1] 3
hops d[0] 4
hops w[0] 2 slots=0
turn A_i 0 of 2
turn w 63 of 64
node_hops d inner=2 loop=0 port=0
node_hops w inner=0 loop=0 port=5
"""
    assert show(graph) == text
    assert parse(text) == graph


@given(st.lists(st.tuples(st.floats(allow_nan=False), st.booleans()), min_size=1, max_size=4), st.floats(allow_nan=False))
def test_numbers_survive(slots: list[tuple[float, bool]], fill: float):
    graph = n.Graph(
        "numbers",
        (n.TensorDecl("A", (), Format.dense(0), "f64", fill),),
        (n.Alu("a", (), "where", tuple(n.Operand(*slot) for slot in slots)),),
        (),
    )
    assert repr(parse(show(graph))) == repr(graph)


def test_spaces_and_comments_do_not_matter():
    text = "graph g\n\n# nothing\n  tensor A[ 3 ]   dense   # A vector\nr=root( )\nA_i  =  scan( r )  A.0\n"
    assert parse(text) == parse("graph g\ntensor A[3]  dense\n\nr = root()\nA_i = scan(r) A.0\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "cannot read `nonsense`"),
        ("a = scam(root) A.0", "unknown primitive `scam`\n.*did you mean `scan`"),
        ("a = write_values(root) A", "unknown primitive `write_values`"),
        ("a = scan(roof) A.0", "no stream `roof` so far\n.*did you mean `root`"),
        ("a = scan(root) A", "cannot read the attributes `A` of scan"),
        ("a = scan(root) A.0 backwards", "cannot read the attributes `A.0 backwards` of scan"),
        ("a = range(root) many", "cannot read the attributes `many` of range"),
        ("a = alu(root) add N->x", "cannot read the attributes"),
        ("a = accumulate(root) sum 1", "cannot read the attributes"),
        ("a = permute(root) 1,0", "cannot read the attributes"),
        ("a = permute(root) order=1,x", "cannot read the attributes"),
        ("a = join(root) outer", "a join is intersect, union or left"),
        ("a = repeat(root; root)", "only a join has sides"),
        ("tensor A", "cannot read the tensor `A`"),
        ("tensor A[2 3] dense", "`2 3` is not a whole number"),
        ("tensor A[2] dense fill x", "`x` is not a number"),
        ("tensor A[2] thick", "unknown format `thick`"),
        ("tensor A[2] dense tile 2", "cannot read `tile 2` behind the format `dense`"),
        ("depth root[0]", r"cannot read `depth root\[0\]`"),
        ("hops root[0]", r"cannot read `hops root\[0\]`"),
        ("hops root[0] 3 slots=1", "a hop has 1 slots"),
        ("hops root[0] 65537", "an edge has 65,537 hops"),
        ("turn root", "cannot read `turn root`"),
        ("turn root 2 of 2", "turn 2 of 2 does not come"),
        ("turn root 0 of 65", "a port has 65 turns"),
        ("node_hops root port=2", "cannot read `node_hops root port=2`"),
        ("node_hops root inner=65537 loop=0 port=2", "a node has hops below 0, or more than 65,536"),
        ("depth root[0] 3 slots=0", r"cannot read `depth root\[0\] 3 slots=0`"),
        ("fiber_fifo root[0] 3", r"cannot read `fiber_fifo root\[0\] 3`"),
    ],
)
def test_errors_name_the_line(line: str, message: str):
    with pytest.raises(GraphError, match=message) as error:
        parse(f"graph g\nroot = root()\n{line}\n", file="g.samml")
    assert (error.value.span.file, error.value.span.line) == ("g.samml", 3)


def chain(length: int) -> n.Graph:
    """So many ranges and so many repeats."""
    nodes = [n.Root("r", ()), *(n.Range(f"i{k}", (n.Port("r"),), 4) for k in range(length))]
    nodes += [n.Repeat(f"x{k}", (n.Port("r"), n.Port(f"i{k}"))) for k in range(length)]
    return n.Graph("big", (), tuple(nodes), ())


def calls_of(action: Callable[[], object]) -> int:
    """How many functions an action calls, those that are written in C among them."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls


def test_work_grows_as_the_number_of_nodes_does():
    """Of ten times as many nodes, what is quadratic makes a hundred times as many calls."""
    small, large = chain(50), chain(500)
    assert parse(show(large)) == large
    assert calls_of(lambda: parse(show(large))) < 11 * calls_of(lambda: parse(show(small)))


@pytest.mark.parametrize(
    "line",
    [
        "tensor A[N] dense",
        "tensor A[4] dense tile Nx2",
        "tensor A[4] dense buffer N",
        "fiber_fifo a[N]",
        "depth a[0] N",
        "depth a[N] 2",
    ],
)
def test_a_number_with_more_digits_than_python_reads_is_refused(line: str):
    with pytest.raises(GraphError, match="is not a whole number"):
        parse(f"graph g\n{line.replace('N', '9' * 5000)}\n")


def test_dot_golden(graphs: dict[str, n.Graph], golden):
    golden("samml/softmax.dot", dot(graphs["softmax"]))


def test_dot_has_every_node_and_reader(graph: n.Graph):
    text = dot(graph)
    assert text.count(" -> ") == sum(len(node.inputs) for node in graph.nodes)
    assert text.count("fillcolor=") == len(graph.nodes)


def test_dot_escapes_names():
    assert '"a\\"b\\\\" [label="a\\"b\\\\\\nroot"' in dot(n.Graph('g"', (), (n.Root('a"b\\', ()),), ()))
