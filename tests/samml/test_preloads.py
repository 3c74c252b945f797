"""Preloaded tensors in every written form of a graph."""

from __future__ import annotations

from dataclasses import replace

import preloads
import pytest

from fuseflow.errors import GraphError
from fuseflow.samml import nodes as n
from fuseflow.samml.protobuf import compatibility, from_proto, from_text, to_proto, to_text
from fuseflow.samml.text import parse, show


def preloaded(graph: n.Graph) -> n.Graph:
    """The graph with all dense inputs preloaded, each by another number of ports."""
    ports = {name: k for k, name in enumerate(preloads.preloadable(graph), start=1)}
    return replace(graph, tensors=tuple(replace(t, preload=ports.get(t.name, 0)) for t in graph.tensors))


def test_every_form_says_which_tensors_are_preloaded(graph: n.Graph) -> None:
    graph = preloaded(graph)
    assert parse(show(graph)) == graph
    assert from_proto(to_proto(graph)) == from_text(to_text(graph)) == graph
    names = [tensor.name for tensor in graph.tensors if tensor.preload]
    warnings = [f"`{name}`: it is preloaded: other readers read it from memory wherever they need it" for name in names]
    assert set(warnings) <= set(compatibility(graph))


def test_the_mlir_form(graph: n.Graph) -> None:
    pytest.importorskip("torch_mlir.ir")
    from fuseflow.samml.mlir import from_mlir, to_mlir

    graph = preloaded(graph)
    text = to_mlir(graph)
    assert from_mlir(text) == graph
    for tensor in graph.tensors:
        operation = f'"samml.preload"() {{ports = {tensor.preload} : i64, tensor = "{tensor.name}"}}'
        assert (operation in text) == bool(tensor.preload)
        if tensor.preload:
            with pytest.raises(GraphError, match=f"names the tensor `{tensor.name}x`, which is not declared"):
                from_mlir(text.replace(operation, operation.replace(f'"{tensor.name}"', f'"{tensor.name}x"')))


@pytest.mark.parametrize("words", ["dense preload 1", "dense f64 tile 2x3 fill -inf preload 16"])
def test_the_ports_stand_at_the_end_of_a_line(words: str) -> None:
    text = f"graph g\ntensor A[4, 5]  {words}\n\nroot = root()\n"
    (tensor,) = parse(text).tensors
    assert tensor.preload and show(parse(text)) == text


@pytest.mark.parametrize(
    "words", ["preload 1 dense", "dense preload", "dense preload -1", "dense preload 1KB", "dense preload 1 preload 2"]
)
def test_other_words_are_refused(words: str) -> None:
    with pytest.raises(GraphError):
        parse(f"graph g\ntensor A[4, 5]  {words}\n\nroot = root()\n")
