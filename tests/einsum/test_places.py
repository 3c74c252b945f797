"""The places of Einsums in messages."""

from fuseflow.einsum.nodes import Const, Einsum, Location
from fuseflow.einsum.places import places_of
from fuseflow.errors import Span


def test_each_line_once_and_not_too_many() -> None:
    einsums = [Einsum(f"T{n}", (), Const(1.0), Location(span=Span("m.mlir", 3 + n // 2, n + 1))) for n in range(10)]
    assert places_of(einsums[:4]) == "m.mlir:3, m.mlir:4"
    assert places_of(einsums) == "m.mlir:3, m.mlir:4, m.mlir:5 and 2 other places"
    assert places_of([Einsum("T", (), Const(1.0))]) == "the program"
