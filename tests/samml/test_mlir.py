"""The MLIR form: round trips, what the dialect refuses, contexts, no torch."""

import re
import subprocess
import sys
from dataclasses import replace

import pytest

pytest.importorskip("torch_mlir.ir")

from fuseflow.errors import GraphError
from fuseflow.samml import nodes as n
from fuseflow.samml.mlir import from_mlir, to_mlir
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify


def test_round_trip(graph: n.Graph):
    text = to_mlir(graph)
    assert from_mlir(text) == graph
    assert to_mlir(from_mlir(text)) == text


def test_hops(graphs: dict[str, n.Graph]):
    graph = graphs["spmm"].with_hops(
        {n.Edge("mul", 1): n.Hops(3), n.Edge("A_k", 0): n.Hops(12, slots=0)}, {"A_k": n.NodeHops(2, 0, 3)}
    )
    assert '"samml.hops"() {count = 12 : i64, input = 0 : i64, node = "A_k", slots = 0 : i64}' in to_mlir(graph)
    assert '"samml.node_hops"() {inner = 2 : i64, loop = 0 : i64, node = "A_k", port = 3 : i64}' in to_mlir(graph)
    assert from_mlir(to_mlir(graph)) == graph


def test_turns(graphs: dict[str, n.Graph]):
    graph = graphs["spmm"].with_turns({"A_k": n.Turn(1, 3)})
    assert '"samml.turn"() {node = "A_k", number = 1 : i64, of = 3 : i64}' in to_mlir(graph)
    assert from_mlir(to_mlir(graph)) == graph


def test_golden(graphs: dict[str, n.Graph], golden):
    golden("samml/spmm.mlir", to_mlir(graphs["spmm"]))


MIXED = """
graph "mixed" payloads
tensor A[3, 4, 5]  csf
tensor B[4, 5]  dcsr
tensor Y[4, 5]  dcsr
output Y

root = root()
A_i = scan(root) A.0 sequential
A_j = scan(A_i.ref) A.1 sequential
A_k = scan(A_j.ref) A.2 sequential
A_val = load(A_k.ref) A sequential
acc = accumulate(A_i.crd, A_j.crd, A_k.crd, A_val) sum order=2
B_j = scan(root) B.0 sequential
j = join(acc.crd1; B_j.crd, B_j.ref) intersect
old_k = align(acc.crd1, j.crd, acc.crd2)
old_val = align(acc.crd1, j.crd, acc.val)
B_k = scan(j.out0) B.1
k = join(B_k.crd, B_k.ref, B_k.ref; old_k, old_val; B_k.crd, B_k.ref) left
B_val = load(k.out0) B
mul = alu(k.out2, B_val) mul N->0,N->0
drop = drop(j.crd, k.crd, mul)
write_j = write(drop.crd0) Y.0
write_k = write(drop.crd1) Y.1
write_val = write(drop.val) Y.vals

fiber_fifo acc[3]
"""


def test_payloads_of_both_kinds_and_several_levels():
    graph = parse(MIXED)
    verify(graph)
    assert from_mlir(to_mlir(graph)) == graph


def test_contexts_are_independent(graphs: dict[str, n.Graph]):
    from torch_mlir import ir

    from fuseflow.dialects.module import context

    text = to_mlir(graphs["spmm"])
    with context("samml", error=GraphError):
        module = ir.Module.parse(text)
        assert to_mlir(graphs["spmm"]) == text  # another context, inside this one
        assert str(module) == text


def test_refuses_graphs_that_do_not_verify(graphs: dict[str, n.Graph]):
    with pytest.raises(GraphError, match="nothing writes the values"):
        to_mlir(replace(graphs["spmm"], nodes=graphs["spmm"].nodes[:-1]))


