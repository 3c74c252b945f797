"""One graph for each rule that it breaks, and where the error points."""

from dataclasses import dataclass, replace

import pytest

from fuseflow.errors import GraphError
from fuseflow.samml import nodes as n
from fuseflow.samml.text import parse, show
from fuseflow.samml.verify import stream_facts, verify
from fuseflow.tensors import Format

MAYBE_ABSENT = "all = range(A_i.ref) 9\neach = join(all; A_j.crd, A_val) union\npair = select(each.crd, each.out0)"

# (graph, (text, its replacement)..., what the error says): the text form of a graph, changed and read again
BROKEN = [
    # Declarations and names
    ("spmm", ("graph spmm", "graph "), "name '' is empty"),
    ("spmm", ("tensor X[5, 3]", "tensor A[5, 3]"), "two tensors are named `A`"),
    ("spmm", ("output Y", "output Y, Y"), "two outputs are named `Y`"),
    ("spmm", ("output Y", "output Yy"), "output `Yy` is not declared.*\n.*did you mean `Y`"),
    ("spmm", ("X[5, 3]  dcsr", "X[5, 3]  dcsr f12"), "tensor `X` has the unknown dtype `f12`"),
    ("spmm", ("write_val =", "A_i ="), "two nodes are named `A_i`"),
    ("spmm", ("rep_i =", "A_i.ref ="), ("scan(rep_i)", "scan(A_i.ref)"), "`A_i.ref` is named like a stream of node `A_i`"),
    # Inputs
    ("spmm", ("A_i = scan(root)", "A_i = scan(root, root)"), r"node `A_i` \(scan\): takes 1 input \(ref\), not 2"),
    ("spmm", ("scan(rep_i)", "scan(A_i.crd)"), r"node `X_k` \(scan\): input 0 \(`A_i.crd`\) is crd\(1\); this node takes ref"),
    ("spmm", ("root = root()\n", "root = root()\ny = root(root)\n"), r"node `y` \(root\): takes 0 inputs"),
    # Tensors, levels, references
    ("spmm", ("scan(root) A.0", "scan(root) AA.0"), "node `A_i` .*tensor `AA` is not declared.*\n.*did you mean `A`"),
    ("spmm", ("scan(root) A.0", "scan(root) Y.0"), "node `A_i` .*reads output `Y`"),
    ("spmm", ("load(X_j.ref) X", "load(X_j.ref) Y"), "node `X_val` .*reads output `Y`"),
    ("spmm", ("write(A_i.crd) Y.0", "write(A_i.crd) A.0"), "node `write_i` .*writes `A`, which is not an output"),
    ("spmm", ("scan(A_i.ref) A.1", "scan(A_i.ref) A.7"), "node `A_k` .*`A` has no level 7: it has 2 levels"),
    ("spmm", ("scan(intersect_k.out1) X.1", "scan(intersect_k.out0) X.1"), "`X_j` .*references into A.2; .*into X.1"),
    ("spmm", ("A_val = load(intersect_k.out0) A", "A_val = load(A_i.ref) A"), "`A_val` .*references into A.1; .*into A.2"),
    ("spmm", ("scan(rep_i) X.0", "scan(rep_i) X.0 sequential"), "`X_k` .*is sequential, but input 0 .`rep_i`. is not the parent"),
    ("spmm", ("load(intersect_k.out0) A", "load(intersect_k.out0) A sequential"), "`A_val` .*is sequential"),
    # Locate
    ("softmax", ("D[4, 5]  dense", "D[4, 5]  csr"), "`D_j` .*level 1 of `D` is compressed.*\n.*dense and bitmap levels are located"),
    ("softmax", ("locate(M_j.crd, rep_j)", "locate(M_j.ref, rep_j)"), r"`D_j` .*input 0 \(`M_j.ref`\) holds references"),
    ("softmax", ("locate(M_j.crd, rep_j)", "locate(M_j.crd)"), "`D_j` .*level 1 needs the references of level 0"),
    ("softmax", ("locate(M_i.crd, rep_i)", "locate(M_j.crd, rep_i)"), r"`D_i` .*input 1 \(`rep_i`\) is ref\(1\); .*depth 2"),
    ("sddmm", ("locate(Q_k.crd, rep_k)", "locate(Q_k.crd, rep_j)"), r"`K_k` .*references into the root"),
    ("softmax", ("locate(M_j.crd, rep_j) D.1", "locate(M_j.crd, M_j.ref) D.1"), r"`D_j` .*references into M.2; .*into D.1"),
    # Join
    ("spmm", ("A_k.crd, A_k.ref; X_k.crd, X_k.ref", "A_k.crd, X_k.ref; X_k.crd, A_k.ref"), r"input 1 \(`X_k.ref`\) is not aligned"),
    ("chain", ("; W_f.crd, W_f.ref", "; X_f.crd, X_f.ref"), r"input 2 \(`X_f.crd`\) does not hang below the same stream"),
    # Align, repeat
    ("others", ("align(some.crd0, full_i.crd, some.crd1)", "align(full_i.crd, all_i, some.crd1)"), "2 .*does not hang below input 0"),
    ("others", ("align(some.crd0, full_i.crd, some.crd1)", "align(some.crd0, union_j.crd, some.crd1)"), "1 .*below the same stream"),
    ("others", ("align(some.crd0, full_i.crd, some.crd1)", "align(some.crd0, full_i.crd, all_i)"), r"crd\(1\); .*depth 2 or more"),
    ("spmm", ("repeat(A_val, X_j.crd)", "repeat(A_val, X_k.crd)"), r"`rep_j` .*input 1 \(`X_k.crd`\) is crd\(2\); .*depth 3"),
    ("chain", ("repeat(intersect_f.out0, W_h.crd)", "repeat(intersect_f.out0, X_f.crd)"), "`rep_h` .*1 .*does not hang below input 0"),
    # Alu
    ("spmm", ("mul N->0,N->0", "mull N->0,N->0"), "unknown function `mull`\n.*did you mean `mul`"),
    ("spmm", ("mul N->0,N->0", "mul N->0"), "`mul` takes 2 operands, not 1"),
    ("spmm", ("mul N->0,N->0", "mul N->0,2"), "`mul` .*takes 1 input"),
    ("spmm", ("mul N->0,N->0", "mul 1,2"), "all operands are constants"),
    ("chain", ("mul'2 = alu(rep_h, W_val)", "mul'2 = alu(mul, W_val)"), r"input 1 \(`W_val`\) is not aligned with input 0 \(`mul`\)"),
    # Reduce, accumulate
    ("softmax", ("reduce(mask) max", "reduce(mask) maxx"), "`max_j` .*unknown function `maxx`"),
    ("others", ("rep = ", "deeper = reduce(red_k) sum\nrep = "), r"`deeper` .*is val\(0\); .*depth 1 or more"),
    ("spmm", (") sum order", ") add order"), "`acc_k` .*unknown function `add`"),
    ("spmm", ("accumulate(intersect_k.crd", "accumulate(A_k.crd"), r"input 1 \(`X_j.crd`\) does not hang below input 0 \(`A_k.crd`\)"),
    ("spmm", ("X_j.crd, mul)", "X_j.crd, A_val)"), r"input 2 \(`A_val`\) is val\(2\); .*depth 3"),
    # Permute
    ("others", ("order=1,0", "order=1,1"), "`turned` .*the order is 1,1\n.*every level of the input once"),
    ("others", ("order=1,0", "order=0"), "`turned` .*the order is 0\n.*two levels or more"),
    ("others", ("order=1,0", "order=2,0,1"), "`turned` .*takes 4 inputs"),
    ("others", ("permute(full_i.crd", "permute(A_i.crd"), r"`turned` .*input 1 \(`union_j.crd`\) does not hang below input 0"),
    ("others", ("permute(full_i.crd, union_j.crd, scale)", "permute(full_i.crd, union_j.crd, union_j.out0)"), "`turned` .*takes val"),
    ("others", ("permute(full_i.crd, union_j.crd, scale)", "permute(full_i.crd, union_j.crd, old_val)"), "`turned` .*is not aligned"),
    # Select
    ("kept", ("keep=2 every=4", "keep=0 every=4"), "`pair` .*it keeps 0 entries\n.*1 or more"),
    ("kept", ("keep=2 every=4", "keep=-2 every=4"), "`pair` .*it keeps -2 entries"),
    ("kept", ("keep=2 every=4", "keep=2 every=257"), "`pair` .*groups have 257 coordinates\n.*1 to 256 coordinates; `every=0`"),
    ("kept", ("keep=2 every=4", "keep=2 every=-1"), "`pair` .*groups have -1 coordinates"),
    ("kept", ("keep=2 every=4", "keep=5 every=4"), "`pair` .*keeps 5 of every 4 coordinates\n.*leave it out"),
    ("kept", ("every=4 levels=1", "every=4 levels=0"), "`pair` .*among 0 levels\n.*`levels=1`"),
    ("kept", ("every=0 levels=2", "every=4 levels=2"), "`top` .*2 levels in groups of 4 coordinates\n.*`every=0`"),
    ("kept", ("every=0 levels=2", "every=0 levels=1"), r"`top` .*takes 2 inputs \(crd, val\), not 3"),
    ("kept", ("every=0 levels=2", "every=0 levels=3"), "`top` .*takes 4 inputs"),
    ("kept", ("select(A_j.crd, A_val)", "select(A_j.ref, A_val)"), r"`pair` .*input 0 \(`A_j.ref`\) is ref\(2\); this node takes crd"),
    ("kept", ("select(A_j.crd, A_val)", "select(A_j.crd, A_j.crd)"), "`pair` .*takes val there"),
    ("kept", ("select(A_i.crd, pair.crd", "select(A_i.crd, A_j.crd"), "`top` .*is not aligned"),
    ("kept", ("select(A_i.crd, pair.crd", "select(A_j.crd, pair.crd"), r"`top` .*1 \(`pair.crd`\) is crd\(2\); this node takes depth 3"),
    ("kept", ("dcsr\ntensor Y[4, 9]  dcsr", "dcsr tile 2x3\ntensor Y[4, 9]  dcsr"), r"`pair` .*2x3\); .*of scalars\n.*before .* blocks"),
    ("kept", ("write(pair.crd)", "write(A_j.crd)"), "`write_val` writes the values of `Y` from a stream that is not below"),
    # `N`
    ("chain", ("W_f.ref) intersect", "W_f.ref) union"), ("W_h.crd, mul'2)", "W_h.crd, rep_h)"), "`acc_f` .*`rep_h`. may hold `N`\n.*copy"),
    ("kept", ("pair = select(A_j.crd, A_val)", MAYBE_ABSENT), "`pair` .*may hold `N`\n.*copy"),
    ("chain", ("W_f.ref) intersect", "W_f.ref) union"), ("mul'2 =", "r = reduce(rep_h) sum\nmul'2 ="), "`r` .*may hold `N`"),
    # Drop, flatten, split
    ("others", ("drop(union_j.crd, scale)", "drop(union_j.crd, union_j.out0)"), r"`drop_j` .*takes val there"),
    ("others", ("some = drop(full_i.crd", "some = drop(A_i.crd"), r"`some` .*input 1 \(`drop_j.crd`\) does not hang below input 0"),
    ("others", ("some = drop(full_i.crd, drop_j.crd, drop_j.val)", "some = drop(full_i.crd, drop_j.crd, scale)"), "`some` .*not aligned"),
    # Fork, merge
    ("lanes", ("fork(A_i.ref) 2", "fork(root) 2"), r"`ref` .*input 0 \(`root`\) is ref\(0\); this node takes depth 1 or more"),
    ("lanes", ("merge(crd.lane0, crd.lane1)", "merge(crd.lane0)"), "`i` .*not provably the lanes of one fork\n.*all lanes"),
    ("lanes", ("merge(crd.lane0, crd.lane1)", "merge(crd.lane1, crd.lane0)"), "`i` .*not provably the lanes of one fork"),
    ("lanes", ("merge(lane0.crd, lane1.crd) levels=1", "merge(lane0.crd, lane1.crd) levels=0"), "`k` .*not provably"),
    ("lanes", ("merge(lane0.crd, lane1.crd) levels=1", "merge(lane0.crd, lane1.crd) levels=3"), "`k` .*3 levels below it"),
    ("lanes", ("merge(lane0.crd, lane1.crd) levels=1", "merge(lane0.crd, lane1.crd) levels=-1"), "`k` .*the number of levels is -1"),
    ("lanes", ("merge(lane0.crd, lane1.crd)", "merge(lane0.crd, lane1.ref)"), r"`k` .*input 1 \(`lane1.ref`\) is ref.*, input 0 .* is crd"),
    ("lanes", ("merge(crd.lane0, crd.lane1)", "merge(crd.lane0, A_i.crd)"), "`i` .*not provably"),
    ("lanes", ("write(k) Y.1", "write(lane0.crd) Y.1"), "`write_k` writes level 1 of `Y` from a stream that is not below"),
    # Tiles
    ("tiles", ("X[4, 2]  dense tile 3x2", "X[4, 2]  dense tile 4x2"), "`mul` .*takes tiles of b1 x k and k x b2, not .*2x3.* and .*4x2"),
    ("tiles", ("matmul N->0,N->0", "mul N->0,N->0"), "`mul` .*`mul` takes tiles of one shape, rows and columns of it, and scalars"),
    ("tiles", ("matmul_t N->0,N->0", "matmul_t N->0,2"), "`gram` .*takes 1 input"),
    ("tiles", ("gram = alu(half, add) matmul_t N->0,N->0", "gram = alu(half) matmul_t N->0,2"), r"not val\(2, 2x2\)$"),
    ("tiles", ("row_max N->0", "rowmax N->0"), "`all` .*unknown function `rowmax`\n.*did you mean `row_max`"),
    ("tiles", ("m[3]  dense f64 tile 2x1", "m[3]  dense f64 tile 2x2"), r"`write_val.2` .*val\(1, 2x1\); .* are tiles of 2x2"),
    ("tiles", ("m[3]  dense f64 tile 2x1", "m[3]  dense f64"), "the values of `m` are scalars"),
    ("tiles", ("few = drop(j.crd, gram)", "few = drop(j.crd, gram) value=0"), r"`few` .*input 1 .* 2x2\); tiles are not dropped"),
    ("tiles", ("tile 2x3", "tile 0x3"), "tensor `A` has tiles of 0x3"),
    ("spmm", ("mul N->0,N->0", "matmul N->0,N->0"), r"`mul` .*tiles of b1 x k and k x b2, not val\(3\) and val\(3\)"),
    ("others", ("flatten(low_i.outer, low_i.inner) 2", "flatten(low_i.outer, low_i.inner) 0"), "`both` .*the size is 0"),
    ("others", ("flatten(low_i.outer, low_i.inner)", "flatten(low_i.outer, union_j.crd)"), "`both` .*does not hang below input 0"),
    ("others", ("split(full_i.crd) 2", "split(full_i.crd) 0"), "`low_i` .*the size is 0"),
    ("others", ("range(root) 4", "range(root) -4"), "`all_i` .*the size is -4"),
    # Writes
    ("spmm", ("Y[4, 3]  dcsr", "Y[4, 3]  coo"), r"level 0 of `Y` is compressed\(nonunique\)"),
    ("spmm", ("write(acc_k.crd) Y.1", "write(acc_k.crd) Y.0"), r"`write_j` .*is crd\(2\); this node takes depth 1"),
    ("spmm", ("write(acc_k.val)", "write(mul)"), r"`write_val` .*is val\(3\); this node takes depth 2"),
    ("spmm", ("write_i = write(A_i.crd) Y.0\n", ""), "nothing writes level 0 of `Y`"),
    ("spmm", ("write_val = write(acc_k.val) Y.vals\n", ""), "nothing writes the values of `Y`"),
    ("spmm", ("write_j =", "again = write(A_i.crd) Y.0\nwrite_j ="), "level 0 of `Y` is written by `write_i` and by `again`"),
    ("spmm", ("write(acc_k.crd) Y.1", "write(A_k.crd) Y.1"), "`write_val` writes the values of `Y` from a stream that is not below"),
    ("others", ("write(old_j) Y.1", "write(some.crd1) Y.1"), "`write_j` writes level 1 of `Y` .*what `write_i` writes"),
    # Edges
    ("softmax", ("fiber_fifo sub[0]", "fiber_fifo subb[0]"), "no edge into `subb`.*\n.*did you mean `sub`"),
    ("softmax", ("fiber_fifo sub[0]", "fiber_fifo sub[2]"), "`sub` has no input 2: it has 2"),
    ("softmax", ("fiber_fifo sub[0]", "hops sub[2] 3"), "`sub` has no input 2: it has 2"),
    ("softmax", ("fiber_fifo sub[0]", "hops sub[0] 3\nhops sub[0] 4"), "input 0 of `sub` has hops twice"),
    ("softmax", ("fiber_fifo sub[0]", "turn subb 0 of 2"), "`subb` has a turn at a port, and there is no such node.*\n.*mean `sub`"),
    ("softmax", ("fiber_fifo sub[0]", "turn sub 0 of 2"), "`sub` has a turn at a port, and does not ask the memory"),
    ("spmm", (" Y.vals", " Y.vals\nturn write_val 0 of 2\nturn write_val 1 of 2"), "`write_val` has two turns at ports"),
    ("softmax", ("fiber_fifo sub[0]", "node_hops subb inner=1 loop=0 port=0"), "hops of `subb`: no such node.*\n.*did you mean `sub`"),
    ("softmax", ("fiber_fifo sub[0]", "node_hops sub inner=1 loop=2 port=0"), "`sub` has a loop of hops, and is a `alu`"),
    ("softmax", ("fiber_fifo sub[0]", "node_hops sub inner=1 loop=0 port=0\nnode_hops sub inner=2 loop=0 port=0"), "`sub` has hops twice"),
    ("softmax", ("depth sub[0] 128", "depth sub[0] 0"), "the FIFO depth of input 0 of `sub` is 0"),
]  # fmt: skip


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case[-1])
def test_refuses(case: tuple, graphs: dict[str, n.Graph]):
    name, *changes, message = case
    text = show(graphs[name])
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    with pytest.raises(GraphError, match=f"(?s)graph.*{message}") as error:
        verify(parse(text))
    assert error.value.code == "graph"


