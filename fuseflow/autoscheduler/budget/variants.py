"""The variants of a program to search: formats and blocks of its inputs, and orders of its products.

All of them are tried for small programs. Others begin with the schedule of the user, and change one thing after the other: the
format of an input, the order of a chain of products, the blocks of a dimension. A change stays if the program is expected to take
fewer cycles with it. Then everything is tried once more: with blocks, another order of products may be better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf, prod

from fuseflow.autoscheduler.budget.cut_graph import CutGraph
from fuseflow.autoscheduler.budget.deadline import Deadline
from fuseflow.autoscheduler.budget.search import Variant
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.autoscheduler.budget.storage import (
    Blocking,
    blockings,
    input_formats,
    listed_rows,
    other_kinds,
    turned_formats,
)
from fuseflow.cut.costs import prepare_costs
from fuseflow.einsum.association import chain_orders
from fuseflow.einsum.nodes import Program
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.source import Source
from fuseflow.lower.partition import with_associations
from fuseflow.lower.state import LoweringMemo
from fuseflow.machine.machine import Machine
from fuseflow.schedule import Schedule

VariantCost = Callable[[Variant, float], float]
"""A function that returns the cycles that the best program of a variant is expected to take, infinite if they exceed a limit."""
InputFormats = Callable[[Source, Schedule], dict[str, tuple[str, ...]]]
"""A function that returns the formats that inputs may have, by name."""
Change = Callable[[Schedule], Schedule]
"""A change of a schedule, which leaves other entries as they are."""


@dataclass(frozen=True, slots=True)
class VariantFactory:
    """Makes variants of a program on a machine. Regions that were fused for one variant are not fused again for others."""

    source: Source
    machine: Machine
    estimator: Estimator
    published: Schedule
    deadline: Deadline = field(default_factory=Deadline)
    orders: int = SETTINGS.max_orders
    memo: LoweringMemo = field(default_factory=LoweringMemo)

    def __call__(self, schedule: Schedule) -> Variant | None:
        """Return the variant of a schedule. None if one of its operators cannot be lowered alone, or if it has too many."""
        costs = prepare_costs(self.source.program, schedule, self.machine, self.source.tensors, self.estimator)
        if costs is None or not costs.refine(SETTINGS.max_einsums):
            return None
        memo = self.memo.for_other_formats()
        graph = CutGraph.of(costs.ranges, self.source.tensors, self.machine, self.estimator, self.orders, self.deadline, memo)
        return Variant(schedule, graph, self.published)


@dataclass(slots=True)
class VariantSearch:
    """Searches for the best variants of a program. `allow` names what may be changed: `formats`, `reassociate`."""

    factory: VariantFactory
    published: Variant
    allow: frozenset[str]
    cost: VariantCost
    trying: Callable[[str], None] = lambda text: None
    """A function that is called with the variant that comes next, as text."""
    _variants: dict[Schedule, Variant | None] = field(default_factory=dict)
    _costs: dict[Schedule, float] = field(default_factory=dict)

    def best(self) -> tuple[Variant, ...]:
        """Return the variant of the user first, and then the variants that are to be searched in full."""
        self._variants[self.published.base] = self.published
        if self._tries_all:
            for changes in product(*self._steps(input_formats)):
                self._variant(_changed(self.published.base, changes))
            return tuple(variant for variant in self._variants.values() if variant is not None)
        self._descend(self._descent())
        return self._kept()

    def most(self) -> int:
        """Return how many variants are tried at most."""
        if self._tries_all:
            return prod(map(len, self._steps(input_formats)))
        return SETTINGS.variant_rounds * sum(map(len, self._descent()))

    @property
    def _tries_all(self) -> bool:
        """Whether all combinations of changes are few enough."""
        combined = prod(map(len, self._steps(input_formats)))
        return combined <= SETTINGS.max_combined and len(self.published.graph.ranges.units) <= SETTINGS.few_units

    def turned(self, best: Variant) -> Iterator[Variant]:
        """Yield the variants of `best` in which one large compressed input is stored by its other dimension, which other loop
        orders read. They have none of the buffers and preloads that were chosen for `best`."""
        plain = replace(best.base, buffers=self.published.base.buffers, preloads=self.published.base.preloads)
        formats = turned_formats(self.factory.source, self.published.base, best.base) if "formats" in self.allow else ()
        for name, format in formats:
            variant = self._variant(plain.format(name, format))
            if variant is not None:
                yield variant

    def _descend(self, steps: list[list[Change]]) -> None:
        """Choose the best option of each step, with the choices of the other steps as they are, until no choice changes."""
        chosen = [0] * len(steps)
        for _ in range(SETTINGS.variant_rounds):
            before = list(chosen)
            for n, changes in enumerate(steps):

                def cost(place: int, n: int = n) -> float:
                    places = [*chosen[:n], place, *chosen[n + 1 :]]
                    return self._cost(_changed(self.published.base, (step[at] for step, at in zip(steps, places, strict=True))))

                chosen[n] = min(range(len(changes)), key=cost)
            if chosen == before:
                break

    def _descent(self) -> list[list[Change]]:
        """Return the options of each step for a search step by step. In the last step all compressed outer levels may be dense at
        once."""
        rows = listed_rows(self.factory.source, self.published.base) if "formats" in self.allow else {}
        return [*self._steps(other_kinds), *([[_unchanged, _formatted_else(rows)]] if rows else ())]

    def _steps(self, formats_of: InputFormats) -> Iterator[list[Change]]:
        """Yield the options of each step, of which one is chosen. The first option is no change."""
        source, base = self.factory.source, self.published.base
        if "formats" in self.allow:
            for name, formats in formats_of(source, base).items():
                yield [_unchanged, *(_formatted(name, format) for format in formats[1:])]
        if "reassociate" in self.allow and not base.associations:
            for name, chains in chain_orders(with_associations(source.program, base)).items():
                yield [_unchanged, *(_associated(name, str(chain)) for chain in chains)]
        if "formats" in self.allow:
            for blocking in blockings(source, self.published.graph.ranges.partitioned.program, base):
                yield [_unchanged, _blocked(blocking, source.program)]

    def _kept(self) -> tuple[Variant, ...]:
        """Return the variant of the user, the best ones, and the best one with the formats, and with the products, of the
        user."""
        ranked = sorted((s for s in self._costs if self._costs[s] < inf), key=lambda s: (self._costs[s], s.to_yaml()))
        variants = [variant for schedule in ranked if (variant := self._variants[schedule]) is not None]
        kept = [self.published, *variants[: SETTINGS.kept_variants]]
        kept += [v for v in variants if not v.has_formats][:1] + [v for v in variants if not v.has_association][:1]
        return tuple(dict.fromkeys(kept))

    def _cost(self, schedule: Schedule) -> float:
        if schedule not in self._costs:
            variant = self._variant(schedule)
            least = min(self._costs.values(), default=inf)
            self._costs[schedule] = inf if variant is None or self.factory.deadline.passed else self.cost(variant, least)
        return self._costs[schedule]

    def _variant(self, schedule: Schedule) -> Variant | None:
        if schedule not in self._variants and not self.factory.deadline.passed:
            self.trying(_changes_text(self.published.base, schedule))
            try:
                self._variants[schedule] = self.factory(schedule)
            except FuseFlowError:  # an operator cannot be lowered in these formats
                self._variants[schedule] = None
        return self._variants.get(schedule)


def _unchanged(schedule: Schedule) -> Schedule:
    return schedule


def _formatted(name: str, format: str) -> Change:
    return lambda schedule: schedule.format(name, format)


def _formatted_else(formats: Mapping[str, str]) -> Change:
    """Return the change that sets these formats of tensors to which a schedule gives none."""
    return lambda schedule: replace(schedule, formats=tuple({**formats, **dict(schedule.formats)}.items()))


def _associated(name: str, chain: str) -> Change:
    return lambda schedule: schedule.associate(name, chain)


def _blocked(blocking: Blocking, program: Program) -> Change:
    return lambda schedule: blocking.scheduled(schedule, program)


def _changed(schedule: Schedule, changes: Iterable[Change]) -> Schedule:
    for change in changes:
        schedule = change(schedule)
    return schedule


def _changes_text(before: Schedule, schedule: Schedule) -> str:
    """Return the differences between schedules as a line of progress."""
    return ", ".join(variant_changes(before, schedule)) or "as it is"


def variant_changes(before: Schedule, schedule: Schedule) -> list[str]:
    """Return the formats, blocks, products, reuse buffers and preloads of a schedule that another one does not have."""
    formats = [f"{name} {text}" for name, text in schedule.formats if (name, text) not in before.formats]
    blocks = [f"{name} {'x'.join(map(str, sizes))}" for name, sizes in schedule.blocks if (name, sizes) not in before.blocks]
    products = [f"{name} = {chain}" for name, chain in schedule.associations if (name, chain) not in before.associations]
    buffers = [f"buffer of {name}" for name, size in schedule.buffers if (name, size) not in before.buffers]
    preloads = [f"preload of {name}" for name, ports in schedule.preloads if (name, ports) not in before.preloads]
    return [*formats, *blocks, *products, *buffers, *preloads]
