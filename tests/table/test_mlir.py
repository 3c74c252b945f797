"""Fusion tables as MLIR: what is printed reads back as the same table, and what is wrong is refused with its place."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import programs
import pytest
from hypothesis import given, settings
from random_programs import cases

pytest.importorskip("torch_mlir.ir")

import fuseflow as ff
from fuseflow.einsum import mlir as einsum_mlir
from fuseflow.errors import GraphError
from fuseflow.fusion.tree import Operation, Reduction, Tree, nodes
from fuseflow.samml import mlir as samml_mlir
from fuseflow.table import FusionTable, emit
from fuseflow.table.mlir import from_mlir, to_mlir
from fuseflow.table.table import show_steps

ROOT = Path(__file__).parents[2]


def values(table: FusionTable) -> tuple[object, ...]:
    """The table as values: the nodes of its trees, which are equal only if they are one object, by their number."""
    number: dict[Tree, int] = {}
    trees: list[object] = []
    for tree in nodes(*(evaluation.node for evaluation in table.evaluations)):
        number[tree] = len(number)
        match tree:
            case Operation():
                trees.append(("op", tree.name, tuple(number[arg] for arg in tree.args)))
            case Reduction():
                trees.append((tree.op, tree.over, tree.free, number[tree.body], tree.label))
            case _:
                trees.append(repr(tree))
    evaluations = [(number[e.node], e.port, e.around) for e in table.evaluations]
    return *(getattr(table, f.name) for f in fields(table) if f.name != "evaluations"), trees, evaluations


def check(table: FusionTable) -> str:
    text = to_mlir(table)
    again = from_mlir(text)
    assert values(again) == values(table)
    assert to_mlir(again) == text
    assert show_steps(again) == show_steps(table)
    assert emit(again) == emit(table)
    return text


@pytest.mark.parametrize(("name", "order"), programs.ORDERED)
def test_small_programs(name: str, order: str):
    check(programs.table(name, order))


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "example").glob("*.ein")), ids=lambda path: path.stem)
def test_examples(path: Path):
    for region in ff.compile(path).regions:
        check(region.table)


@pytest.mark.parametrize("model", ["gcn", "sae", "graphsage"])
def test_models(model: str):
    pytest.importorskip("torch")
    compiled = ff.compile(ROOT / "models" / f"{model}.py", options={"small": True}, schedule=ff.Schedule(fuse_regions=("full",)))
    program = compiled.program
    assert repr(einsum_mlir.from_mlir(einsum_mlir.to_mlir(program))) == repr(program)
    for region in compiled.regions:
        check(region.table)
        assert samml_mlir.from_mlir(samml_mlir.to_mlir(region.graph)) == region.graph


@settings(max_examples=15, deadline=None)
@given(cases())
def test_random_programs(case):
    for region in ff.compile(case.program, tensors=case.arrays, schedule=case.schedule).regions:
        check(region.table)


def test_golden(golden):
    golden("table/sddmm_ijk.mlir", to_mlir(programs.table("sddmm", "i,j,k")))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('row = "k", text = "LS', 'row = "l", text = "LS', r"^a.mlir:\d+:\d+: .*names the row `l`, which the table does not have"),
        ("Rep(<rep_i> by <M_j.crd>)", "Rep(<rep_i> by <M_j.cdr>)", "names the stream `M_j.cdr`(.|\n)*did you mean `M_j.crd`"),
        ('around = ["i", "j"], node = "mul"', 'around = ["i", "j"], node = "mull"', "names the node `mull`"),
        ("output = 0 : i64", "output = 9 : i64", "names output 9 of `mul`, which it does not have"),
        ("output = 0 : i64", "output = -1 : i64", "names output -1 of `mul`"),
        ("output = 0 : i64", "output = 0 : i512", "it should be a 64-bit integer"),
        ('"table.loop"() {indices = ["i"], node = "M_i"}', '"table.loop"() {indices = ["i"], node = "M_j"}', "a second time for `M_j`"),
        ('indices = ["j"], node = "M_j"', 'indices = [1], node = "M_j"', "should be a list of strings"),
        ('"table.table"()', '"table.tabel"()', "unregistered operation 'table.tabel'"),
        ('node = "K_val"', 'node = "Q_val"', "^a.mlir.*two nodes are named `Q_val`"),
        ('levels = ["dense", "dense"], name = "K"', 'levels = ["dense", "dense"], name = "Q"', "two tensors are named `Q`"),
        ('"table.view"() {indices = ["i", "k"], tensor = "Q"}', '"table.number"() {value = 1.0 : f32}', "should be a 64-bit number"),
        ('"table.table"()', '"samml.graph"() {name = "g"} : () -> ()\n"table.table"()', "`samml.graph` is no operation of a table"),
        ("-> !samml.ref<1 : i64>", "-> !samml.ref<3 : i64>", "^a.mlir.*(type|expected)"),
        ("(!table.step)", "(!table.tree)", "expects different type"),
        ('"samml.write_values"', '"samml.write"', "attribute \"level\" is expected"),
    ],
)  # fmt: skip
def test_refuses(old: str, new: str, message: str):
    text = to_mlir(programs.table("sddmm", "i,j,k"))
    assert old in text
    with pytest.raises(GraphError, match=message):
        from_mlir(text.replace(old, new, 1), "a.mlir")


def test_what_comes_too_early_is_refused():
    """MLIR does not ask the operations of a module to stand in order."""
    text = to_mlir(programs.table("sddmm", "i,j,k"))
    lines = text.splitlines()
    steps = [line for line in lines if "table.begin_step" in line]
    for wanted in (steps[0], next(line for line in lines if "table.view" in line)):
        moved = [line for line in lines if line != wanted]
        with pytest.raises(GraphError, match="reads its operand 0 before it is made"):
            from_mlir("\n".join([*moved[:-1], wanted, moved[-1]]))
    scan = next(line for line in lines if "samml.load" in line)
    moved = [line for line in lines if line != scan]
    with pytest.raises(GraphError, match="before it is defined"):
        from_mlir("\n".join([*moved[:-1], scan, moved[-1]]))


def test_torch_is_not_imported():
    script = "import sys; from fuseflow.table import mlir; assert 'torch_mlir' in sys.modules and 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
