"""Programs as MLIR: what is printed reads back as the same program, and what is wrong is refused with its place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mlir_modules
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import cases

pytest.importorskip("torch_mlir.ir")

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.mlir import from_mlir, to_mlir
from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Location, Program, TensorType
from fuseflow.einsum.parse import MAX_DEPTH, parse
from fuseflow.errors import ProgramError, Span

ROOT = Path(__file__).parents[2]
FILES = [*sorted((ROOT / "docs" / "example").glob("*.ein")), *sorted((ROOT / "tests" / "data").rglob("*.ein"))]


def check(program: Program) -> str:
    """Check the round trip, and what equality leaves out: places in files, signs of zeros, NaN."""
    text = to_mlir(program)
    reread = from_mlir(text)
    assert repr(reread) == repr(program)
    assert to_mlir(reread) == text
    return text


@pytest.mark.parametrize("path", FILES, ids=lambda path: "-".join(path.relative_to(ROOT).with_suffix("").parts[-2:]))
def test_programs_of_the_repository(path: Path):
    program = parse(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
    check(program)
    check(infer(program))


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "data" / "programs").glob("*.yaml")), ids=lambda path: path.stem)
def test_programs_that_are_kept_as_cases(path: Path):
    from program_files import load

    check(load(path).case.program)


def test_every_construct(golden):
    golden("einsum/every_construct.mlir", check(parse(mlir_modules.PROGRAM, "every.ein")))


def test_random_programs(programs: st.SearchStrategy[Program]):
    @settings(max_examples=40)
    @given(programs)
    def random_programs(program: Program):
        check(program)

    random_programs()


@settings(max_examples=15)
@given(cases())
def test_random_cases(case):
    check(case.program)
    check(infer(case.program))


@pytest.mark.parametrize(
    "value", [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324, 0.1, 1 / 3, 1.7976931348623157e308]
)
def test_numbers(value: float):
    body = Apply("add", (Access("x", ("i",)), Const(value)))
    check(Program((TensorType("x", (3,), fill=value),), (Einsum("y", ("i",), body),), ("y",)))


@pytest.mark.parametrize("span", [None, Span("a.py", 3), Span('a "b"\\\n.py', 3, 7)])
@pytest.mark.parametrize("path", ["", "layer1.lin", 'ä"/\\'])
def test_locations(span: Span | None, path: str):
    x, y = TensorType("x", (3,), span=span), Einsum("y", ("i",), Access("x", ("i",)), Location(path, span))
    check(Program((x,), (y,), ("y",)))


def test_sizes_at_their_limits():
    check(parse("tensor x[0, 2147483647, 1] (compressed, dense, dense)\ny[i, j, k] = x[i, j, k]\noutput y"))


def test_what_has_no_form():
    line = Einsum("y", ("i",), Access("x", ("i",)), Location("", Span("a", 2**70)))
    with pytest.raises(ProgramError, match="no MLIR form: the number 1180591620717411303424 does not fit into 64 bits"):
        to_mlir(Program((TensorType("x", (3,)),), (line,), ("y",)))
    name = Einsum("y", ("i",), Access("x", ("i",)), Location("\ud800"))
    with pytest.raises(ProgramError, match="no UTF-8 form"):
        to_mlir(Program((TensorType("x", (3,)),), (name,), ("y",)))


def test_programs_that_do_not_verify_are_not_printed():
    with pytest.raises(ProgramError, match="not declared"):
        to_mlir(Program((), (Einsum("y", ("i",), Access("x", ("i",))),), ("y",)))


HEAD = '"einsum.program"() {name = "p"} : () -> ()\n'
X = '%x = "einsum.input"() {name = "x", fill = 0.0 : f64, span} : () -> tensor<4xf32>\n'
READ = '%a = "einsum.access"(%x) {indices = ["i"]} : (tensor<4xf32>) -> !einsum.element\n'
DEFINE = (
    '%y = "einsum.define"(%a) {name = "y", indices = ["i"], path = "", span} : (!einsum.element) -> tensor<4x!einsum.element>\n'
)
OUT = '"einsum.output"(%y) : (tensor<4x!einsum.element>) -> ()\n'
ALL = HEAD + X + READ + DEFINE + OUT


def test_the_smallest():
    assert from_mlir(ALL) == parse("program p\ntensor x[4]\ny[i] = x[i]\noutput y")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (ALL, "", "a.mlir:1: .*has no `einsum.program`; it holds nothing"),
        (HEAD, "", "has no `einsum.program`; it holds einsum.input"),
        (HEAD, HEAD + HEAD, "a.mlir:2:1: .*`einsum.program` stands here a second time"),
        ('"einsum.access"', '"einsum.acces"', "a.mlir:3:6: .*unregistered operation 'einsum.acces'"),
        ('{name = "x", ', "{", 'a.mlir:2:6: .*attribute "name" is expected'),
        ('name = "x"', "name = 3 : i64", "a.mlir:2:6: .*expected base attribute 'builtin.string'"),
        ('name = "x"', 'name = "\\FF"', "a.mlir:2:6: .*it should be a string"),
        ("0.0 : f64", "0.0 : f32", "a.mlir:2:6: .*`fill` = 0.0.* : f32; it should be a 64-bit number"),
        ("tensor<4xf32>", "tensor<4xf8E4M3>", "a.mlir:2:6: .*unknown dtype `f8E4M3`"),
        ("tensor<4xf32>", "tensor<?xf32>", "a.mlir:2:6: .*a size that is not known"),
        ("tensor<4xf32>", "tensor<*xf32>", "a.mlir:2:6: .*expected base type 'builtin.tensor'"),
        ("tensor<4xf32>", "tensor<9999999999xf32>", "a.mlir:2:6: .*size beyond 2147483647"),
        ("tensor<4xf32>", "tensor<99999999999999999999xf32>", "a.mlir:2:.*"),
        ("tensor<4xf32>", 'tensor<4xf32, "csr">', 'a.mlir:2:6: .*has the encoding "csr"'),
        ("tensor<4xf32>", 'tensor<4xf32, #einsum.format<["dens"], array<i64: 0>, array<i64>>>', "did you mean `dense`"),
        ("tensor<4xf32>", 'tensor<4xf32, #einsum.format<["dense"], array<i64: 7>, array<i64>>>', "not a permutation"),
        ("tensor<4xf32>", 'tensor<4xf32, #einsum.format<["dense"], array<i32: 0>, array<i64>>>', "has the encoding"),
        ("tensor<4xf32>", "tensor<4xf32, #einsum.format<unit, array<i64>, array<i64: 1>>>", "which are single elements"),
        ("tensor<4xf32>", "tensor<4xf32, #einsum.format<unit, array<i64>, array<i64: -2>>>", "its sizes are 1 to 1024"),
        ("tensor<4xf32>", "tensor<4xf32, #sparse_tensor.encoding<{}>>", "the dialect `sparse_tensor`, which has no place here"),
        (
            'indices = ["i"]} : (tensor',
            "indices = [3]} : (tensor",
            "a.mlir:3:6: .*list of strings, `#einsum.split` and `#einsum.affine`",
        ),
        ('indices = ["i"]} : (tensor', 'indices = ["j"]} : (tensor', "a.mlir:4:6: .*neither on the left side nor reduced"),
        ('indices = ["i"]} : (tensor', "indices = []} : (tensor", "a.mlir:4:6: .*has 0 indices"),
        ('indices = ["i"]} : (tensor', 'indices = [#einsum.split<"i", "j", 0 : i64>]} : (tensor', "a.mlir:4:6: .*size 0"),
        ('name = "y"', 'name = "x"', "a.mlir:2:6: .*takes `x` from outside, which is defined here too"),
        (DEFINE, DEFINE + DEFINE.replace("%y", "%z"), "a.mlir:5:6: .*another operation has read"),
        (DEFINE, "%b" + READ[2:] + DEFINE, "a.mlir:4:6: .*`einsum.access` is read by nothing"),
        (READ + DEFINE, DEFINE + READ, "a.mlir:3:6: .*or that is made later"),
        (X + READ, READ + X, "a.mlir:2:6: .*reads its operand 0 before it is made"),
        (
            "-> tensor<4x!einsum.element>",
            "-> tensor<5x!einsum.element>",
            "(expects different type|it is tensor<4x!einsum.element>)",
        ),
        ("!einsum.element>", "f64>", r"a.mlir:4:6: .*gives `y` the type tensor<4xf64>; it is tensor<4x!einsum.element>"),
        (OUT, "", "a.mlir:1:1: .*the program has no outputs"),
        (OUT, OUT + OUT, "`y` is an output 2 times"),
        (OUT, OUT.replace("%y", "%x"), "expects different type"),
        (
            HEAD,
            HEAD + '"einsum.declare"() {name = "z", fill = 0.0 : f64, span, type = tensor<4xf32>} : () -> ()\n',
            "a.mlir:2:1: .*declares `z`, which nothing defines",
        ),
        (HEAD, HEAD + '"samml.root"() {node = "r"} : () -> ()\n', "a.mlir:2:.*unregistered dialect"),
        (HEAD, HEAD + "module {}\n", "a.mlir:2:1: .*`builtin.module` does not belong here"),
        (ALL, "garbage(", "a.mlir:1:1: .*custom op 'garbage' is unknown"),
    ],
)
def test_refuses(old: str, new: str, message: str):
    assert old in ALL
    with pytest.raises(ProgramError, match=message):
        from_mlir(ALL.replace(old, new), "a.mlir")


def test_an_expression_has_a_limit():
    def nested(depth: int) -> str:
        lines = [
            f'%{k + 1} = "einsum.apply"(%{k}) {{operator = "neg"}} : (!einsum.element) -> !einsum.element\n' for k in range(depth)
        ]
        return HEAD + X + READ.replace("%a", "%0") + "".join(lines) + DEFINE.replace("%a", f"%{depth}") + OUT

    body: Expr = from_mlir(nested(MAX_DEPTH - 1)).einsums[0].body
    assert isinstance(body, Apply)
    with pytest.raises(ProgramError, match="stands above 100 operators one inside the other"):
        from_mlir(nested(5000))


def test_torch_is_not_imported():
    script = (
        "import sys; from fuseflow.einsum import mlir; from fuseflow.einsum.parse import parse;"
        "p = parse('tensor x[4]\\ny[i] = x[i]\\noutput y'); assert mlir.from_mlir(mlir.to_mlir(p)) == p; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
