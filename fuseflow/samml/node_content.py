"""Keys of a node without some of its names: nodes with equal keys compute the same, cost the same, or are equal up to names."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from fuseflow.samml.node import Node, TensorUser
from fuseflow.samml.stream_tensor_types import Port

N = TypeVar("N", bound=Node)


def content(node: Node) -> Hashable:
    """Return a key of all of a node but its name. Two nodes with equal contents compute the same streams."""
    return _key(node, ("name",))


def work(node: Node) -> Hashable:
    """Return a key of all of a node but its name and its inputs. Two nodes with equal work compute the same from equal
    streams."""
    return _key(node, ("name", "inputs"))


def settings(node: Node) -> Hashable:
    """Return a key of all of a node but its name, the names of its inputs, and the name of its tensor."""
    return _key(node, ("name", "inputs", "tensor"))


def with_names(node: N, name: str, inputs: tuple[Port, ...], tensor: str = "") -> N:
    """Return a node under another name, with other inputs, and with another `tensor` if it uses one."""
    primitive: Any = type(node)
    own = [getattr(node, field) for field in _fields(primitive, ("name", "inputs", "tensor"))]
    renamed: N = primitive(name, inputs, tensor, *own) if isinstance(node, TensorUser) else primitive(name, inputs, *own)
    return renamed


def _key(node: Node, left_out: tuple[str, ...]) -> Hashable:
    primitive: Any = type(node)
    return _reader(primitive, left_out)(node)


@cache
def _reader(primitive: Any, left_out: tuple[str, ...]) -> Callable[[Node], Hashable]:
    """Return the function that reads the class of a primitive, and its fields."""
    return attrgetter("__class__", *_fields(primitive, left_out))


@cache
def _fields(primitive: Any, left_out: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(primitive) if f.name not in left_out)
