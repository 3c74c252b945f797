"""The resources of a graph: one number for each component of the hardware."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of a graph. A region has the whole accelerator while it runs, so the resources of regions do not add up.

    `mul`, `add` and `special` are lanes of floating-point arithmetic: multipliers, adders (they subtract and compare, too), and
    units for division, roots and transcendental functions. `port` is the number of ports of the memory, one for each array that a
    node reads or writes. `stream` is the number of nodes without arithmetic. `fifo` is the bytes of all FIFOs, or None if a FIFO
    is unbounded. `workspace` is the bytes that nodes hold back, and `buffer` the bytes of reuse buffers. `area` is the area of
    the circuit in gate equivalents, from the table of areas of units, or None if a FIFO is unbounded.

    `fifo_grows` says that a run may deepen FIFOs: `fifo` and `area` are then lower bounds. `workspace_bound` says that no run
    counted the entries that are held back: `workspace` is then an upper bound.
    """

    mul: int = 0
    add: int = 0
    special: int = 0
    port: int = 0
    stream: int = 0
    fifo: int | None = 0
    workspace: int = 0
    buffer: int = 0
    area: int | None = 0
    fifo_grows: bool = False
    workspace_bound: bool = False

    @classmethod
    def most_of(cls, regions: Iterable[Resources]) -> Resources:
        """Return the most of each component over regions that run one after the other."""
        regions = tuple(regions)
        amounts: dict[str, list[Any]] = {name: [getattr(region, name) for region in regions] for name in COMPONENTS}
        most: dict[str, Any] = {name: None if None in each else max(each, default=0) for name, each in amounts.items()}
        return cls(
            **most,
            fifo_grows=any(region.fifo_grows for region in regions),
            workspace_bound=any(region.workspace_bound for region in regions),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the components as a JSON object, with `fifo_grows` and `workspace_bound` where they are set."""
        return {name: value for name, value in asdict(self).items() if name in COMPONENTS or value}


COMPONENTS: tuple[str, ...] = tuple(field.name for field in fields(Resources) if field.type != "bool")
"""The names of the components, as budgets and tables have them."""
