"""Indices of one coordinate, or of one block: a reduction over them needs no loop where every tensor that has them is dense there."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.compiler import compile
from fuseflow.einsum.parse import parse as parse_program
from fuseflow.errors import GraphError
from fuseflow.run.compiled import Compiled
from fuseflow.samml.nodes import Accumulate, Reduce, Scan
from fuseflow.samml.text import parse, show
from fuseflow.samml.verify import verify
from fuseflow.schedule import Schedule

PRODUCT = """
tensor A[6, {h}] {a} f64
tensor B[{h}, 5] {b} f64
Y[n, c] = {op}(h) ({body})
output Y
"""
RNG = np.random.default_rng(0)


def arrays(h: int) -> dict[str, np.ndarray]:
    """Return operands of which a third of the entries are 0."""
    return {name: RNG.integers(-4, 5, shape) * (RNG.random(shape) < 0.7) + 0.0 for name, shape in (("A", (6, h)), ("B", (h, 5)))}


def compiled(h: int, a: str, b: str, schedule: Schedule, op: str = "sum", body: str = "A[n, h] * B[h, c]") -> Compiled:
    return compile(parse_program(PRODUCT.format(h=h, a=a, b=b, op=op, body=body)), tensors=arrays(h), schedule=schedule)


def reductions(program: Compiled) -> list[str]:
    """Return the reducing nodes of a program, after all levels have computed the same."""
    for engine in ("reference", "fast"):
        assert program.run(check=True, engine=engine).check is not None
    return [node.name for region in program.regions for node in region.graph.nodes if isinstance(node, Reduce | Accumulate)]


@pytest.mark.parametrize("order", ["n,h,c", "h,n,c", "n,c,h"])
@pytest.mark.parametrize("schedule", [Schedule(), Schedule().block("A", 1, 4).block("B", 4, 1)], ids=["coordinate", "block"])
def test_one_term_needs_no_accumulator(schedule: Schedule, order: str) -> None:
    h = 4 if schedule.blocks else 1
    program = compiled(h, "dense", "dense", schedule.order("Y", order).par(n=2, h=3))
    assert reductions(program) == []
    assert [region.table.order for region in program.regions] == [tuple(v for v in order.split(",") if v != "h")]


@pytest.mark.parametrize(
    ("a", "b", "op", "body"),
    [
        ("csr", "dense", "sum", "A[n, h] * B[h, c]"),  # a row may have no entry
        ("dense", "csf", "sum", "A[n, h] * B[h, c]"),
        ("dcsr", "csc", "max", "A[n, h] * B[h, c]"),
    ],
)
def test_a_compressed_level_needs_its_loop(a: str, b: str, op: str, body: str) -> None:
    assert reductions(compiled(1, a, b, Schedule(), op, body))


@pytest.mark.parametrize("op", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("body", ["A[n, h] * B[h, c]", "A[n, h] + B[h, c] - 3", "exp(A[n, h]) * B[h, c]"])
def test_absent_entries_of_other_levels_count(op: str, body: str) -> None:
    """Rows and columns that are not stored have their term, too."""
    assert reductions(compiled(1, "(compressed, dense)", "(dense, compressed)", Schedule(), op, body)) == []


def test_more_coordinates_or_blocks_need_their_loop() -> None:
    assert reductions(compiled(2, "dense", "dense", Schedule()))
    assert reductions(compiled(5, "dense", "dense", Schedule().block("A", 1, 4).block("B", 4, 1)))


def test_references_pass_by_full_levels_of_one_coordinate_alone() -> None:
    graph = compiled(1, "dense", "dense", Schedule().order("Y", "h,n,c")).regions[0].graph
    (scan,) = (node for node in graph.nodes if isinstance(node, Scan) and node.tensor == "B")
    assert scan.level == 1  # below level 0, whose references are those of the root
    verify(graph)
    for shape, format in (("1, 5", "csr"), ("2, 5", "dense")):
        text = show(graph).replace("tensor B[1, 5]  dense", f"tensor B[{shape}]  {format}")
        assert text != show(graph)
        if format == "dense":
            with pytest.raises(GraphError, match=r"`B_c` .*references into the root; this node takes references into B\.1"):
                verify(parse(text))
        else:
            verify(parse(text))
