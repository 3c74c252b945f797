"""What limits a region, said in one way: on the console, and on every part of a page.

The critical path says it where one is known. Without one, the busiest node and the memory are compared with the cycles of the region.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NEAR_ROOFLINE = 1.25
"""The factor of its roofline below which the roofline limits a region whose critical path is not known."""
WORDS = {"work": "work", "latency": "latency", "full": "a full FIFO", "memory": "waits for the memory"}
"""The kinds of steps of a critical path, in the few words of a table."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What limits a region: a sentence without its full stop, few words for a table, and the node, if it is one node."""

    sentence: str
    words: str
    node: str | None = None


def region_limit(region: Mapping[str, Any], explained: Mapping[str, Any] | None) -> Limit | None:
    """Return what limits a region of a result, given what `explain cycles` says of it; None for a region without nodes."""
    if explained is not None:
        node = explained.get("limits") or _longest_on_path(explained)
        kind = WORDS.get(explained.get("limit_kind", ""), "")
        return Limit(explained["bottleneck"], ", ".join(part for part in (node, kind) if part), node)
    nodes, cycles, roof = region["statistics"]["nodes"], region["cycles"], region["roofline"]
    if not nodes:
        return None
    busiest = max(nodes, key=lambda node: node["occupied"])
    name, share = busiest["name"], 100 * busiest["occupied"] / cycles if cycles else 0.0
    is_near = cycles <= NEAR_ROOFLINE * roof["bound"]
    if is_near and roof["bound"] == roof["compute"]:
        sentence = (
            f"limited by the work of `{name}` ({busiest['op']}), its busiest node, which works in {share:.0f} % of the cycles"
        )
        return Limit(sentence, f"{name}, work", name)
    if is_near:
        share = 100 * roof["memory"] / cycles
        return Limit(
            f"limited by the bandwidth of the memory: moving the bytes takes {share:.0f} % of the cycles at least", "bandwidth"
        )
    sentence = f"limited by waits: `{name}` ({busiest['op']}), its busiest node, works in {share:.0f} % of the cycles; "
    return Limit(f"{sentence}`--explain` says what is waited for", "waits")


def _longest_on_path(explained: Mapping[str, Any]) -> str | None:
    """Return the node that is on a critical path longest. Explanations of earlier versions do not name what limits a region."""
    cycles: dict[str, int] = {}
    for step in explained["path"]:
        cycles[step["node"]] = cycles.get(step["node"], 0) + step["cycles"]
    return max(cycles, key=lambda node: cycles[node]) if cycles else None