def test_accepts(graph: n.Graph):
    verify(graph)


def changed(graph: n.Graph, at: str, fields: dict[str, object]) -> n.Graph:
    """The graph with other fields in one node."""
    return replace(graph, nodes=tuple(replace(node, **fields) if node.name == at else node for node in graph.nodes))


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("mul", {"inputs": (n.Port("rep_j"), n.Port("X_vall"))}, "reads `X_vall`, which is not in the graph(?s:.*)`X_val`"),
        ("mul", {"inputs": (n.Port("rep_j"), n.Port("X_val", 1))}, "reads output 1 of `X_val`, which has 1"),
        ("A_k", {"inputs": (n.Port("X_k", 1),)}, "reads `X_k` before it is defined"),
        ("A_k", {"inputs": (n.Port("A_k", 1),)}, "reads `A_k` before it is defined"),
        ("A_k", {"name": "A k"}, "node name `A k` is empty or has spaces"),
        ("intersect_k", {"kind": "inner"}, "unknown kind `inner`"),
        ("intersect_k", {"payloads": ()}, "the payload counts are"),
        ("intersect_k", {"payloads": (2, 1)}, "takes 5 inputs"),
        ("intersect_k", {"payloads": (1, -1)}, "the payload counts are"),
        (
            "intersect_k",
            {"inputs": (n.Port("A_k"), n.Port("X_k"), n.Port("A_k", 1), n.Port("X_k", 1))},
            r"input 1 .* is crd\(2\)",
        ),
        ("A_k", {"inputs": (n.Port("root"),), "sequential": False}, "references into the root; .* into A.1"),
        ("acc_k", {"order": 0}, "the order is 0"),
        ("acc_k", {"order": 2}, r"takes 4 inputs \(crd, crd, crd, val\), not 3"),
        ("write_j", {"level": -1}, "has no level -1"),
    ],
)
def test_refuses_what_text_cannot_say(name: str, fields: dict[str, object], message: str, graphs: dict[str, n.Graph]):
    with pytest.raises(GraphError, match=message):
        verify(changed(graphs["spmm"], name, fields))


