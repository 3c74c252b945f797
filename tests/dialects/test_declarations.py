"""The declarations: MLIR loads them, refuses a wrong one of each operation, and the documented list is theirs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import mlir_modules
import pytest

pytest.importorskip("torch_mlir.ir")

from torch_mlir import ir
from torch_mlir.dialects import irdl

from fuseflow.dialects import DIALECTS, declaration
from fuseflow.dialects.listing import Definition, definitions, markdown
from fuseflow.dialects.module import context
from fuseflow.einsum.mlir import OPERATIONS as EINSUM_OPERATIONS
from fuseflow.errors import GraphError
from fuseflow.samml.mlir import MAX_LEVELS
from fuseflow.samml.nodes import NODE_TYPES

ROOT = Path(__file__).parents[2]
ENTRIES = [(dialect, entry) for dialect in DIALECTS for entry in definitions(dialect)]
OPERATIONS = [(dialect, entry) for dialect, entry in ENTRIES if entry.category == "operation"]
SEGMENTS = {"operandSegmentSizes", "resultSegmentSizes"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_mlir_loads_a_declaration_by_itself(dialect: str, tmp_path: Path):
    assert mlir_modules.loaded([dialect], "module {}", tmp_path).split() == ["module", "{", "}"]
    with ir.Context() as loaded, ir.Location.unknown():
        irdl.load_dialects(ir.Module.parse(declaration(dialect).read_text(encoding="utf-8")))
        assert loaded.is_dialect_loaded(dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_mlir_reads_what_is_printed(dialect: str, tmp_path: Path):
    """The generic form of a module is what MLIR itself prints of it."""
    for text in mlir_modules.texts(dialect)[-2:]:
        assert mlir_modules.loaded(["samml", "table", "einsum"], text, tmp_path).strip() == text.strip()


def test_mlir_refuses_what_the_declarations_do(tmp_path: Path):
    (text,) = mlir_modules.texts("einsum")
    with pytest.raises(AssertionError, match=r"'einsum\.apply' op attribute \"operator\" is expected but not provided"):
        mlir_modules.loaded(["einsum"], text.replace('operator = "sub"', 'operation = "sub"', 1), tmp_path)


@pytest.mark.parametrize(("dialect", "entry"), OPERATIONS, ids=[f"{d}.{e.name}" for d, e in OPERATIONS])
def test_a_wrong_one_of_each_operation_is_refused(dialect: str, entry: Definition):
    name = f"{dialect}.{entry.name}"
    text = next(text for text in mlir_modules.texts(dialect) if f'"{name}"' in text)
    with context("samml", "table", "einsum", error=GraphError):
        module = ir.Module.parse(text)
        with ir.InsertionPoint.at_block_begin(module.body):
            flag = ir.IntegerType.get_signless(1)
            stranger = ir.Operation.create("builtin.unrealized_conversion_cast", [flag], []).result
        right = next(op.operation for op in module.body.operations if op.operation.name == name)
        assert set(right.attributes) - SEGMENTS == {part.name for part in entry.attributes}
        assert accepted(module, name, *parts_of(right))
        wrong = list(wrong_ones(right, entry, stranger))
        assert len(wrong) >= 2
        for what, operands, results, attributes in wrong:
            assert not accepted(module, name, operands, results, attributes), f"{name}: {what}"


Parts = tuple[list[ir.Value], list[ir.Type], dict[str, ir.Attribute]]


def parts_of(op: ir.Operation) -> Parts:
    return list(op.operands), [result.type for result in op.results], {name: op.attributes[name] for name in op.attributes}


def wrong_ones(op: ir.Operation, entry: Definition, stranger: ir.Value) -> Iterator[tuple[str, *Parts]]:
    """The operation with one part of it wrong, for every part."""
    operands, results, attributes = parts_of(op)
    for k in range(len(operands)):
        yield f"operand {k} of another type", [*operands[:k], stranger, *operands[k + 1 :]], results, attributes
    for k in range(len(results)):
        yield f"result {k} of another type", operands, [*results[:k], stranger.type, *results[k + 1 :]], attributes
    yield "an operand more", [*operands, stranger], results, attributes
    yield "a result more", operands, [*results, stranger.type], attributes
    if any(part.count == "single" for part in entry.operands):
        yield "no operands", [], results, attributes
    if any(part.count == "single" for part in entry.results):
        yield "no results", operands, [], attributes
    for part in entry.attributes:
        yield f"no {part.name}", operands, results, {k: v for k, v in attributes.items() if k != part.name}
        other = ir.TypeAttr.get(ir.IntegerType.get_signless(1))
        yield f"{part.name} of another kind", operands, results, {**attributes, part.name: other}
    for name in SEGMENTS & set(attributes):
        yield f"no {name}", operands, results, {k: v for k, v in attributes.items() if k != name}


def accepted(module: ir.Module, name: str, operands: list[ir.Value], results: list[ir.Type], attributes: dict) -> bool:
    """Whether MLIR accepts such an operation at the end of the module."""
    with ir.InsertionPoint(module.body):
        op = ir.Operation.create(name, results, operands, attributes)
    try:
        return bool(op.verify())
    except ir.MLIRError:
        return False
    finally:
        op.erase()


@pytest.mark.parametrize(
    "wrong",
    [
        '"samml.root"() {node = "r"} : () -> !samml.ref<"0">',
        '"samml.root"() {node = "r"} : () -> !samml.ref<0 : i64, 0 : i64>',
        '"einsum.access"() {indices = [#einsum.split<"i", 3 : i64, "j">]} : () -> !einsum.element',
        '"einsum.input"() {span = #einsum.span<"f", unit, unit>} : () -> ()',
        '"einsum.input"() : () -> tensor<4xf32, #einsum.format<"dense", array<i64>, array<i64>>>',
        '"einsum.constant"() {value = 1.0 : f64} : () -> !einsum.element<3 : i64>',
    ],
)
def test_a_wrong_type_or_attribute_is_refused(wrong: str):
    with pytest.raises(GraphError, match=r"expected|satisfy"), context("samml", "einsum", error=GraphError):
        ir.Module.parse(wrong)


def test_every_operation_is_read_by_the_project():
    names = {dialect: {entry.name for d, entry in OPERATIONS if d == dialect} for dialect in DIALECTS}
    assert {f"einsum.{name}" for name in names["einsum"]} == set(EINSUM_OPERATIONS)
    around = {
        "graph",
        "tensor",
        "like",
        "resident",
        "buffer",
        "preload",
        "scratchpad",
        "output",
        "fiber_fifo",
        "fifo_depth",
        "hops",
        "turn",
        "node_hops",
    }
    assert names["samml"] == around | {kind.op for kind in NODE_TYPES}


def test_the_operations_of_several_levels_take_as_many_as_the_writer_gives():
    for name in ("accumulate", "permute", "drop", "select"):
        (entry,) = [entry for d, entry in OPERATIONS if (d, entry.name) == ("samml", name)]
        assert sum(part.name.startswith("crd") for part in entry.operands) == MAX_LEVELS
        assert sum(part.name.startswith("out") and part.name != "out" for part in entry.results) == MAX_LEVELS


@pytest.mark.parametrize(("dialect", "entry"), ENTRIES, ids=[f"{d}.{e.name}" for d, e in ENTRIES])
def test_everything_declared_is_described(dialect: str, entry: Definition):
    assert entry.text.endswith(".") and len(entry.text) > 8, f"{dialect}.{entry.name} has no sentence above it"


def test_the_operations_of_primitives_are_made_from_their_classes():
    spec = spec_from_file_location("tools_dialects", ROOT / "tools" / "dialects.py")
    assert spec is not None and spec.loader is not None
    tool = module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = declaration("samml").read_text(encoding="utf-8")
    assert text == tool.with_operations(text), "rewrite the declaration with `python tools/dialects.py`"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_page_has_the_list_of_the_declaration(dialect: str):
    page = (ROOT / "docs" / "reference" / "dialects.md").read_text(encoding="utf-8")
    listed = page.partition(f"<!-- list of {dialect} -->\n")[2].partition("<!-- end -->")[0]
    assert listed.strip() == markdown(dialect).strip(), "rewrite the page with `python tools/dialects.py`"