START = """
    "samml.graph"() {name = "g"} : () -> ()
    "samml.tensor"() {name = "A", shape = array<i64: 4, 5>, levels = ["dense", "compressed"], order = array<i64: 0, 1>, dtype = "f32",
                      fill = 0.0 : f64, tile = array<i64>} : () -> ()
    "samml.tensor"() {name = "Y", shape = array<i64: 4, 5>, levels = ["dense", "compressed"], order = array<i64: 0, 1>, dtype = "f32",
                      fill = 0.0 : f64, tile = array<i64>} : () -> ()
    %r = "samml.root"() {node = "r"} : () -> ref0
    %a:2 = "samml.scan"(%r) {node = "a", tensor = "A", level = 0 : i64, sequential = true} : (ref0) -> (crd1, ref1)
    %b:2 = "samml.scan"(%a#1) {node = "b", tensor = "A", level = 1 : i64, sequential = true} : (ref1) -> (crd2, ref2)
    %v = "samml.load"(%b#1) {node = "v", tensor = "A", sequential = true} : (ref2) -> val2
"""


def module(line: str) -> str:
    """An operation below `START`, with short names of the stream types."""
    return re.sub(
        r"\b(crd|ref|val)(\d)\b", r"!samml.\1<\2 : i64>", START + line.replace("LEVEL1", "level = 1 : i64, sequential = true")
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        # Declarations: kinds, counts, attributes
        ('"samml.scan"(%a#0) {node = "x", tensor = "A", LEVEL1} : (crd1) -> (crd2, ref2)', "expected base type 'samml.ref'"),
        ('"samml.load"(%b#1) {node = "x", tensor = "A", sequential = true} : (ref2) -> i32', "expected base type 'samml.val'"),
        ('"samml.load"(%b#1) {tensor = "A", sequential = true} : (ref2) -> val2', 'attribute "node" is expected but not provided'),
        ('"samml.load"(%b#1) {node = "x", tensor = 3 : i64, sequential = true} : (ref2) -> val2', "'builtin.string'"),
        ('"samml.load"() {node = "x", tensor = "A", sequential = true} : () -> val2', "op expects exactly 1 operands, but got 0"),
        ('"samml.lod"(%b#1) {node = "x", tensor = "A", sequential = true} : (ref2) -> val2', "unregistered operation 'samml.lod'"),
        ('"samml.write"(%a#0) {node = "x", tensor = "A"} : (crd1) -> ()', 'attribute "level" is expected'),
        ('"samml.accumulate"(%a#0, %b#0, %v) {node = "x", function = "sum"} : (crd1, crd2, val2) -> (crd1, val1)', 'SegmentSizes'),
        ('"samml.permute"(%a#0, %b#0, %v) {node = "x"} : (crd1, crd2, val2) -> (crd1, crd2, val2)', 'SegmentSizes'),
        # Depths and kinds that hang together
        ('"samml.root"() {node = "x"} : () -> ref1', "expected '0 : i64' but got '1 : i64'"),
        ('"samml.scan"(%a#1) {node = "x", tensor = "A", LEVEL1} : (ref1) -> (crd1, ref2)', "expected '1 : i64' but got '2 : i64'"),
        (
            '"samml.range"(%r) {node = "x", size = 3 : i64} : (ref0) -> crd0',
            "result 0 the type !samml.crd<0 : i64>; node `x` makes !samml.crd<1 : i64>",
        ),
        (
            '"samml.locate"(%b#0, %a#1) {node = "x", tensor = "A", level = 0 : i64} : (crd2, ref1) -> ref1',
            "expected '2 : i64' but got '1 : i64'",
        ),
        ('"samml.align"(%a#0, %a#0, %b#0) {node = "x"} : (crd1, crd1, crd2) -> val2', "expected '!samml.crd<2 : i64>' but got '!samml.val"),
        (
            '"samml.align"(%a#0, %a#0, %a#0) {node = "x"} : (crd1, crd1, crd1) -> crd1',
            "input 2 .`a.crd`. is crd.1.; this node takes depth 2 or more",
        ),
        (
            '"samml.repeat"(%a#1, %b#0) {node = "x"} : (ref1, crd2) -> val2',
            "result 0 the type !samml.val<2 : i64>; node `x` makes !samml.ref<2 : i64>",
        ),
        ('"samml.repeat"(%r, %b#0) {node = "x"} : (ref0, crd2) -> ref2', "input 1 .`b.crd`. is crd.2.; this node takes depth 1 there"),
        (
            '"samml.alu"(%v, %v) {node = "x", function = "add", values = array<f64: 0.0, 0.0>, constants = array<i1: false, false>}'
            ' : (val2, val2) -> val1',
            "expected '2 : i64' but got '1 : i64'",
        ),
        (
            '"samml.reduce"(%v) {node = "x", function = "sum"} : (val2) -> val2',
            "result 0 the type !samml.val<2 : i64>; node `x` makes !samml.val<1 : i64>",
        ),
        (
            '"samml.flatten"(%a#0, %a#0) {node = "x", size = 2 : i64} : (crd1, crd1) -> crd1',
            "input 1 .`a.crd`. is crd.1.; this node takes depth 2 there",
        ),
        (
            '"samml.split"(%a#0) {node = "x", size = 2 : i64} : (crd1) -> (crd1, crd1)',
            "result 1 the type !samml.crd<1 : i64>; node `x` makes !samml.crd<2 : i64>",
        ),
        (
            '"samml.output"() {tensor = "Y"} : () -> () "samml.write"(%a#0) {node = "x", tensor = "Y", level = 1 : i64} : (crd1) -> ()',
            "input 0 .`a.crd`. is crd.1.; this node takes depth 2 there",
        ),
        ('"samml.fork"(%a#0) {node = "x", lanes = 3 : i64} : (crd1) -> (crd1, crd1)', "has 2 results for 3 lanes"),
        (
            '"samml.fork"(%a#0) {node = "x", lanes = 2 : i64} : (crd1) -> (crd1, ref1)',
            "expected '!samml.crd<1 : i64>' but got '!samml.ref<1 : i64>'",
        ),
        (
            '"samml.merge"(%a#0, %b#0) {node = "x", levels = 0 : i64} : (crd1, crd2) -> crd1',
            "expected '!samml.crd<1 : i64>' but got '!samml.crd<2 : i64>'",
        ),
    ],
)  # fmt: skip
def test_the_dialect_refuses(line: str, message: str):
    with pytest.raises(GraphError, match=rf"^a\.mlir:11:\d+: error.graph.: .*({message})"):
        from_mlir(module(line), "a.mlir")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"samml.load"(%6#1)', '"samml.load"(%6#0)', "expects different type than prior uses"),
        ("order = 1 : i64", "order = 2 : i64", r"node `acc_k` .accumulate.: takes 4 inputs .crd, crd, crd, val., not 3"),
        (
            'payloads = [["ref"], ["ref"]]',
            'payloads = [["ref"], []]',
            "`samml.join` has operands samml.crd, samml.crd, samml.ref, samml.ref; its payloads ask for samml.crd, samml.crd, samml.ref",
        ),
        ('payloads = [["ref"], ["ref"]]', 'payloads = [["ref"], 3]', "`payloads` = .* should be a list"),
        ("array<i32: 2, 2, 0>", "array<i32: 2, 1, 1>", "expected base type|samml.val"),
        # What only the graph can say
        ('level = 1 : i64, node = "A_k"', 'level = 5 : i64, node = "A_k"', "`A` has no level 5"),
        ('node = "A_k"', 'node = "A_i"', "two nodes are named `A_i`"),
        ('function = "mul"', 'function = "mull"', "unknown function `mull`"),
        ('"compressed"', '"compresed"', "unknown level format `compresed`"),
        ("array<i64: 4, 5>", "array<i32: 4, 5>", "`samml.tensor` has the attribute `shape` = .* should be 64-bit integers"),
        ("array<i64: 4, 5>", "array<i64: 4, 99999999999999999999>", "integer"),
        ("array<i64: 4, 5>", "array<i64: 4, -5>", "tensor `A` has shape"),
        ('levels = ["compressed", ', "levels = [1, ", "should be a list of strings"),
        ("array<i1: false, false>", "array<i1: false>", "`samml.alu` has 2 values and 1 constants"),
        ("array<i1: false, false>", "array<i64: 0, 0>", "`constants` = .* should be truth values"),
        ("level = 1 : i64", "level = 1 : i999", "`level` = 1 : i999; it should be a 64-bit integer"),
        ("level = 1 : i64", "level = true", "`level` = true; it should be a 64-bit integer"),
        ('tensor = "Y"', 'tensor = "\\FF"', "it should be a string"),
        ('"samml.graph"()', '"samml.graph"() {name = "g"} : () -> () "samml.graph"()', "`samml.graph` stands here a second time"),
    ],
)
def test_refuses(old: str, new: str, message: str, graphs: dict[str, n.Graph]):
    text = to_mlir(graphs["spmm"])
    assert old in text
    with pytest.raises(GraphError, match=message):
        from_mlir(text.replace(old, new, 1))


