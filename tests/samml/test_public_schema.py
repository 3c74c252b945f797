"""Our bytes against a description of the public schema that no code of ours was made from, by a decoder of the wire format of its own.

`tests/data/public_schema.txt` lists every field of the public schema. Fields from 100 on are our extensions, and so are operations from
200 on; the decoder skips them, as the public reader does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dataflow
import pytest
import random_graphs

import fuseflow as ff
from fuseflow.samml import tortilla_pb2 as pb
from fuseflow.samml.protobuf import from_proto, to_proto
from fuseflow.samml.text import parse

ROOT = Path(__file__).parents[2]
FIRST_EXTENSION = 100


class Field(NamedTuple):
    name: str
    type: str
    repeated: bool


def schema() -> dict[tuple[str, int], Field]:
    fields = {}
    for line in (ROOT / "tests/data/public_schema.txt").read_text().splitlines()[1:]:
        message, number, name, *repeated, kind = line.split(" ")
        fields[message, int(number)] = Field(name, kind, repeated == ["repeated"])
    return fields


SCHEMA = schema()
WIRE_TYPES = {"uint64": 0, "bool": 0, "enum": 0, "double": 1, "string": 2}


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def wire(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """The fields of a message: number, wire type, and number or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value: Any
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 in (1, 2), f"wire type {key & 7}"
            size, at = varint(data, at) if key & 7 == 2 else (8, at)
            value, at = data[at : at + size], at + size
        yield key >> 3, key & 7, value
    assert at == len(data)


def check(message: str, data: bytes, counts: dict[str, int]) -> None:
    """Every field of the message, and of those in it, is a field of the public schema with its wire type, or an extension."""
    for number, wire_type, value in wire(data):
        if number >= FIRST_EXTENSION:
            continue
        field = SCHEMA.get((message, number))
        assert field is not None, f"{message} has no field {number}"
        where = f"{message}.{field.name}"
        packed = field.repeated and field.type == "uint64"
        expected = 2 if packed else WIRE_TYPES.get(field.type, 2)
        assert wire_type == expected, f"{where} is a {field.type}, on the wire it has type {wire_type}"
        counts[where] = counts.get(where, 0) + 1
        if field.type == "string":
            value.decode("utf-8")
        elif wire_type == 2 and not packed:
            check(field.type, value, counts)


def checked(data: bytes) -> dict[str, int]:
    counts: dict[str, int] = {}
    check("ComalGraph", data, counts)
    return counts


@pytest.mark.parametrize("name", sorted(dataflow.TEXTS))
def test_kernels(name: str) -> None:
    counts = checked(to_proto(dataflow.graph(name)))
    assert counts["FiberWrite.size"] >= 1 or "ValWrite.tensor" in counts


@pytest.mark.parametrize("granularity", ["unfused", "partial", "full"])
@pytest.mark.parametrize(("model", "data"), [("gcn", "karate"), ("graphsage", "karate"), ("sae", None), ("gpt", None)])
def test_models(model: str, data: str | None, granularity: str) -> None:
    schedule = ff.Schedule.load(ROOT / "schedules" / f"{model}_{granularity}.yaml")
    compiled = ff.compile(ROOT / "models/paper" / f"{model}.py", data=data, options={"small": True}, schedule=schedule)
    for region in compiled.regions:
        assert checked(to_proto(region.graph))["ComalGraph.graph"] == 1


def test_random_graphs() -> None:
    for seed in range(200):
        checked(to_proto(random_graphs.random_case(seed).graph))


GRAPH = """graph copy
tensor a[3]  dense
tensor b[3]  (compressed)
output b
root = root()
a_i = scan(root) a.0
a_val = load(a_i.ref) a
b_i = write(a_i.crd) b.0
b_val = write(a_val) b.vals
"""


def test_a_number_where_the_schema_has_a_string_is_seen() -> None:
    """As `FiberWrite.size` was written once. No public tool reads such a graph; ours does, as its tensors are declared."""
    graph = parse(GRAPH)
    message = pb.ComalGraph.FromString(to_proto(graph))
    (write,) = [op.fiber_write for op in message.graph.operators if op.WhichOneof("op") == "fiber_write"]
    assert write.size == "3"
    write.ClearField("size")
    write.MergeFromString(bytes([9 << 3, 3]))  # field 9, a varint
    old = message.SerializeToString()
    with pytest.raises(AssertionError, match=r"FiberWrite\.size is a string, on the wire it has type 0"):
        checked(old)
    assert from_proto(old) == graph