def test_drop_takes_coordinates_and_a_stream(graphs: dict[str, n.Graph]):
    with pytest.raises(GraphError, match=r"`drop_j` \(drop\): takes at least 2 inputs"):
        verify(changed(graphs["others"], "drop_j", {"inputs": (n.Port("union_j"),)}))


def test_refuses_a_graph_without_nodes():
    with pytest.raises(GraphError, match="graph `g`: has no nodes"):
        verify(parse("graph g\n"))


def test_refuses_wrong_declarations(graphs: dict[str, n.Graph]):
    graph = graphs["spmm"]
    first, *others = graph.tensors
    for tensor, message in [
        (replace(first, shape=(4,)), "tensor `A` has 1 dimensions, its format"),
        (replace(first, shape=(4, -5)), r"tensor `A` has shape \(4, -5\)"),
        (replace(first, name="A B"), "tensor name `A B`"),
        (replace(first, tile=(2,)), "tensor `A` has tiles of 2\n.*rows and columns"),
    ]:
        with pytest.raises(GraphError, match=message):
            verify(replace(graph, tensors=(tensor, *others)))


def test_refuses_unknown_primitives(graphs: dict[str, n.Graph]):
    @dataclass(frozen=True, slots=True)
    class Gather(n.Root):
        op = "gather"

    with pytest.raises(GraphError, match=r"node `f` \(gather\): is no primitive"):
        verify(replace(graphs["spmm"], nodes=(*graphs["spmm"].nodes, Gather("f", ()))))


