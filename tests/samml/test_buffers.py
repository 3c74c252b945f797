"""Tensors with reuse buffers in every written form of a graph."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fuseflow.errors import GraphError
from fuseflow.samml import nodes as n
from fuseflow.samml.protobuf import compatibility, from_proto, from_text, to_proto, to_text
from fuseflow.samml.text import parse, show


def buffered(graph: n.Graph) -> n.Graph:
    """The graph with a buffer for every input, each of another size."""
    sizes = {name: 64 << k for k, name in enumerate(graph.inputs)}
    return replace(graph, tensors=tuple(replace(t, buffer=sizes.get(t.name, 0)) for t in graph.tensors))


def test_every_form_says_which_tensors_have_buffers(graph: n.Graph) -> None:
    graph = buffered(graph)
    assert parse(show(graph)) == graph
    assert from_proto(to_proto(graph)) == from_text(to_text(graph)) == graph
    warnings = [f"`{name}`: it has reuse buffers: other readers read every line of it from memory" for name in graph.inputs]
    assert set(warnings) <= set(compatibility(graph))


def test_the_mlir_form(graph: n.Graph) -> None:
    pytest.importorskip("torch_mlir.ir")
    from fuseflow.samml.mlir import from_mlir, to_mlir

    graph = buffered(graph)
    text = to_mlir(graph)
    assert from_mlir(text) == graph
    name = graph.inputs[0]
    operation = f'"samml.buffer"() {{bytes = 64 : i64, tensor = "{name}"}}'
    assert operation in text
    with pytest.raises(GraphError, match=f"names the tensor `{name}x`, which is not declared") as caught:
        from_mlir(text.replace(operation, operation.replace(name, f"{name}x")))
    assert "did you mean" in caught.value.hint


@pytest.mark.parametrize("words", ["csr buffer 64", "csr f64 tile 2x3 fill -inf buffer 1000000"])
def test_the_bytes_stand_at_the_end_of_a_line(words: str) -> None:
    text = f"graph g\ntensor A[4, 5]  {words}\n\nroot = root()\n"
    (tensor,) = parse(text).tensors
    assert tensor.buffer and show(parse(text)) == text


@pytest.mark.parametrize("words", ["buffer 64 csr", "csr buffer", "csr buffer -1", "csr buffer 64KB", "csr buffer 64 buffer 64"])
def test_other_words_are_refused(words: str) -> None:
    with pytest.raises(GraphError):
        parse(f"graph g\ntensor A[4, 5]  {words}\n\nroot = root()\n")
