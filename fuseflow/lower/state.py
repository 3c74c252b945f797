"""The state of a program that is lowered: the tensors that are in memory before the next region runs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from fuseflow.costs import Estimate, TensorStatistics, collect_statistics
from fuseflow.einsum.nodes import TensorType
from fuseflow.fusion.fusion_search import FusionCandidate
from fuseflow.lower.partition import PartitionedProgram
from fuseflow.samml.nodes import Graph
from fuseflow.table import TableNodes
from fuseflow.tensors import Tensor
from fuseflow.tensors.blocks import stored_in


@dataclass(frozen=True, slots=True)
class RegionRequest:
    """A region that is to be lowered: its Einsums, the results that it must write, and the loop order that the user asked for, if any."""

    name: str
    einsums: tuple[str, ...]
    results: tuple[str, ...]
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PricedTable:
    """The nodes of a table that was priced to its end, its cost, and the statistics of the tensors that it writes."""

    nodes: TableNodes
    cost: Estimate
    written_statistics: Mapping[str, TensorStatistics]


@dataclass(frozen=True, slots=True, eq=False)
class Precedent:
    """The outcome of a search for a way to fuse a region, for regions that differ in names alone. `names` are those of the region
    and of its tensors, in an order that these regions share. `nodes` are the nodes of its table, which is `priced` if the search
    priced it under these names, and `graph` is its graph."""

    names: tuple[str, ...]
    candidate: FusionCandidate
    nodes: TableNodes
    graph: Graph
    priced: PricedTable | None = None


@dataclass(slots=True)
class LoweringMemo:
    """Decisions and values that are computed once. The memo only saves time.

    `fusions` has the outcome of the search for a region, by its `region_fusion.fusion_key` and the requested order, and `copies`
    the cost of a copy, by its source and its order. For graphs that are equal up to names, `estimates` has the costs and the
    statistics of their results, and `fiber_fifos` the edges that must hold a whole fiber, by the positions of the nodes.
    """

    fusions: dict[Hashable, Precedent] = field(default_factory=dict)
    copies: dict[tuple[str, tuple[int, ...]], Estimate] = field(default_factory=dict)
    estimates: dict[Hashable, tuple[Estimate, tuple[TensorStatistics, ...]]] = field(default_factory=dict)
    fiber_fifos: dict[Hashable, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    def for_other_formats(self) -> LoweringMemo:
        """Return a memo for the program in other formats. It shares `fusions`, whose keys have the formats of a region."""
        return LoweringMemo(self.fusions)


@dataclass(frozen=True, slots=True)
class LoweringState:
    """The state before a region: the tensors that are in memory then (`stored`), in the formats that they really have, and the
    `statistics` of their levels. `entries` has the number of stored entries of inputs that other tensors are like, where known."""

    partitioned: PartitionedProgram
    stored: Mapping[str, TensorType]
    statistics: Mapping[str, TensorStatistics]
    entries: Mapping[str, int] = field(default_factory=dict)
    memo: LoweringMemo = field(default_factory=LoweringMemo, compare=False, repr=False)

    @property
    def declared(self) -> Mapping[str, TensorType]:
        """The tensors of the program, as they are declared or inferred."""
        return self.partitioned.program.declared

    def after_writing(self, types: Mapping[str, TensorType], statistics: Mapping[str, TensorStatistics]) -> LoweringState:
        """Return the state after memory got these tensors."""
        return replace(self, stored={**self.stored, **types}, statistics={**self.statistics, **statistics})

    def restricted_to(self, names: Iterable[str]) -> LoweringState:
        """Return the state with only these tensors in memory, and those whose places others have."""
        kept = dict.fromkeys([*names, *(t.like for t in self.declared.values() if t.like)])
        return replace(self, stored={n: self.stored[n] for n in kept}, statistics={n: self.statistics[n] for n in kept})

    def stored_values(self, name: str) -> float:
        """Return how many values a tensor stores, as measured or estimated. A result that is not computed yet counts as full."""
        statistics = self.statistics.get(name)
        return statistics.stored if statistics else float(math.prod(self.declared[name].stored_shape))


def initial_state(
    partitioned: PartitionedProgram, tensors: Mapping[str, Tensor], memo: LoweringMemo | None = None
) -> LoweringState:
    """Return the state before the first region. `tensors` (or none) only measure statistics; `memo` is of the same schedule."""
    stored = {t.name: t for t in partitioned.program.inputs}
    roots = {t.like for t in partitioned.program.tensors if t.like in tensors}
    entries = {name: stored_in(tensors[name], format, ()).stored for name in roots if (format := stored[name].format)}
    return LoweringState(partitioned, stored, collect_statistics(stored, tensors), entries, memo or LoweringMemo())
