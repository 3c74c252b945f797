"""Keys of a node without some of its names: nodes with equal keys compute the same, cost the same, or are equal up to names."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from fuseflow.samml.declarations import Port
from fuseflow.samml.node import Node, TensorUser

N = TypeVar("N", bound=Node)


def content(node: Node) -> Hashable:
    """Return a key of all of a node but its name. Two nodes with equal contents compute the same streams."""
    primitive: Any = type(node)
    return _content_of(primitive)(node)


def work(node: Node) -> Hashable:
    """Return a key of all of a node but its name and its inputs. Two nodes with equal work compute the same from equal
    streams."""
    primitive: Any = type(node)
    return _work_of(primitive)(node)


def settings(node: Node) -> Hashable:
    """Return a key of all of a node but its name, the names of its inputs, and the name of its tensor."""
    primitive: Any = type(node)
    read = _settings_of(primitive)
    return primitive, None if read is None else read(node)


def with_names(node: N, name: str, inputs: tuple[Port, ...], tensor: str = "") -> N:
    """Return a node under another name, with other inputs, and with another `tensor` if it uses one."""
    primitive: Any = type(node)
    own = [getattr(node, field) for field in _unnamed_fields(primitive)]
    renamed: N = primitive(name, inputs, tensor, *own) if isinstance(node, TensorUser) else primitive(name, inputs, *own)
    return renamed


@cache
def _content_of(primitive: Any) -> Callable[[Node], Hashable]:
    """Return the function that reads the class of a primitive, and all its fields but the name."""
    return attrgetter("__class__", *(f.name for f in fields(primitive) if f.name != "name"))


@cache
def _work_of(primitive: Any) -> Callable[[Node], Hashable]:
    """Return the function that reads the class of a primitive, and all its fields but the name and the inputs."""
    return attrgetter("__class__", *(f.name for f in fields(primitive) if f.name not in ("name", "inputs")))


@cache
def _settings_of(primitive: Any) -> Callable[[Node], Any] | None:
    """Return the function that reads the fields of a primitive that hold no names, or None if there are none."""
    names = _unnamed_fields(primitive)
    return attrgetter(*names) if names else None


@cache
def _unnamed_fields(primitive: Any) -> tuple[str, ...]:
    """Return the fields of a primitive that hold no names."""
    return tuple(f.name for f in fields(primitive) if f.name not in ("name", "inputs", "tensor"))
