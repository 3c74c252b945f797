"""Resident tensors in every written form of a graph."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fuseflow.errors import GraphError
from fuseflow.samml import nodes as n
from fuseflow.samml.protobuf import compatibility, from_proto, from_text, to_proto, to_text
from fuseflow.samml.text import parse, show


def resident(graph: n.Graph) -> n.Graph:
    """The graph with every input resident."""
    return replace(graph, tensors=tuple(replace(t, resident=t.name in graph.inputs) for t in graph.tensors))


def test_every_form_says_which_tensors_are_resident(graph: n.Graph) -> None:
    graph = resident(graph)
    assert parse(show(graph)) == graph
    assert from_proto(to_proto(graph)) == from_text(to_text(graph)) == graph
    warnings = [f"`{name}`: it is resident: other readers take it for a tensor in memory" for name in graph.inputs]
    assert set(warnings) <= set(compatibility(graph))


def test_the_mlir_form(graph: n.Graph) -> None:
    pytest.importorskip("torch_mlir.ir")
    from fuseflow.samml.mlir import from_mlir, to_mlir

    graph = resident(graph)
    text = to_mlir(graph)
    assert from_mlir(text) == graph
    name = graph.inputs[0]
    with pytest.raises(GraphError, match=f"names the tensor `{name}x`, which is not declared") as caught:
        from_mlir(text.replace(f'"samml.resident"() {{tensor = "{name}"}}', f'"samml.resident"() {{tensor = "{name}x"}}'))
    assert "did you mean" in caught.value.hint


@pytest.mark.parametrize(
    "words", ["csr resident", "csr f64 resident", "csr f64 tile 2x3 fill -inf resident", "csr i4 fill 1 resident"]
)
def test_the_word_stands_at_the_end_of_a_line(words: str) -> None:
    text = f"graph g\ntensor A[4, 5]  {words}\n\nroot = root()\n"
    (tensor,) = parse(text).tensors
    assert tensor.resident and show(parse(text)) == text
    assert not parse(text.replace(" resident", "")).tensors[0].resident


@pytest.mark.parametrize("words", ["resident csr", "csr resident f64", "csr residen", "csr resident resident"])
def test_the_word_in_another_place_is_refused(words: str) -> None:
    with pytest.raises(GraphError):
        parse(f"graph g\ntensor A[4, 5]  {words}\n\nroot = root()\n")