def test_union_payloads_may_be_empty_and_intersected_ones_not(graphs: dict[str, n.Graph]):
    known = stream_facts(graphs["others"])
    assert [known[n.Port("union_j", k)].nullable for k in range(3)] == [False, True, True]
    assert not stream_facts(graphs["spmm"])[n.Port("intersect_k", 1)].nullable


def test_full_side_of_a_union_hides_nothing():
    graph = parse("""
        tensor A[4]  dense
        tensor B[4]  (compressed)
        a_root = root()
        A_i = scan(a_root) A.0
        B_i = scan(a_root) B.0
        all = join(A_i.crd, A_i.ref; B_i.crd, B_i.ref) union
        some = join(A_i.crd, A_i.ref; B_i.crd, B_i.ref) left
    """)
    known = stream_facts(graph)
    assert [known[n.Port("all", k)].nullable for k in (1, 2)] == [False, True]
    assert [known[n.Port("some", k)].nullable for k in (1, 2)] == [False, True]


def test_equal_structure_is_proved_where_it_is_equal():
    """Dense scans of one size, a range, and a left join of them are aligned; scans of another size or of what may be `N` are not."""
    text = """
        tensor A[3, 4]  csr
        tensor B[3, 4]  dense
        tensor C[3, 5]  dense
        root = root()
        A_i = scan(root) A.0
        B_i = scan(root) B.0
        C_i = scan(root) C.0
        all_i = range(root) 3
        joined = join(all_i; B_i.crd, B_i.ref) left
        A_j = scan(A_i.ref) A.1
        B_j = scan(joined.out0) B.1
        C_j = scan(C_i.ref) C.1
        full_j = range(B_i.ref) 4
        hole = join(A_j.crd, A_j.ref; B_j.crd, B_j.ref) union
    """
    shape = {f"{port.node}.{port.output}": stream.shape for port, stream in stream_facts(parse(text)).items()}
    assert shape["A_i.0"] is shape["B_i.0"] is shape["C_i.1"] is shape["all_i.0"] is shape["joined.1"]
    assert shape["B_j.0"] is shape["full_j.0"]
    assert shape["B_j.0"] is not shape["C_j.0"]
    assert shape["A_j.0"] is not shape["B_j.0"]
    assert shape["A_j.0"].parent is shape["B_j.0"].parent
    assert shape["hole.0"] is not shape["A_j.0"]


