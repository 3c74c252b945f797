"""The variants of a program to search: formats and blocks of its inputs, and orders of its products.

Formats and blocks do not change the results of a program, but which zeros it multiplies, and how many values one operator takes at
once. A dimension is in blocks together with all dimensions that its index runs over: dense ones, or sparse ones whose entries come in
blocks.

All variants are tried for small programs. Others begin with the schedule of the user, and change one thing after the other: the
format of an input, the order of a chain of products, the blocks of a dimension. A change stays if the program is expected to take
fewer cycles with it. Then everything is tried once more: with blocks, another order of products may be better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from math import inf, prod
from operator import methodcaller

import numpy as np

from fuseflow.autoscheduler.budget.cut_graph import CutGraph
from fuseflow.autoscheduler.budget.path_search import Variant
from fuseflow.autoscheduler.budget.request import Deadline
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.costs.statistics import stored_statistics
from fuseflow.cut.costs import PartCosts, ProgramRanges, RegionEstimates, prepare_costs
from fuseflow.einsum.association import chain_orders
from fuseflow.einsum.blocks import BlockAxis, block_axes
from fuseflow.einsum.nodes import Program
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.imported_program import Source
from fuseflow.lower.partition import with_associations
from fuseflow.lower.state import LoweringMemo
from fuseflow.machine.machine import Machine
from fuseflow.schedule import Schedule
from fuseflow.tensors import Tensor

MATRIX_FORMATS = ("dense", "csr", "csc", "dcsr")
"""The formats that an input of two dimensions may have."""
DENSE_ROWS = {"dcsr": "csr", "dcsc": "csc"}
"""Formats of matrices whose outer level is compressed, each with the same format with a dense outer level, by short names."""
BY_COLUMNS = ("csc", "dcsc")
"""The formats of matrices whose outer level is that of the columns."""


VariantCost = Callable[[Variant, float], float]
"""A function that returns the cycles that the best program of a variant is expected to take, infinite if they exceed a limit."""
InputFormats = Callable[[Source, Schedule], dict[str, tuple[str, ...]]]
"""A function that returns the formats that inputs may have, by name."""
Change = Callable[[Schedule], Schedule]
"""A change of a schedule, which leaves other entries as they are."""


@dataclass(frozen=True, slots=True)
class Blocking:
    """Blocks of `size` values along the dimensions of `axis`, and the inputs that are stored dense for that."""

    axis: BlockAxis
    size: int
    dense: tuple[str, ...]

    def scheduled(self, schedule: Schedule, program: Program) -> Schedule:
        """Return the schedule with these blocks added, or as it is if a tensor would be in blocks along too many dimensions."""
        blocks: dict[str, list[int]] = {name: list(sizes) for name, sizes in schedule.blocks}
        for name, position in self.axis.dimensions:
            sizes = blocks.setdefault(name, [1] * len(program.declared[name].shape))
            sizes[position] = self.size
        if any(sum(size > 1 for size in sizes) > SETTINGS.most_blocked for sizes in blocks.values()):
            return schedule
        for name in self.dense:
            schedule = schedule.format(name, "dense")
        for name, sizes in blocks.items():
            schedule = schedule.block(name, *sizes)
        return schedule


def other_kinds(source: Source, base: Schedule) -> dict[str, tuple[str, ...]]:
    """Return, as `input_formats` does, few formats of each input: "", dense for a compressed one or compressed by rows for a
    dense one, and for a large compressed input the format that begins with its other dimension, which other loop orders read."""
    kinds = {}
    for name, (own, *others) in input_formats(source, base).items():
        wanted = ["dense" if _is_sparse(source, name) else "csr"]
        if _is_sparse(source, name) and _is_large(source, name):
            format = source.program.declared[name].format
            wanted.append("csr" if format is not None and format.order == (1, 0) else "csc")
        kinds[name] = (own, *(format for format in others if format in wanted))
    return kinds


def turned_formats(source: Source, base: Schedule, current: Schedule) -> Iterator[tuple[str, str]]:
    """Yield, for each large compressed input, the format by rows or by columns that it does not have under the schedule
    `current`. Inputs that the schedule `base` names stay as they are."""
    now = dict(current.formats)
    for name, formats in input_formats(source, base).items():
        declared = source.program.declared[name].format
        if len(formats) == 1 or declared is None or not _is_sparse(source, name) or not _is_large(source, name):
            continue
        is_by_columns = (now.get(name) or declared.short()) in BY_COLUMNS
        yield name, "csr" if is_by_columns else "csc"


def listed_rows(source: Source, base: Schedule) -> dict[str, str]:
    """Return formats with a dense outer level for inputs whose outer level is compressed and stores most of its coordinates. Then
    no array of coordinates is read, and a locate need not keep it. Inputs that the schedule names are left out."""
    decided = {name for name, _ in (*base.formats, *base.blocks)}
    formats = {}
    for declared in source.program.inputs:
        format = declared.format and DENSE_ROWS.get(declared.format.short())
        if format and declared.name not in decided and not declared.block:
            statistics = stored_statistics(source.tensors[declared.name], declared)
            if statistics.fanouts[0] >= SETTINGS.listed_share * statistics.sizes[0]:
                formats[declared.name] = format
    return formats


def input_formats(source: Source, base: Schedule) -> dict[str, tuple[str, ...]]:
    """Return the formats to try of each input of two dimensions, first "" for the format that it has; the largest inputs first.
    Inputs that the schedule names have no other format."""
    program = source.program
    names = [t.name for t in program.inputs if len(t.shape) == 2 and not t.block]
    names.sort(key=lambda name: (-prod(program.declared[name].shape), name))
    return {name: _formats(source, name, base) for name in names}


def _formats(source: Source, name: str, base: Schedule) -> tuple[str, ...]:
    if name in dict(base.formats) or name in dict(base.blocks):
        return ("",)
    share = stored_share(source.tensors[name])
    dense, compressed = MATRIX_FORMATS[:1], MATRIX_FORMATS[1:]
    return ("", *(dense if share >= SETTINGS.dense_share else ()), *(compressed if share <= SETTINGS.sparse_share else ()))


def stored_share(tensor: Tensor) -> float:
    """Return the share of the elements of a tensor that are not zero."""
    return float(np.count_nonzero(tensor.values) / max(1, prod(tensor.shape)))


def blockings(source: Source, program: Program, base: Schedule) -> tuple[Blocking, ...]:
    """Return the blocks to try, one size for each group of dimensions that are in blocks together. `program` is without reshapes.

    If the schedule names the format or the blocks of an input, its dimensions stay as they are.
    """
    decided = {name for name, _ in (*base.formats, *base.blocks)}
    choices = []
    for axis in block_axes(program):
        names = {name for name, _ in axis.dimensions}
        if names & decided or not names <= source.tensors.keys() or any(source.program.declared[n].block for n in names):
            continue
        size = _size(source, axis)
        if size > 1:
            choices.append(
                Blocking(axis, size, tuple(sorted(n for n in names if _is_sparse(source, n) and _may_be_dense(source, n))))
            )
    return tuple(choices)


def _size(source: Source, axis: BlockAxis) -> int:
    """Return the size of blocks along the dimensions of `axis`, 1 if they get none."""
    sparse = [name for name in dict(axis.dimensions) if _is_sparse(source, name) and not _may_be_dense(source, name)]
    large, short = SETTINGS.large_block, SETTINGS.short_block
    if sparse:
        sizes = (size for size in (large, large // 2, short, short // 2) if axis.extent % size == 0)
        return next((size for size in sizes if all(_comes_in_blocks(source, axis, name, size) for name in sparse)), 1)
    return large if axis.extent > large and axis.extent % large == 0 else min(short, axis.extent)


def _comes_in_blocks(source: Source, axis: BlockAxis, name: str, size: int) -> bool:
    """Return whether most elements are stored of the blocks of an input that hold any, for blocks of `size` along `axis`."""
    tensor = source.tensors[name]
    along = {position for tensor_name, position in axis.dimensions if tensor_name == name}
    coordinates, values = tensor.entries()
    stored = coordinates[:, values != 0].T
    tiles = np.unique(stored // [size if d in along else 1 for d in range(stored.shape[1])], axis=0)
    return len(stored) >= SETTINGS.full_share * len(tiles) * float(size) ** len(along)


def _is_sparse(source: Source, name: str) -> bool:
    format = source.program.declared[name].format
    return format is not None and not format.all_dense


def _is_large(source: Source, name: str) -> bool:
    """Return whether an input stores a large share of the values of all inputs."""
    return source.tensors[name].stored >= SETTINGS.large_share * sum(source.tensors[t.name].stored for t in source.program.inputs)


def _may_be_dense(source: Source, name: str) -> bool:
    return stored_share(source.tensors[name]) >= SETTINGS.dense_share


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
        costs = self._costs(schedule)
        if costs is None or not costs.refine(SETTINGS.max_einsums):
            return None
        return Variant(schedule, self._graph(costs.ranges), self.published)

    def apart(self, variant: Variant) -> Variant:
        """Return a variant that may also be cut between the operators of its units. It is the variant itself if its units are operators,
        or if these are too many."""
        costs = self._costs(variant.base)
        if costs is None or variant.graph.ranges.units.granularity == costs.units.granularity:
            return variant
        costs.ranges = variant.graph.ranges.apart()
        return replace(variant, graph=self._graph(costs.ranges)) if costs.fits(SETTINGS.max_einsums) else variant

    def _costs(self, schedule: Schedule) -> PartCosts | None:
        return prepare_costs(self.source, schedule, RegionEstimates(self.estimator, self.machine))

    def _graph(self, ranges: ProgramRanges) -> CutGraph:
        memo = self.memo.for_other_formats()
        return CutGraph.of(ranges, self.source.tensors, self.machine, self.estimator, self.orders, self.deadline, memo)


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
        """Return the options for a search step by step. In the last step all compressed outer levels may be dense at once."""
        rows = listed_rows(self.factory.source, self.published.base) if "formats" in self.allow else {}
        return [*self._steps(other_kinds), *([[_unchanged, _formatted_else(rows)]] if rows else ())]

    def _steps(self, formats_of: InputFormats) -> Iterator[list[Change]]:
        """Yield the options of each step, of which one is chosen. The first option is no change."""
        source, base = self.factory.source, self.published.base
        if "formats" in self.allow:
            for name, formats in formats_of(source, base).items():
                yield [_unchanged, *(methodcaller("format", name, format) for format in formats[1:])]
        if "reassociate" in self.allow and not base.associations:
            for name, chains in chain_orders(with_associations(source.program, base)).items():
                yield [_unchanged, *(methodcaller("associate", name, str(chain)) for chain in chains)]
        if "formats" in self.allow:
            for blocking in blockings(source, self.published.graph.ranges.partitioned.program, base):
                yield [_unchanged, partial(blocking.scheduled, program=source.program)]

    def _kept(self) -> tuple[Variant, ...]:
        """Return the variant of the user, the best ones, and the best with the formats, and with the products, of the user."""
        ranked = sorted((s for s in self._costs if self._costs[s] < inf), key=lambda s: (self._costs[s], s.to_yaml()))
        variants = [variant for schedule in ranked if (variant := self._variants[schedule]) is not None]
        kept = [self.published, *variants[: SETTINGS.kept_variants]]
        kept += [v for v in variants if "formats" not in v.changed][:1] + [v for v in variants if "association" not in v.changed][
            :1
        ]
        return tuple(dict.fromkeys(kept))

    def _cost(self, schedule: Schedule) -> float:
        if schedule not in self._costs:
            variant = self._variant(schedule)
            least = min(self._costs.values(), default=inf)
            self._costs[schedule] = inf if variant is None or self.factory.deadline.passed else self.cost(variant, least)
        return self._costs[schedule]

    def _variant(self, schedule: Schedule) -> Variant | None:
        if schedule not in self._variants and not self.factory.deadline.passed:
            self.trying(", ".join(variant_changes(self.published.base, schedule)) or "as it is")
            try:
                self._variants[schedule] = self.factory(schedule)
            except FuseFlowError:  # an operator cannot be lowered in these formats
                self._variants[schedule] = None
        return self._variants.get(schedule)


def _unchanged(schedule: Schedule) -> Schedule:
    return schedule


def _formatted_else(formats: Mapping[str, str]) -> Change:
    """Return the change that sets these formats of tensors to which a schedule gives none."""
    return lambda schedule: replace(schedule, formats=tuple({**formats, **dict(schedule.formats)}.items()))


def _changed(schedule: Schedule, changes: Iterable[Change]) -> Schedule:
    for change in changes:
        schedule = change(schedule)
    return schedule


def variant_changes(before: Schedule, schedule: Schedule) -> list[str]:
    """Return the formats, blocks, products, reuse buffers and preloads of a schedule that another one does not have."""
    formats = [f"{name} {text}" for name, text in schedule.formats if (name, text) not in before.formats]
    blocks = [f"{name} {'x'.join(map(str, sizes))}" for name, sizes in schedule.blocks if (name, sizes) not in before.blocks]
    products = [f"{name} = {chain}" for name, chain in schedule.associations if (name, chain) not in before.associations]
    buffers = [f"buffer of {name}" for name, size in schedule.buffers if (name, size) not in before.buffers]
    preloads = [f"preload of {name}" for name, ports in schedule.preloads if (name, ports) not in before.preloads]
    return [*formats, *blocks, *products, *buffers, *preloads]
