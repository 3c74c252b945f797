"""Every primitive declares its facts, and every table that has a row for each primitive is complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import pytest
from random_graphs import random_case

from fuseflow.errors import GraphError
from fuseflow.samml import nodes as n
from fuseflow.samml import proto_messages, proto_reader
from fuseflow.samml import tortilla_pb2 as pb
from fuseflow.samml.node import Area, AttributeType, Grain, Role, require_entry, with_names
from fuseflow.samml.stream_tensor_types import StreamPattern, stream_patterns
from fuseflow.sim.engine import kernels
from fuseflow.sim.engine.kernels import comal as comal_kernels
from fuseflow.sim.reference import comal as comal_rules
from fuseflow.sim.reference import execute

COMPLETE: Mapping[str, Mapping[type[n.Node], object]] = {
    "rules of the reference simulator (sim/reference)": execute.RULES,
    "kernels (sim/engine/kernels)": kernels.RULES,
}


@pytest.mark.parametrize("table", COMPLETE)
def test_tables_have_every_primitive(table: str) -> None:
    missing = [kind.__name__ for kind in n.NODE_TYPES if kind not in COMPLETE[table]]
    unknown = [kind.__name__ for kind in COMPLETE[table] if kind not in n.NODE_TYPES]
    assert (missing, unknown) == ([], []), table


def test_the_rules_of_comal_replace_others() -> None:
    assert comal_kernels.COMAL_RULES.keys() <= kernels.RULES.keys()
    assert comal_rules.RULES.keys() <= execute.RULES.keys()


def test_every_message_is_read() -> None:
    operations = {field.name.removesuffix("_ext") for field in pb.Operation.DESCRIPTOR.oneofs_by_name["op"].fields}
    other = {*proto_reader.FOLDED_OPERATIONS, *proto_reader.UNSUPPORTED, "primitive"}
    assert operations - other == proto_messages.BY_OPERATION.keys()


@pytest.mark.parametrize("kind", n.NODE_TYPES, ids=lambda kind: kind.__name__)
def test_facts_are_declared(kind: type[n.Node]) -> None:
    assert kind.op and kind.streams
    assert kind.role in get_args(Role)
    assert kind.grain in get_args(Grain)
    assert isinstance(kind.area, Area)
    for fact in ("carries", "check"):
        assert getattr(kind, fact) is not getattr(n.Node, fact), f"{kind.__name__} does not declare `{fact}`"
    assert all(attribute.type in get_args(AttributeType) for attribute in n.ATTRIBUTES[kind])


def test_a_primitive_without_facts_says_so() -> None:
    class Bare(n.Node):
        op = "bare"

    for fact in (Bare("x", ()).takes, Bare("x", ()).carries, lambda: Bare("x", ()).outputs(())):
        with pytest.raises(NotImplementedError, match="primitive `bare` does not declare"):
            fact()
    with pytest.raises(GraphError, match="the primitive `bare` has no kernel"):
        require_entry(kernels.RULES, Bare, "kernel")


@pytest.mark.parametrize("seed", range(100))
def test_streams_are_as_declared(seed: int) -> None:
    """Number, kinds and depths; the streams of a join stand by side, and are declared by kind."""
    graph = random_case(seed, "small", select=seed % 2 == 1).graph
    types = graph.types()
    for node in graph.nodes:
        declared = stream_patterns(node.streams)
        if isinstance(node, n.Join):
            assert len(node.sides()) == sum(types[port].kind == "crd" for port in node.inputs)
            continue
        known: dict[str, n.StreamType] = {}
        bases: dict[str, int] = {}
        ports = node.ports
        for patterns, streams in zip(declared, ([types[p] for p in node.inputs], [types[p] for p in ports]), strict=True):
            for pattern, stream in zip(spread(patterns, len(streams)), streams, strict=True):
                if pattern.kinds in known:
                    assert stream == known[pattern.kinds], node
                else:
                    assert pattern.kinds == "any" or stream.kind in pattern.kinds.rstrip("+").split(" or "), node
                if pattern.depth:
                    base, _, offset = pattern.depth.replace("-", "+-").partition("+")
                    at = stream.depth - int(offset or "0")
                    assert bases.setdefault(base, int(base) if base.isdecimal() else at) == at, node
                if patterns is declared[0] and pattern.name not in ("crd", "ref", "val"):
                    known[pattern.name] = stream


def spread(patterns: Sequence[StreamPattern], count: int) -> list[StreamPattern]:
    """The patterns of so many streams: one of them, at most, is that of several or of none."""
    single = sum(not pattern.number for pattern in patterns)
    return [pattern for pattern in patterns for _ in range(count - single if pattern.number else 1)]


@pytest.mark.parametrize("seed", range(20))
def test_a_node_under_other_names_is_the_same_otherwise(seed: int) -> None:
    for node in random_case(seed, "small").graph.nodes:
        inputs = tuple(n.Port(f"{port.node}.new", port.output) for port in node.inputs)
        names: dict[str, Any] = {"tensor": "T"} if isinstance(node, n.TensorUser) else {}
        assert with_names(node, "new", inputs, "T") == replace(node, name="new", inputs=inputs, **names)


@pytest.mark.parametrize("seed", range(100))
def test_what_is_carried_is_of_one_kind(seed: int) -> None:
    """What a primitive says that it passes on is what its outputs are: values stay values, and tiles keep their shape."""
    graph = random_case(seed, "small").graph
    types = graph.types()
    for node in graph.nodes:
        inputs = [types[port] for port in node.inputs]
        assert len(node.takes()) == len(inputs), node
        assert len(node.carries()) == len(node.port_names()), node
        for k, carried in enumerate(node.carries()):
            output = types[n.Port(node.name, k)]
            for j in carried:
                assert (output.kind == "val") == (inputs[j].kind == "val"), node
                assert output.tile == inputs[j].tile, node