def test_lanes_are_aligned_where_they_were_dealt_alike():
    """Forks of aligned streams by one number of lanes; what is merged is where it was before, full again where its lanes are."""
    text = """
        tensor A[3, 4]  csr
        tensor B[3, 4]  dense
        root = root()
        A_i = scan(root) A.0
        crd = fork(A_i.crd) 2
        ref = fork(A_i.ref) 2
        more = fork(A_i.ref) 3
        a0 = scan(ref.lane0) A.1
        a1 = scan(ref.lane1) A.1
        A_j = scan(A_i.ref) A.1
        B_i = locate(A_i.crd) B.0
        B_j = scan(B_i) B.1
        at0 = locate(crd.lane0) B.0
        at1 = locate(crd.lane1) B.0
        b0 = scan(at0) B.1
        b1 = scan(at1) B.1
        back = merge(ref.lane0, ref.lane1) levels=0
        sparse = merge(a0.crd, a1.crd) levels=1
        refs = merge(a0.ref, a1.ref) levels=1
        full = merge(b0.crd, b1.crd) levels=1
    """
    known = stream_facts(parse(text))
    shape = {f"{port.node}.{port.output}": stream.shape for port, stream in known.items()}
    assert shape["crd.0"] is shape["ref.0"] is shape["at0.0"]
    assert len({shape["ref.0"], shape["ref.1"], shape["more.0"], shape["A_i.0"]}) == 4
    assert shape["back.0"] is shape["A_i.0"]
    assert shape["sparse.0"] is shape["refs.0"]
    assert shape["sparse.0"].parent is shape["A_i.0"]
    assert shape["full.0"] is shape["B_j.0"]
    assert known[n.Port("refs")].position == known[n.Port("A_j", 1)].position