def test_refuses_an_order_of_other_levels(graphs: dict[str, n.Graph]):
    text = to_mlir(graphs["others"])
    permute, ordered = next(line for line in text.splitlines() if "samml.permute" in line), "order = array<i64: 1, 0>, "
    assert ordered in permute
    with pytest.raises(GraphError, match=r"\(permute\): takes 4 inputs \(crd, crd, crd, val\), not 3"):
        from_mlir(text.replace(permute, permute.replace(ordered, "order = array<i64: 1, 0, 2>, ")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("garbage(", "^b.mlir:1:1: error.graph.: MLIR: custom op 'garbage' is unknown"),
        ("", "has no `samml.graph`; it holds nothing"),
        ('%0 = "samml.root"() {node = "r"} : () -> !samml.ref<0 : i64>', "has no `samml.graph`; it holds samml.root"),
        (
            '"samml.graph"() ({^bb0(%r: !samml.ref<0 : i64>): "samml.range"(%r) {node = "i", size = 1 : i64} : '
            '(!samml.ref<0 : i64>) -> !samml.crd<1 : i64>}) {name = "g"} : () -> ()',
            "'samml.graph' op unexpected number of regions: expected 0 but got 1",
        ),
    ],
)
def test_refuses_what_is_no_graph(text: str, message: str):
    with pytest.raises(GraphError, match=message):
        from_mlir(text, "b.mlir")


