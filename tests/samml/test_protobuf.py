"""The wire format: round trips, graphs of other tools, what they will miss in ours, malformed messages."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import proto
import pytest
import random_graphs
from google.protobuf import text_format

import fuseflow as ff
from fuseflow.einsum.parse import parse as parse_program
from fuseflow.errors import GraphError
from fuseflow.samml import nodes as n
from fuseflow.samml import tortilla_pb2 as pb
from fuseflow.samml.mlir import from_mlir, to_mlir
from fuseflow.samml.protobuf import compatibility, from_proto, from_text, to_proto, to_text
from fuseflow.samml.text import parse, show
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine, simulate
from fuseflow.tensors import pack
from fuseflow.tensors.levels import LEVELS

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "tests/data/comal").glob("*.bin"))
GOLDEN = ROOT.parent / "shared/golden/comal/graphs"
MATMULS = ("sddmm_locate", "spmm_ikj", "spmm_ikj_locate")
SIZES = {"i": 64, "j": 32, "k": 16}


def test_round_trip(graph: n.Graph):
    data = to_proto(graph)
    assert from_proto(data) == graph
    assert to_proto(from_proto(data)) == data
    assert from_text(to_text(graph)) == graph


def test_hops(graphs: dict[str, n.Graph]):
    graph = graphs["spmm"].with_hops(
        {n.Edge("mul", 1): n.Hops(3), n.Edge("A_k", 0): n.Hops(12, slots=0)}, {"A_k": n.NodeHops(2, 0, 3)}
    )
    assert from_proto(to_proto(graph)) == from_text(to_text(graph)) == graph
    assert "`mul`: the 3 hops of input 1: other readers know none" in compatibility(graph)
    assert "`A_k`: the hops between its tiles: other readers know none" in compatibility(graph)


def test_turns(graphs: dict[str, n.Graph]):
    graph = graphs["spmm"].with_turns({"A_k": n.Turn(1, 3)})
    assert from_proto(to_proto(graph)) == from_text(to_text(graph)) == graph
    assert "`A_k`: turn 1 of 3 at a port: other readers know none" in compatibility(graph)


def test_golden(graphs: dict[str, n.Graph], golden):
    golden("samml/spmm.pbtxt", to_text(graphs["spmm"]))


def test_empty_graph():
    graph = n.Graph("nothing", (), (n.Root("r", ()),), (), (), ())
    assert from_proto(to_proto(graph)) == graph


@pytest.mark.parametrize("number", [1, 2, 3])
def test_several_payloads_and_orders(number: int):
    """A side with several payloads is several pairs; coordinates of an accumulate stand innermost first."""
    scans = [f"i{k} = scan({'root' if k == 0 else f'i{k - 1}.ref'}) A.{k}" for k in range(number + 1)]
    crds = [f"acc.crd{k}" for k in range(1, number + 1)] if number > 1 else ["acc.crd"]
    shape = ", ".join("3" * (number + 1))
    text = [
        *(f"tensor A[{shape}] csf", f"tensor Y[{', '.join('3' * number)}] csf", "output Y", "root = root()", *scans),
        *(f"v = load(i{number}.ref) A", "w = alu(v) copy N->0"),
        f"both = join(i{number}.crd, v, w, i{number}.ref; i{number}.crd, v) intersect",
        f"acc = accumulate({', '.join(f'i{k}.crd' for k in range(number + 1))}, both.out1) sum order={number}",
        *(f"w{k} = write({crd}) Y.{k}" for k, crd in enumerate(crds)),
        "w_val = write(acc.val) Y.vals",
    ]
    graph = parse("\n".join(text))
    verify(graph)
    assert from_proto(to_proto(graph)) == graph
    message = pb.ComalGraph.FromString(to_proto(graph))
    kind = "spacc" if number <= 2 else "spacc_ext"  # the public simulator makes no node of another order
    (accumulate,) = [getattr(op, kind) for op in message.graph.operators if op.WhichOneof("op") == kind]
    made = {op.name: op for op in message.graph.operators}
    assert [c.name for c in accumulate.input_outer_crds] == [f"i{k}.crd" for k in reversed(range(number))]
    assert accumulate.order == number
    assert [pair.crd.name for pair in made["both"].joiner.input_pairs] == [f"i{number}.crd"] * 4


# What other tools read --------------------------------------------------------------------------------------------------------


def plain(message: pb.ComalGraph) -> pb.ComalGraph:
    """The message as a reader of the public schema sees it: no extension fields, no names."""
    copy = pb.ComalGraph.FromString(message.SerializeToString())
    _strip(copy)
    return copy


def _strip(message) -> None:
    for field, value in message.ListFields():
        if field.number >= 200:
            continue  # an operation of ours: another reader refuses it
        if field.number >= 100:
            message.ClearField(field.name)
        elif field.message_type is not None:
            for part in value if field.is_repeated else [value]:
                _strip(part)


def operations(graph: n.Graph) -> list[str]:
    message = pb.ComalGraph.FromString(to_proto(graph))
    return [str(op.WhichOneof("op")) for op in message.graph.operators]


def test_extensions_have_high_numbers():
    for message in pb.DESCRIPTOR.message_types_by_name.values():
        if message.name in (
            "Tensor",
            "Port",
            "Edge",
            "Depth",
            "Operand",
            "AnyStream",
            "Range",
            "Align",
            "Drop",
            "Permute",
            "Select",
            "Flatten",
            "Split",
        ):
            continue
        least = 200 if message.name == "Operation" else 100
        for field in message.fields:
            assert field.number < 32 or field.number >= least, field.full_name


def test_one_reader_for_each_stream(graph: n.Graph):
    """Fan-out is explicit: every stream is made once and read once; what nobody reads has id 0."""
    message = pb.ComalGraph.FromString(to_proto(graph))
    made: list[int] = []
    read: list[int] = []
    for operation in message.graph.operators:
        body = getattr(operation, str(operation.WhichOneof("op")))
        for field, streams in _streams(body):
            makes = "output" in field or field in ("out_ref", "out_val") or (field, operation.WhichOneof("op")) in _SPLIT
            (made if makes else read).extend(s.id.id for s in streams if s.id.id)
    assert len(made) == len(set(made))
    assert sorted(read) == sorted(made)


_SPLIT = {("outer_crd", "split"), ("inner_crd", "split")}


def _streams(message, within: str = ""):
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in value if field.is_repeated else [value]:
            name = within + field.name
            if part.DESCRIPTOR.name in ("CrdStream", "RefStream", "ValStream", "RepSigStream"):
                yield name, [part]
            else:
                yield from _streams(part, name + ".")


def test_compatible_graphs_mean_the_same_without_extensions(graphs: dict[str, n.Graph]):
    """The examples that need no extension still say everything but names, declarations and access when they are left out."""
    for name in ("spmm", "chain"):
        graph = graphs[name]
        assert compatibility(graph) == ()
        seen = from_proto(plain(pb.ComalGraph.FromString(to_proto(graph))).SerializeToString())
        scans = [replace(node, sequential=False) if hasattr(node, "sequential") else node for node in graph.nodes]
        assert [type(node) for node in seen.nodes] == [type(node) for node in scans]
        for ours, theirs in zip(scans, seen.nodes, strict=True):
            if not isinstance(ours, n.Repeat):  # repeats by the references beside the coordinates
                assert theirs == ours
        assert [t.format for t in seen.tensors] == [t.format for t in graph.tensors]


def test_repeat_uses_what_stands_beside_the_coordinates(graphs: dict[str, n.Graph]):
    message = pb.ComalGraph.FromString(to_proto(graphs["spmm"]))
    repeats = {op.name: op.repeat for op in message.graph.operators if op.WhichOneof("op") == "repeat"}
    assert repeats["rep_i"].rep_ref.name == "A_i.ref"
    assert repeats["rep_i"].signal.node == "A_i"
    assert "repeatsig" not in operations(graphs["spmm"])
    assert operations(graphs["others"]).count("repeatsig") == 2  # coordinates of a split have nothing beside them


def test_operations_that_others_must_not_misread(graphs: dict[str, n.Graph]):
    kinds = operations(graphs["others"])
    assert {"joiner_ext", "fiber_lookup_ext", "alu_ext", "reduce_ext", "spacc_ext", "range", "align", "drop"} <= set(kinds)


def test_compatibility_names_what_is_missed(graphs: dict[str, n.Graph], golden):
    golden("samml/others.compatibility.txt", "".join(f"{line}\n" for line in compatibility(graphs["others"])))
    assert compatibility(graphs["sddmm"]) == ("`K_k`: other readers locate below reference 0 only, not below those of `K.0`",)


@pytest.mark.parametrize(
    ("function", "slots", "op", "scalar"),
    [
        ("add", "N->0,2.5", pb.ALU.SCALARADD, 2.5),
        ("add", "2.5,N->0", pb.ALU.SCALARADD, 2.5),
        ("mul", "N->0,-1", pb.ALU.SCALARMUL, -1.0),
        ("div", "N->0,4", pb.ALU.SCALARDIV, 4.0),
        ("max", "N->0,1", pb.ALU.MAX, 1.0),
        ("relu", "N->0", pb.ALU.MAX, 0.0),
        ("exp", "N->0", pb.ALU.EXP, 0.0),
        ("sigmoid", "N->0", pb.ALU.SIGMOID, 0.0),
        ("div", "4,N->0", None, 0.0),
        ("sub", "N->0,4", None, 0.0),
        ("log", "N->0", None, 0.0),
    ],
)
def test_pointwise_operators(function: str, slots: str, op: int | None, scalar: float):
    graph = parse(
        f"tensor s[] dense\ntensor t[] dense\noutput t\nr = root()\nv = load(r) s\na = alu(v) {function} {slots}\nw = write(a) t.vals"
    )
    message = pb.ComalGraph.FromString(to_proto(graph))
    alu = message.graph.operators[2]
    if op is None:
        assert alu.WhichOneof("op") == "alu_ext"
        assert compatibility(graph) == (f"`a`: other readers have no `{function}` of these operands",)
    else:
        assert (alu.alu.stages[0].op, alu.alu.scalar) == (op, scalar)
        assert compatibility(graph) == ()
        (seen,) = [node for node in from_proto(plain(message).SerializeToString()).nodes if isinstance(node, n.Alu)]
        expected = slots if slots[0] == "N" else ",".join(reversed(slots.split(",")))
        assert show(n.Graph("g", (), (replace(seen, inputs=()),), ())).endswith(f"a = alu() {function} {expected}\n")


def test_tiles_are_blocked(graphs: dict[str, n.Graph]):
    """Square tiles that are multiplied or combined element by element are public; columns and other rectangles are not."""
    message = pb.ComalGraph.FromString(to_proto(graphs["tiles"]))
    made = {op.name: op for op in message.graph.operators}
    assert (made["A_v"].array.blocked, made["B_v"].array.blocked, made["B_v"].array.stream_shape) == (True, True, 2)
    assert made["add"].alu.stages[0].op == pb.ALU.ADD
    assert made["acc"].spacc.blocked
    assert [name for name, op in made.items() if op.WhichOneof("op") == "alu_ext"] == ["mul", "all", "exp", "gram"]
    assert "`A_v`: other readers have square tiles only, not 2x3" in compatibility(graphs["tiles"])
    text = "tensor A[3] dense tile 2x2\ntensor Y[3] dense tile 2x2\noutput Y\nr = root()\ni = scan(r) A.0\nv = load(i.ref) A\n"
    writes = "w = write(i.crd) Y.0\nx = write(b) Y.vals"
    for function, op in (("matmul", pb.ALU.MUL), ("mul", pb.ALU.ELEMMUL), ("add", pb.ALU.ADD)):
        graph = parse(f"{text}b = alu(v, v) {function} N->0,N->0\n{writes}")
        (alu,) = [op.alu for op in pb.ComalGraph.FromString(to_proto(graph)).graph.operators if op.WhichOneof("op") == "alu"]
        assert (alu.stages[0].op, alu.blocked, alu.stream_shape) == (op, True, 2)
        assert compatibility(graph) == ()
        assert from_proto(to_proto(graph)) == graph


@pytest.mark.parametrize("seed", range(25))
def test_random_graphs_of_tiles(seed: int, monkeypatch: pytest.MonkeyPatch):
    """All tile operators, rectangles, rows, columns and numbers: nothing is lost on the way, even where others will miss it."""
    monkeypatch.setattr(random_graphs, "TILED", 1.0)
    graph = random_graphs.random_case(seed, "small").graph
    assert from_proto(to_proto(graph)) == graph
    assert from_text(to_text(graph)) == graph


# Graphs of other tools --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_graphs_of_another_tool(path: Path, golden):
    graph = from_proto(path.read_bytes(), SIZES)
    golden(f"samml/comal_{path.stem}.txt", show(graph))
    assert compatibility(graph) == ()
    assert from_proto(to_proto(graph)) == graph


@pytest.mark.parametrize("path", [p for p in CASES if p.stem in MATMULS], ids=lambda path: path.stem)
def test_graphs_of_another_tool_compute(path: Path):
    """Conventions are read right if the numbers come out right. No row is empty: that tool stops there."""
    graph = from_proto(path.read_bytes(), {"i": 7, "j": 5, "k": 6})
    random = np.random.default_rng(0)
    arrays = {t.name: random.integers(1, 9, t.shape) / 8 for t in graph.tensors}
    arrays["B"][random.random(arrays["B"].shape) < 0.5] = 0
    arrays["B"][:, 0] = 1
    tensors = {t.name: pack(arrays[t.name], t.format) for t in graph.tensors if t.name != "X"}
    result = simulate(graph, tensors, load_machine("ideal"), check=True).outputs["X"].to_dense()
    wanted = arrays["B"] * (arrays["C"] @ arrays["D"].T) if "D" in arrays else arrays["B"] @ arrays["C"]
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="../shared/golden/comal is not here")
def test_every_golden_graph_loads():
    paths = sorted(GOLDEN.glob("*.bin"))
    assert len(paths) >= 7
    for path in paths:
        graph = from_proto(path.read_bytes())
        verify(graph)
        assert {size for t in graph.tensors for size in t.shape} == {0}, "sizes are unknown"
        data = pb.ComalGraph.FromString(path.read_bytes())
        assert data.SerializeToString(deterministic=True) == path.read_bytes(), "the schema knows every field"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_operations_in_any_order(path: Path):
    message = pb.ComalGraph.FromString(path.read_bytes())
    graph = from_proto(path.read_bytes())
    reverse = list(reversed(message.graph.operators))
    del message.graph.operators[:]
    message.graph.operators.extend(reverse)
    again = from_proto(message.SerializeToString())
    assert sorted(again.nodes, key=lambda node: node.name) == sorted(graph.nodes, key=lambda node: node.name)
    assert again.tensors == graph.tensors


def test_structure_of_ours_is_that_of_the_other_tool(graphs: dict[str, n.Graph]):
    """SpMM of the examples and of the other tool: the same operations, up to the root that ours shares."""
    theirs = pb.ComalGraph.FromString((ROOT / "tests/data/comal/spmm_ikj.bin").read_bytes())
    kinds = sorted(str(op.WhichOneof("op")) for op in theirs.graph.operators)
    kinds.remove("root")
    assert sorted(k for k in operations(graphs["spmm"]) if k != "broadcast") == [k for k in kinds if k != "broadcast"]


def test_lanes_without_extensions(graphs: dict[str, n.Graph]):
    """Forks, and merges of whole fibers, are public; merges of single values are not."""
    graph = graphs["lanes"]
    assert sorted(set(operations(graph)) & {"fork", "join", "join_ext"}) == ["fork", "join", "join_ext"]
    what = "other readers take whole fibers of the lanes in turn, which are not the elements here"
    assert [line for line in compatibility(graph) if "lanes" in line] == [f"`i`: {what}", f"`sum`: {what}"]
    unmerged = {"i": n.Port("A_i")}  # the same graph where every merge is one of fibers
    nodes = [node for node in graph.nodes if node.name not in ("i", "sum") and "'2" not in node.name]
    nodes = [replace(node, inputs=tuple(unmerged.get(port.node, port) for port in node.inputs)) for node in nodes]
    tensors = tuple(t for t in graph.tensors if t.name != "z")
    data = to_proto(replace(graph, tensors=tensors, nodes=tuple(nodes), outputs=("Y",)))
    seen = from_proto(plain(pb.ComalGraph.FromString(data)).SerializeToString())
    assert [(type(node), node.inputs) for node in seen.nodes] == [(type(node), node.inputs) for node in nodes]
    assert [node for node in seen.nodes if isinstance(node, n.Fork | n.Merge)] == [
        m for m in nodes if isinstance(m, n.Fork | n.Merge)
    ]


SPMV = """
name: "spmv"
graph {
  operators { name: "root" id: 1 root { output_ref#1 } }
  operators { name: "scan" id: 2 fiber_lookup { tensor: "A" format: "compressed" input_ref#1 output_crd#2 output_ref#3 } }
  operators { name: "vals" id: 3 array { tensor: "A" input_ref#3 output_val#4 } }
  operators { name: "crd" id: 4 fiber_write { tensor: "y" input_crd#2 } }
  operators { name: "out" id: 5 val_write { tensor: "y" input_val#4 } }
}
"""


def read(text: str) -> n.Graph:
    """The graph in the text of a message, `crd#3` standing for stream 3: `crd { id { id: 3 } }`."""
    return from_text(re.sub(r"#(\d+)", r" { id { id: \1 } }", text))


def foreign(*changes: tuple[str, str]) -> n.Graph:
    text = SPMV
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return read(text)


def test_smallest_foreign_graph():
    assert show(foreign()) == (
        "graph spmv\ntensor A[0]  coo\ntensor y[0]  coo\noutput y\n\nroot = root()\nscan = scan(root) A.0\n"
        "vals = load(scan.ref) A\ncrd = write(scan.crd) y.0\nout = write(vals) y.vals\n"
    ).replace("coo", foreign().tensors[0].format.short())


def test_implicit_root():
    graph = foreign(
        ('operators { name: "root" id: 1 root { output_ref#1 } }', ""),
        ("input_ref#1", "root: true"),
    )
    assert graph.nodes[0] == n.Root("implicit_root", ())
    assert graph.nodes[1].inputs == (n.Port("implicit_root"),)


def test_repeat_signals_fold():
    graph = foreign(
        ('operators { name: "vals"', 'operators { repeatsig { input_crd#2 output_rep_sig#7 } }\n'
         '  operators { name: "again" repeat { in_ref#1 out_ref#8 rep_ref#7 } }\n  operators { name: "vals"'),
    )  # fmt: skip
    assert n.Repeat("again", (n.Port("root"), n.Port("scan", 0))) in graph.nodes


def test_coordinate_drop():
    """Dropping outer coordinates without inner ones, as other tools do it, survives our own format too."""
    graph = read("""
      graph {
        operators { id: 1 root { output_ref#1 } }
        operators { id: 2 fiber_lookup { tensor: "A" format: "compressed" input_ref#1 output_crd#2 output_ref#3 } }
        operators { id: 3 fiber_lookup { tensor: "A" mode: 1 format: "compressed" input_ref#3 output_crd#4 } }
        operators { id: 4 coord_drop { input_outer_crd#2 input_inner_crd#4 output_outer_crd#5 } }
      }""")
    drop = graph.nodes[-1]
    assert isinstance(drop, n.Drop)
    assert drop.inputs == (n.Port("fiber_lookup_2"), n.Port("fiber_lookup_3"), n.Port("fiber_lookup_3"))
    assert from_proto(to_proto(graph)) == graph
    assert "coord_drop" in operations(graph)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("val_write {", "gen_ref {} } operators { val_write {", "operation `out`: gen_ref is not executed"),
        ("val_write {", "coord_hold {} } operators { val_write {", "operation `out`: coord_hold is not executed"),
        ("val_write {", "coord_mask {} } operators { val_write {", "operation `out`: coord_mask is not executed"),
        ("val_write {", "func {} } operators { val_write {", "operation `out`: func is not executed"),
        ("val_write {", "concat {} } operators { val_write {", "operation `out`: concat is not executed"),
        ("val_write {", "fork {} } operators { val_write {", "operation `out`: an input is not connected"),
        ("val_write {", "fork { val { input#4 } } } operators { val_write {", "node `out` .*the number of lanes is 0"),
        ("val_write {", "join {} } operators { val_write {", "operation `out`: joins no lanes"),
        ("val_write {", "join { val { inputs#4 } } } operators { val_write {", "not provably the lanes of one fork, 1 level below"),
        ("val_write {", "} operators { val_write {", "operation `out`: not an operation of the schema"),
        ("val_write {", "alu { vals { inputs#4 } stages { op: DIV } } } operators { val_write {", "ALU operation 3 of 1 streams"),
        ("val_write {", "alu { vals { inputs#4 } } } operators { val_write {", "another number of stages than one"),
        ("val_write {", "reduce { blocked: true input_val#4 } } operators { val_write {",
         "operation `out`: is `blocked`, and `stream_shape` does not say how large the tiles are"),
        ("val_write {", "reduce { stream_shape: 8 input_val#4 } } operators { val_write {", "streams of vectors of 8 are not executed"),
        ("val_write {", "reduce { blocked: true stream_shape: 8 input_val#4 } } operators { val_write {",
         "says that it works on tiles of 8x8; what reaches it are scalars"),
        ("input_ref#3", "blocked: true stream_shape: 8 output_val#9 input_ref#3 } } operators { array { tensor: \"A\" input_ref#3",
         "takes the values of `A` for tiles of 8x8 and of scalars"),
        ("input_ref#3", "input_ref#9", "operation `vals`: reads stream 9, which nothing makes"),
        ("input_ref#3", "", "operation `vals`: an input is not connected"),
        ("output_val#4", "output_val#4 } } operators { array { output_val#4", "both make stream 4"),
        ("input_ref#3", "input_ref#1", "`vals` .*references into the root; .*into A.1"),
        ('name: "crd"', 'name: "Locate" locate { input_crd#2 output_ref1#6 } } operators { name: "crd"',
         "operation `Locate`: nothing reads the references that it locates"),
        ('format: "compressed"', 'format: "squashed"', "graph `spmv`: unknown level format `squashed`"),
        ("val_write {", "broadcast { val { input#7 outputs#7 } } } operators { "
         "val_write { tensor: \"z\" input_val#7 } } operators { val_write {", "stream 7 is a broadcast of itself"),
    ],
)  # fmt: skip
def test_refuses(old: str, new: str, message: str):
    with pytest.raises(GraphError, match=message):
        foreign((old, new))


def test_streams_in_a_circle():
    with pytest.raises(GraphError, match="streams run in a circle through `a`, `b`"):
        read("""graph {
          operators { name: "a" array { input_ref#1 output_val#2 } }
          operators { name: "b" repeat { in_val#2 rep_val#2 out_ref#1 } }
        }""")


def test_locates_only_the_outermost_level():
    data = (ROOT / "tests/data/comal/spmm_ikj_locate.bin").read_bytes()
    message = pb.ComalGraph.FromString(data)
    for operation in message.graph.operators:
        if operation.WhichOneof("op") == "fiber_lookup" and operation.fiber_lookup.tensor == "C":
            operation.fiber_lookup.mode = 2
    with pytest.raises(GraphError, match="operation `locate`: locates level 1 of `C` by coordinates alone"):
        from_proto(message.SerializeToString())


def test_wrong_joiner_counts(graphs: dict[str, n.Graph]):
    message = pb.ComalGraph.FromString(to_proto(graphs["spmm"]))
    (join,) = [op.joiner for op in message.graph.operators if op.WhichOneof("op") == "joiner"]
    join.payloads.append(1)
    with pytest.raises(GraphError, match=r"has 2 input pairs, its payload counts are \(1, 1, 1\)"):
        from_proto(message.SerializeToString())
    join.payloads[:] = [1, 1]
    join.input_pairs[1].ClearField("in_ref")
    with pytest.raises(GraphError, match="operation `intersect_k`: an input is not connected"):
        from_proto(message.SerializeToString())


def test_wrong_signal(graphs: dict[str, n.Graph]):
    message = pb.ComalGraph.FromString(to_proto(graphs["spmm"]))
    (repeat, _) = [op.repeat for op in message.graph.operators if op.WhichOneof("op") == "repeat"]
    repeat.signal.node = "elsewhere"
    with pytest.raises(GraphError, match="reads output 0 of `elsewhere`, which has none"):
        from_proto(message.SerializeToString())


@pytest.mark.parametrize("data", [b"\xff\xff\xff", b"not a message"])
def test_no_message(data: bytes):
    with pytest.raises(GraphError, match="not a `ComalGraph` message"):
        from_proto(data)


def test_no_text_message():
    with pytest.raises(GraphError, match=r"not a `ComalGraph` message: 1:1 : .*nonsense"):
        from_text("nonsense { }")


def test_refuses_graphs_that_do_not_verify(graphs: dict[str, n.Graph]):
    broken = replace(graphs["spmm"], nodes=graphs["spmm"].nodes[:-1])
    for write in (to_proto, to_text, compatibility):
        with pytest.raises(GraphError, match="nothing writes the values"):
            write(broken)


def test_text_is_the_message(graph: n.Graph):
    assert text_format.Parse(to_text(graph), pb.ComalGraph()) == pb.ComalGraph.FromString(to_proto(graph))


# The schema -------------------------------------------------------------------------------------------------------------------


def test_generated_modules_are_those_of_the_schema():
    pytest.importorskip("grpc_tools", reason="no grpcio-tools here")
    generated = proto.generate()
    assert sorted(generated) == ["fuseflow/samml/tortilla_pb2.py"]
    for name, text in generated.items():
        assert (ROOT / name).read_text(encoding="utf-8") == text, f"{name} is out of date: run `make proto`"


BITMAP = """
graph g
tensor A[4, 40]  (dense, bitmap)
tensor M[4, 40]  (compressed(nonunique), singleton)
tensor Y[4, 40]  (compressed, bitmap)
output Y
root = root()
m_i = scan(root) M.0
m_j = scan(m_i.ref) M.1
a_i = locate(m_i.crd) A.0
below = repeat(a_i, m_j.crd)
a_j = locate(m_j.crd, below) A.1
s_j = scan(a_i) A.1
a_v = load(a_j) A
y_i = write(m_i.crd) Y.0
y_j = write(m_j.crd) Y.1
y_v = write(a_v) Y.vals
"""


def test_levels_that_other_readers_take_for_dense():
    """Every node that reads or writes one is named; what our reader gets is the same graph."""
    graph = parse(BITMAP)
    verify(graph)
    assert from_proto(to_proto(graph)) == from_text(to_text(graph)) == graph == parse(show(graph))
    warnings = compatibility(graph)
    assert [line for line in warnings if " level" in line] == [
        "`m_i`: other readers have no compressed(nonunique) level",
        "`m_j`: other readers have no singleton level",
        "`a_j`: other readers locate in full levels only, not in a bitmap one",
        "`s_j`: other readers have no bitmap level",
        "`y_j`: other readers have no bitmap level",
    ]


def test_every_level_has_its_public_name_or_a_warning():
    for level in LEVELS.values():
        known = level.text in ("dense", "compressed")
        assert (level.public == level.text) if known else (level.public is None), level.text


# Levels with numbers in their names -------------------------------------------------------------------------------------------

NM = """
graph g
tensor W[4, 8]  (dense, nm(2:4))
tensor Y[4, 8]  csr
output Y
root = root()
w_i = scan(root) W.0
w_j = scan(w_i.ref) W.1
w_v = load(w_j.ref) W
y_i = write(w_i.crd) Y.0
y_j = write(w_j.crd) Y.1
y_v = write(w_v) Y.vals
"""


def test_an_nm_level_goes_through_every_form():
    graph = parse(NM)
    verify(graph)
    assert from_proto(to_proto(graph)) == from_text(to_text(graph)) == graph == parse(show(graph))
    assert [line for line in compatibility(graph) if " level" in line] == ["`w_j`: other readers have no nm(2:4) level"]


def test_an_nm_level_in_a_file_of_another_tool_is_refused():
    """The public schema has no such level, so what it says of one is not what we store."""
    message = pb.ComalGraph.FromString(to_proto(parse(NM)))
    del message.tensors[:]
    for operation in message.graph.operators:
        if operation.name == "w_j":
            lookup = operation.fiber_lookup_ext.SerializeToString()
            operation.fiber_lookup.ParseFromString(lookup)
            assert operation.fiber_lookup.format == "nm(2:4)"
    with pytest.raises(GraphError, match=r"level 1 of `W` is nm\(2:4\), which the public schema does not have"):
        from_proto(message.SerializeToString(), {"i": 4, "j": 8})


def test_an_nm_level_is_written():
    """Its values, too, are told from those of a list in every form, and another tool's file of such a result is refused."""
    graph = parse(NM.replace("tensor Y[4, 8]  csr", "tensor Y[4, 8]  (dense, nm(2:4))"))
    verify(graph)
    assert from_proto(to_proto(graph)) == from_text(to_text(graph)) == graph == parse(show(graph)) == from_mlir(to_mlir(graph))
    levels = [line for line in compatibility(graph) if " level" in line]
    assert levels == [f"`{name}_j`: other readers have no nm(2:4) level" for name in "wy"]
    message = pb.ComalGraph.FromString(to_proto(graph))
    del message.tensors[:]
    with pytest.raises(GraphError, match=r"level 1 of `[WY]` is nm\(2:4\), which the public schema does not have"):
        from_proto(message.SerializeToString(), {"i": 4, "j": 8})


LAYOUTS = (
    *("dense", "csr", "csc", "coo", "dcsr", "dcsc", "csf", "nm(2:4)", "(dense, bitmap)", "(compressed, bitmap) order (1, 0)"),
    *("csr all", "csc all", "coo all", "dcsr all", "csf all", "(dense, bitmap) all", "(compressed, dense) order (1, 0) all"),
)


@pytest.mark.parametrize("options", ["", " f64", " resident", " buffer 64", " fill 1", " i8 fill 2 resident"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_form_of_a_graph_has_the_whole_declaration(layout: str, options: str):
    declared = parse(f"graph one\ntensor A[8, 8]  {layout}{options}\n").declared["A"]
    assert declared.format.complete is layout.endswith(" all")
    graph = n.Graph("one", (declared,), (n.Root("root", ()),), (), (), ())
    assert parse(show(graph)) == graph
    assert from_proto(to_proto(graph)) == graph == from_text(to_text(graph))
    assert from_mlir(to_mlir(graph)) == graph


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout.startswith(("c", "d", "(dense"))])
def test_every_form_of_a_graph_takes_the_same_cycles(layout: str):
    """`csr all` became `csr` in protobuf and MLIR, and the same graph took 35 cycles where it had taken 82."""
    array = np.where(np.random.default_rng(1).random((8, 8)) < 0.2, 1.5, 0.0)
    program = f"tensor A[8, 8] {layout}\ntensor X[8] dense\nY[i] = sum(j) A[i, j] * X[j]\noutput Y\n"
    (region,) = ff.compile(parse_program(program), tensors={"A": array, "X": np.arange(8.0)}).regions
    graph, machine = region.graph, load_machine("ideal")
    forms = (parse(show(graph)), from_proto(to_proto(graph)), from_text(to_text(graph)), from_mlir(to_mlir(graph)))
    cycles = []
    for form in (graph, *forms):
        inputs = {t.name: pack(array if t.name == "A" else np.arange(8.0), t.format) for t in form.tensors if t.name != "Y"}
        result = simulate(form, inputs, machine)
        np.testing.assert_allclose(result.outputs["Y"].to_dense(), array @ np.arange(8.0))
        cycles.append(result.cycles)
    assert len(set(cycles)) == 1
