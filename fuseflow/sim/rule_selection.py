"""The choice of rules at a memory that takes time, as both simulators make it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from fuseflow.samml import nodes as n

Parts = TypeVar("Parts")
Rules: TypeAlias = Mapping[type[n.Node], Callable[[Any, Any], Parts]]


def remote_rules(local: Rules[Parts], remote: Rules[Parts]) -> dict[type[n.Node], Callable[[Any, Any], Parts]]:
    """Return the rules `local`, except for nodes whose data are at the memory: these have the rules `remote`. The data of a level
    that is not stored, and of a resident tensor, are not there."""

    def choice(kind: type[n.Node]) -> Callable[[Any, Any], Parts]:
        def rule(node: Any, context: Any) -> Parts:
            asks = node.asks_memory(context.declared)
            if isinstance(node, n.Scan | n.WriteLevel):
                asks = asks and context.level(node).stored
            return (remote if asks else local)[kind](node, context)

        return rule

    return {**local, **{kind: choice(kind) for kind in remote}}