def test_more_levels_than_the_dialect_has():
    rank = 10
    scans = [f"i{k} = scan({'root' if k == 0 else f'i{k - 1}.ref'}) A.{k}" for k in range(rank)]
    writes = [f"w{k} = write(d.crd{k}) Y.{k}" for k in range(rank)]
    crds = ", ".join(f"i{k}.crd" for k in range(rank))
    shape = ", ".join("2" * rank)
    text = [f"tensor A[{shape}] csf", f"tensor Y[{shape}] csf", "output Y", "root = root()", *scans, "v = load(i9.ref) A"]
    graph = parse("\n".join([*text, f"d = drop({crds}, v)", *writes, "w = write(d.val) Y.vals"]))
    verify(graph)
    with pytest.raises(GraphError, match="`d` takes 10 levels of coordinates; the MLIR form has at most 8"):
        to_mlir(graph)


def test_torch_is_not_imported():
    script = (
        "import sys; from fuseflow.samml import mlir, text;"
        "g = text.parse('tensor s[] dense\\ntensor t[] dense\\noutput t\\nr = root()\\nv = load(r) s\\nw = write(v) t.vals');"
        "assert mlir.from_mlir(mlir.to_mlir(g)) == g; assert 'torch_mlir' in sys.modules; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_package_does_not_import_mlir():
    script = "import sys, fuseflow, fuseflow.samml, fuseflow.samml.verify; assert 'torch_mlir' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
