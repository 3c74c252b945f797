"""Tensors with reuse buffers, resident and preloaded tensors, and tensors in the scratchpad, in every written form of a graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import preloads
import pytest

from fuseflow.errors import GraphError
from fuseflow.samml import nodes as n
from fuseflow.samml.protobuf import compatibility, from_proto, from_text, to_proto, to_text
from fuseflow.samml.text import parse, show


@dataclass(frozen=True)
class Placement:
    """A field of a declaration: its values for the inputs of a graph, what other readers miss, and its operation in MLIR."""

    amounts: Callable[[n.Graph], Mapping[str, int | str]]
    warning: str
    operation: str
    without: int | str = 0


PLACEMENTS = {
    "buffer": Placement(  # for every input, each of another size
        lambda graph: {name: 64 << k for k, name in enumerate(graph.inputs)},
        "it has reuse buffers: other readers read every line of it from memory",
        '"samml.buffer"() {{bytes = {amount} : i64, tensor = "{name}"}}',
    ),
    "resident": Placement(
        lambda graph: dict.fromkeys(graph.inputs, True),
        "it is resident: other readers take it for a tensor in memory",
        '"samml.resident"() {{tensor = "{name}"}}',
        without=False,
    ),
    "preload": Placement(  # for all dense inputs, each by another number of ports
        lambda graph: {name: k for k, name in enumerate(preloads.preloadable(graph), start=1)},
        "it is preloaded: other readers read it from memory wherever they need it",
        '"samml.preload"() {{ports = {amount} : i64, tensor = "{name}"}}',
    ),
    "scratchpad": Placement(  # for all inputs; results can lie there, too
        lambda graph: dict.fromkeys(graph.inputs, "moved"),
        "it lies in the scratchpad: other readers take it for a tensor in memory",
        '"samml.scratchpad"() {{tensor = "{name}", transfer = "{amount}"}}',
        without="",
    ),
}
EACH = pytest.mark.parametrize("field", PLACEMENTS)


def placed(graph: n.Graph, field: str) -> n.Graph:
    placement = PLACEMENTS[field]
    amounts = placement.amounts(graph)
    tensors = [replace(t, **{field: amounts.get(t.name, placement.without)}) for t in graph.tensors]  # type: ignore[arg-type]
    return replace(graph, tensors=tuple(tensors))


@EACH
def test_every_form_has_the_placements(field: str, graph: n.Graph) -> None:
    graph = placed(graph, field)
    assert parse(show(graph)) == graph
    assert from_proto(to_proto(graph)) == from_text(to_text(graph)) == graph
    warnings = {f"`{t.name}`: {PLACEMENTS[field].warning}" for t in graph.tensors if getattr(t, field)}
    assert warnings <= set(compatibility(graph))


@EACH
def test_the_mlir_form(field: str, graph: n.Graph) -> None:
    pytest.importorskip("torch_mlir.ir")
    from fuseflow.samml.mlir import from_mlir, to_mlir

    graph = placed(graph, field)
    text = to_mlir(graph)
    assert from_mlir(text) == graph
    for tensor in graph.tensors:
        amount, name = getattr(tensor, field), tensor.name
        operation = PLACEMENTS[field].operation.format(amount=amount, name=name)
        assert (operation in text) == bool(amount)
        if amount:
            with pytest.raises(GraphError, match=f"names the tensor `{name}x`, which is not declared") as caught:
                from_mlir(text.replace(operation, operation.replace(f'"{name}"', f'"{name}x"')))
            assert "did you mean" in caught.value.hint


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("buffer", "csr buffer 64"),
        ("buffer", "csr f64 tile 2x3 fill -inf buffer 1000000"),
        ("resident", "csr resident"),
        ("resident", "csr f64 resident"),
        ("resident", "csr f64 tile 2x3 fill -inf resident"),
        ("resident", "csr i4 fill 1 resident"),
        ("scratchpad", "csr scratchpad kept"),
        ("scratchpad", "csr f64 tile 2x3 fill -inf scratchpad moved"),
        ("preload", "dense preload 1"),
        ("preload", "dense f64 tile 2x3 fill -inf preload 16"),
    ],
)
def test_the_words_stand_at_the_end_of_a_line(field: str, words: str) -> None:
    text = f"graph g\ntensor A[4, 5]  {words}\n\nroot = root()\n"
    (tensor,) = parse(text).tensors
    assert getattr(tensor, field) and show(parse(text)) == text
    assert not getattr(parse(re.sub(f" {field}( [0-9]+| kept| moved)?", "", text)).tensors[0], field)


REFUSED = (
    *("buffer 64 csr", "csr buffer", "csr buffer -1", "csr buffer 64KB", "csr buffer 64 buffer 64"),
    *("resident csr", "csr resident f64", "csr residen", "csr resident resident"),
    *("scratchpad kept dense", "dense scratchpad", "dense scratchpad 1", "dense scratchpad kept moved"),
    *("preload 1 dense", "dense preload", "dense preload -1", "dense preload 1KB", "dense preload 1 preload 2"),
)


@pytest.mark.parametrize("words", REFUSED)
def test_other_words_are_refused(words: str) -> None:
    with pytest.raises(GraphError):
        parse(f"graph g\ntensor A[4, 5]  {words}\n\nroot = root()\n")
