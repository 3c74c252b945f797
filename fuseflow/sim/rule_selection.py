"""The choice of rules at a memory that takes time, as both simulators make it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from fuseflow.memory.buffer_assignment import early_readers, preloaded_readers, sequential_readers
from fuseflow.memory.memory_interface import MOVED, Controller
from fuseflow.samml import nodes as n
from fuseflow.tensors import Tensor

Parts = TypeVar("Parts")
Rules: TypeAlias = Mapping[type[n.Node], Callable[[Any, Any], Parts]]


class RemoteRules(ABC, Generic[Parts]):
    """The rules of a graph's nodes at the memory of a controller. `places` has the addresses of arrays. The other fields name nodes:
    `sequential` those that read their arrays from the first element to the last, `preloaded` those that read a preloaded tensor in
    another way, and `early` those that wait for what is loaded into the scratchpad."""

    def __init__(self, controller: Controller, graph: n.Graph, tensors: Mapping[str, Tensor]) -> None:
        self.controller, self.places = controller, controller.lay_out(graph, tensors)
        self.sequential, self.preloaded, self.early = sequential_readers(graph), preloaded_readers(graph), early_readers(graph)

    def rules(self, local: Rules[Parts]) -> dict[type[n.Node], Callable[[Any, Any], Parts]]:
        """Return the rules `local`, except for nodes whose data are at the memory. The data of a level that is not stored, and of a
        resident tensor, are not there."""
        remote: Rules[Parts] = {
            n.Scan: self.scan,
            n.Locate: self.locate,
            n.Load: self.load,
            n.WriteLevel: self.write_level,
            n.WriteValues: self.write_values,
            n.WriteLaneValues: self.write_values,
        }
        rules: dict[type[n.Node], Callable[[Any, Any], Parts]] = dict(local)
        rules |= {kind: partial(_rule, local[kind], rule) for kind, rule in remote.items()}
        if not MOVED.keys().isdisjoint(self.places):
            rules[n.Root] = partial(self.root, local[n.Root])
        return rules

    @abstractmethod
    def root(self, local: Callable[[Any, Any], Parts], node: n.Root, context: Any) -> Parts:
        """Return the parts of a root: those that move lines between the scratchpad and the memory, and its own. That waits until
        everything is loaded that the graph reads in the scratchpad."""

    @abstractmethod
    def scan(self, node: n.Scan, context: Any) -> Parts:
        """Return the parts of a scan of a stored level."""

    @abstractmethod
    def locate(self, node: n.Locate, context: Any) -> Parts:
        """Return the parts of a locate in a stored level. They request the elements that hold a coordinate, and emit its reference once
        these have come. If the locate keeps its level, they request the whole level first, and nothing after that."""

    @abstractmethod
    def load(self, node: n.Load, context: Any) -> Parts:
        """Return the parts of a load, which requests the value at every reference."""

    @abstractmethod
    def write_level(self, node: n.WriteLevel, context: Any) -> Parts:
        """Return the parts of a writer of a stored level."""

    @abstractmethod
    def write_values(self, node: n.WriteValues, context: Any) -> Parts:
        """Return the parts of a writer of values, all or those of a lane."""


def _rule(local: Callable[[Any, Any], Parts], remote: Callable[[Any, Any], Parts], node: Any, context: Any) -> Parts:
    asks = node.asks_memory(context.declared)
    if isinstance(node, n.Scan | n.WriteLevel):
        asks = asks and context.level(node).stored
    return (remote if asks else local)(node, context)