def test_what_one_lane_may_hold_the_merge_may_hold():
    text = """
        tensor A[4]  (compressed)
        tensor B[4]  (compressed)
        root = root()
        A_i = scan(root) A.0
        B_i = scan(root) B.0
        i = join(A_i.crd, A_i.ref; B_i.crd, B_i.ref) union
        a = fork(i.out0) 2
        b = fork(i.out1) 2
        full = load(a.lane0) A
        back = merge(a.lane0, a.lane1) levels=0
        some = load(b.lane1) B
        both = merge(full, {other}) levels=0
    """
    assert stream_facts(parse(text.format(other="some")))[n.Port("back")].nullable
    assert not stream_facts(parse(text.format(other="some")))[n.Port("both")].nullable
    with pytest.raises(GraphError, match=r"`both` .*input 1 \(`b.lane1`\) holds references into something else than input 0"):
        stream_facts(parse(text.replace("full, {other}", "a.lane0, b.lane1")))
    late = text.replace(
        "i.out0) 2",
        "i.out0) 2\n        v = load(B_i.ref) B\n        u = join(A_i.crd; B_i.crd, v) union\n        c = fork(u.out0) 2",
    )
    assert stream_facts(parse(late.format(other="c.lane1")))[n.Port("both")].nullable


def test_scalars_need_no_loop():
    verify(
        n.Graph(
            "scalar",
            (n.TensorDecl("s", (), Format.dense(0)), n.TensorDecl("t", (), Format.dense(0))),
            (n.Root("r", ()), n.Load("v", (n.Port("r"),), "s", sequential=True), n.WriteValues("w", (n.Port("v"),), "t")),
            ("t",),
        )
    )
