"""Tensor statistics that a user states, such as `adj.density=0.001,degree=powerlaw:2.3` or `adj&x=0.3`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, prod
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fuseflow.costs.statistics import TensorStatistics
from fuseflow.costs.stream_shapes import LookupRate, TensorLevel
from fuseflow.einsum.nodes import Access, Apply, Keep, Program, TensorType
from fuseflow.errors import UsageError, did_you_mean
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.patterns import Pattern
from fuseflow.estimate.counted.stream_trie import sum_by_group, take
from fuseflow.filesystem import read_text
from fuseflow.keep_rules import NONZERO, Threshold, kept
from fuseflow.samml.nodes import Drop, Graph
from fuseflow.tensors import Tensor

STATISTIC_KEYS = ("density", "stored", "degree", "neighbours", "kept")
"""The statistics that can be stated of a tensor. `kept` is stated of a result."""
Degrees = npt.NDArray[np.float64]
"""An array of degrees of rows, or of how many rows have each degree."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """The statistics that a user stated of one tensor.

    `density` is the share of elements that are stored, `stored` their number. `degree` is `uniform`, `regular`, `powerlaw:ALPHA`, or the
    number of stored entries of each row. `neighbours` is the number of stored entries of a row, averaged over the rows that the stored
    columns name. `kept` is stated of a result alone: the share of its entries that a `keep(threshold 0.1)` or `keep(nonzero)` leaves.
    """

    density: float | None = None
    stored: float | None = None
    degree: str | tuple[float, ...] = ""
    neighbours: float | None = None
    kept: float | None = None


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The statistics that a user stated: `tensors` by tensor, and `rates` for pairs of tensors: which share of the coordinates of
    one the other stores."""

    tensors: Mapping[str, Assumption] = field(default_factory=dict)
    rates: Mapping[tuple[str, str], float] = field(default_factory=dict)
    _statistics: dict[str, TensorStatistics] = field(default_factory=dict)
    _mean_neighbours: dict[str, float] = field(default_factory=dict)

    @classmethod
    def parse(cls, specs: Iterable[str]) -> Assumptions:
        """Parse the arguments of `--stats`. Raises `UsageError` for an argument that is no statistic."""
        tensors: dict[str, Assumption] = {}
        rates: dict[tuple[str, str], float] = {}
        for spec in specs:
            name = ""
            for item in spec.split(","):
                left, equals, value = (part.strip() for part in item.partition("="))
                if not (left and equals and value):
                    raise UsageError(
                        f"`--stats {spec}`: `{item}` is not KEY=VALUE", hint="as in `--stats A.density=0.01,degree=uniform`"
                    )
                if "&" in left:
                    one, _, other = (part.strip() for part in left.partition("&"))
                    rates[one, other] = _number(item, value, 1)
                    continue
                head, dot, key = left.rpartition(".")
                name = head if dot else name
                if not name:
                    raise UsageError(f"`--stats {spec}`: `{item}` names no tensor", hint=f"as in `A.{item}`")
                if key not in STATISTIC_KEYS:
                    raise UsageError(f"`--stats {spec}`: there is no statistic `{key}`", hint=did_you_mean(key, STATISTIC_KEYS))
                assumption = tensors.get(name, Assumption())
                if getattr(assumption, key) not in (None, ""):
                    raise UsageError(f"`--stats`: `{name}.{key}` is given twice")
                most = 1 if key in ("density", "kept") else None
                stated = _degree(item, value) if key == "degree" else _number(item, value, most)
                tensors[name] = replace(assumption, **{key: stated})  # type: ignore[arg-type]
        return cls(tensors, rates)

    def check(self, program: Program) -> None:
        """Raise `UsageError` for a tensor that the program does not read, for one that is stored dense, and for the kept share of
        a result whose entries are not kept by value."""
        inputs = {t.name: t for t in program.inputs}
        stated = {name: assumption for name, assumption in self.tensors.items() if assumption != Assumption(kept=assumption.kept)}
        self._check_kept(program)
        for name in (*stated, *(name for pair in self.rates for name in pair)):
            if name not in inputs:
                raise UsageError(f"`--stats`: the program reads no tensor `{name}`", hint=did_you_mean(name, inputs))
        for name in stated:
            format = inputs[name].format
            if format is None or format.all_dense:
                raise UsageError(
                    f"`--stats`: `{name}` is stored dense, all of it", hint=f"give it a sparse format: `--format {name}=csr`"
                )

    def _check_kept(self, program: Program) -> None:
        keeps = {e.name: e.body for e in program.einsums if isinstance(e.body, Keep)}
        for name in (name for name, assumption in self.tensors.items() if assumption.kept is not None):
            if name not in keeps:
                able = [name for name, keep in keeps.items() if isinstance(keep.rule, Threshold)]
                raise UsageError(f"`--stats`: the program has no `keep` of `{name}`", hint=did_you_mean(name, able))
            if not isinstance(keeps[name].rule, Threshold):
                raise UsageError(
                    f"`--stats`: how much of `{name}` is kept follows from `{keeps[name]}`, and is counted",
                    hint=f"leave `{name}.kept` out",
                )

    @property
    def kept(self) -> dict[str, float]:
        """The stated share of the entries that a `keep` by value leaves, by the name of its result."""
        return {name: stated.kept for name, stated in self.tensors.items() if stated.kept is not None}

    def statistics(self, declared: TensorType) -> TensorStatistics | None:
        """Return the statistics that were stated of an input; None if none were. Raises `UsageError` for contradictory ones."""
        stated = self.tensors.get(declared.name)
        if stated is None:
            return None
        if declared.block:
            raise UsageError(f"`--stats`: `{declared.name}` is stored in blocks, which take its data to count")
        if declared.name not in self._statistics:
            self._statistics[declared.name], neighbours = _stated_statistics(declared, stated)
            if neighbours is not None:
                self._mean_neighbours[declared.name] = neighbours
        return self._statistics[declared.name]

    def overlap(self, patterns: Mapping[str, Pattern], memo: CountMemo) -> TensorOverlap:
        """Return the overlap of pairs of tensors as it was stated, or else measured on `patterns`."""
        means = {name: statistics.fanouts[1] for name, statistics in self._statistics.items() if len(statistics.fanouts) > 1}
        return TensorOverlap(patterns, memo, self.rates, self._mean_neighbours, means)


def _number(item: str, value: str, most: float | None) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not isfinite(number) or number < 0 or (most is not None and number > most):
        raise UsageError(f"`--stats`: `{item}` is not a number {f'from 0 to {most:g}' if most is not None else 'of 0 or more'}")
    return number


def _degree(item: str, value: str) -> str | tuple[float, ...]:
    if value in ("uniform", "regular") or re.fullmatch(r"powerlaw:\d+(\.\d+)?", value):
        if value.startswith("powerlaw") and float(value.partition(":")[2]) <= 1:
            raise UsageError(f"`--stats`: `{item}`: the exponent of a power law is above 1")
        return value
    if value.startswith("@"):
        words = read_text(Path(value[1:]), "the degrees").replace(",", " ").split()
        return tuple(_number(word, word, None) for word in words)
    raise UsageError(
        f"`--stats`: `{item}`: there is no such distribution",
        hint="`uniform`, `regular`, `powerlaw:2.3`, or `@FILE` with the number of stored entries of every row",
    )


def _stated_statistics(declared: TensorType, stated: Assumption) -> tuple[TensorStatistics, float | None]:
    """Return the statistics as stated, and how many entries a row has on average over the rows that its columns name."""
    format = declared.format
    assert format is not None
    sizes = tuple(declared.shape[d] for d in format.order)
    stated_totals = [key for key in ("density", "stored") if getattr(stated, key) is not None]
    is_listed = isinstance(stated.degree, tuple)
    if len(stated_totals) + is_listed != 1:
        problem = "says twice how much is stored" if stated_totals else "does not say how much is stored"
        raise UsageError(f"`--stats` of `{declared.name}` {problem}", hint="give `density`, `stored` or `degree=@FILE`")
    total = stated.density * prod(sizes) if stated.density is not None else float(stated.stored or 0)
    if total > prod(sizes):
        raise UsageError(f"`--stats`: `{declared.name}` has room for {prod(sizes):,} entries, not {total:,.0f}")
    if stated.degree in ("", "uniform"):
        fixed = [
            level.expected(size, 0) if level.full or level.pads else None
            for level, size in zip(format.levels, sizes, strict=True)
        ]
        statistics = _uniform_statistics(sizes, fixed, total)
        if None not in fixed and any(level.pads for level in format.levels) and abs(statistics.stored - total) >= 1:
            raise UsageError(
                f"`--stats`: `{declared.name}` is stored {format.short()}, that is {statistics.stored:,.0f} entries, not {total:,.0f}",
                hint=f"`{declared.name}.density={statistics.stored / prod(sizes):g}`",
            )
        mean = total / sizes[0] if sizes and sizes[0] else 0.0
        return statistics, stated.neighbours if stated.neighbours is not None else (
            mean + 1 - mean / max(1, sizes[-1]) if total else 0.0
        )
    if len(sizes) != 2:
        raise UsageError(
            f"`--stats`: `{declared.name}` has {len(sizes)} dimensions: degrees are those of a matrix", hint="`degree=uniform`"
        )
    degrees, weights = _degree_distribution(declared.name, stated, sizes[0], sizes[1], total)
    entries, squares = float(degrees @ weights), float(degrees**2 @ weights)
    rows = float(sizes[0]) if format.levels[0].full else float(weights[degrees > 0].sum())
    neighbours = stated.neighbours if stated.neighbours is not None else squares / entries if entries else 0.0
    return TensorStatistics(sizes, (rows, entries / rows if rows else 0.0)), neighbours


def _uniform_statistics(sizes: tuple[int, ...], fixed: list[float | None], stored: float) -> TensorStatistics:
    """Return the statistics of `stored` entries that are scattered evenly. A coordinate is stored unless no entry is below it.
    `fixed` has for each level the coordinates of a fiber if the level format alone decides how many there are, else None."""
    parents, places, fanouts = 1.0, 1.0, []
    share = stored / prod(sizes) if prod(sizes) else 0.0
    for p, size in enumerate(sizes):
        places *= size
        below = prod(sizes[p + 1 :])
        occupied = share if below == 1 else 1 - (1 - share) ** below
        each = fixed[p]
        elements = places * occupied if each is None else parents * each
        fanouts.append(elements / parents if parents else 0.0)
        parents = elements
    return TensorStatistics(sizes, tuple(fanouts))


def _degree_distribution(name: str, stated: Assumption, rows: int, columns: int, total: float) -> tuple[Degrees, Degrees]:
    """Return the distinct degrees of a matrix of `total` stored entries, and how many of its rows have each."""
    if isinstance(stated.degree, tuple):
        degrees = np.array(stated.degree)
        if len(degrees) != rows or (degrees > columns).any():
            raise UsageError(f"`--stats`: `{name}` has {rows} rows of at most {columns} entries; `degree` lists {len(degrees)}")
        return degrees, np.ones(rows)
    if stated.degree == "regular":
        return np.array([total / rows if rows else 0.0]), np.array([float(rows)])
    return power_law(float(stated.degree.partition(":")[2]), rows, columns, total)


def power_law(exponent: float, rows: int, columns: int, total: float) -> tuple[Degrees, Degrees]:
    """Return the degrees 1, 2, ... of a power law, and how many rows are expected to have each.

    The probability of degree d is proportional to (d + shift)^-exponent, up to the degree that one row is expected to exceed. The
    shift follows from the mean degree; where no shift gives so small a mean, some rows have no entries.
    """
    if not rows or not columns or not total:
        return np.zeros(1), np.array([float(rows)])

    def weights(shift: float) -> tuple[Degrees, Degrees]:
        largest = int(min(columns, max(1.0, (1 + shift) * rows ** (1 / (exponent - 1)) - shift)))
        degrees = np.arange(1, largest + 1, dtype=np.float64)
        probabilities = (degrees + shift) ** -exponent
        return degrees, probabilities / probabilities.sum()

    def excess(shift: float) -> float:
        degrees, probabilities = weights(shift)
        return float(degrees @ probabilities) - total / rows

    least, most = -0.9, 1.0
    if excess(least) >= 0:  # most rows are empty
        degrees, probabilities = weights(least)
        return np.append(degrees, 0.0), np.append(
            probabilities * (total / float(degrees @ probabilities)), rows - total / float(degrees @ probabilities)
        )
    while excess(most) < 0 and most < columns * 4:
        most *= 2
    if excess(most) < 0:
        raise UsageError(f"`--stats`: no power law has {total / rows:,.4g} of {columns:,} entries in a row on average")
    from scipy.optimize import brentq  # loads half of scipy, and few estimates need it

    bisect: Callable[..., float] = brentq
    shift = bisect(excess, least, most, xtol=1e-6)
    degrees, probabilities = weights(shift)
    return degrees, probabilities * rows


ASSUMED_SHARE = 0.5
"""The share of values that a threshold is expected to leave if nothing is known of them."""


@dataclass(frozen=True, slots=True)
class KeptShares:
    """The shares of entries that each `keep` by value leaves, by result, and the results whose share is only assumed.

    The share of `H[i, j] = keep(threshold 0.1) A[i, j]` follows from the values of A, if A is an input with data. The share of any
    other result is what the user states (`--stats H.kept=0.3`), or a half. `keep(nonzero)` is expected to leave a half of a relu, and
    everything else, since a stored entry is seldom 0.
    """

    by_result: Mapping[str, float]
    assumed: tuple[str, ...] = ()

    @classmethod
    def of(cls, program: Program, tensors: Mapping[str, Tensor], stated: Mapping[str, float]) -> KeptShares:
        """Return the shares for the results of a program. The `stated` ones are the user's, and `tensors` are the inputs with
        data."""
        shares, assumed = dict(stated), list[str]()
        for einsum in program.einsums:
            body = einsum.body
            if einsum.name in shares or not isinstance(body, Keep) or not isinstance(body.rule, Threshold):
                continue
            operand = body.body
            if body.rule == NONZERO:
                if isinstance(operand, Apply) and operand.op == "relu":
                    shares[einsum.name] = ASSUMED_SHARE
                continue
            tensor = tensors.get(operand.tensor) if isinstance(operand, Access) else None
            if tensor is not None and tensor.values.size:
                shares[einsum.name] = float(np.mean(kept(body.rule, tensor.values)))
            else:
                shares[einsum.name] = ASSUMED_SHARE
                assumed.append(einsum.name)
        return cls(shares, tuple(assumed))

    @property
    def notices(self) -> tuple[str, ...]:
        """The sentence that names the results with assumed shares, if there are any."""
        if not self.assumed:
            return ()
        names = ", ".join(f"`{name}`" for name in self.assumed)
        return (
            f"half of the entries are expected to pass the threshold of {names}; `--stats {self.assumed[0]}.kept=0.3` says better",
        )

    def by_node(self, graph: Graph) -> dict[str, float]:
        """Return the share of its values that each node keeps, by node name. A node has the name of its result, with a number if
        there are several (`drop_H'2`), and with its lane (`drop_H/i0`)."""
        by_value = [node.name for node in graph.nodes if isinstance(node, Drop) and node.by_value] if self.by_result else []
        results = {name: re.split(r"['/]", name.removeprefix("drop_"))[0] for name in by_value}
        return {name: self.by_result[result] for name, result in results.items() if result in self.by_result}


@dataclass(frozen=True, slots=True)
class TensorOverlap:
    """The overlap of pairs of tensors, which is how often the coordinates of one are stored in the other: as a user stated it, or else
    measured on their patterns when it is needed. A row of a graph that many edges lead to is read many times.

    `rates` are stated by pair of names. `neighbours` is by name the number of entries that a row stores on average over the stored
    columns, and `means` the number on average over the rows.
    """

    patterns: Mapping[str, Pattern]
    memo: CountMemo
    rates: Mapping[tuple[str, str], float]
    neighbours: Mapping[str, float]
    means: Mapping[str, float]

    def lookup_rate(self, source_level: TensorLevel, level: TensorLevel) -> LookupRate | None:
        """Return the rate as `Overlap.lookup_rate` does. None if nothing is stated and a tensor has no pattern, and for any `level`
        but the second of its tensor."""
        (source, p), (tensor, q) = source_level, level
        if q != 1:
            return None
        rate = self.rates.get((source, tensor), self.rates.get((tensor, source)))
        fanout = self.neighbours.get(tensor) if source == tensor else self.means.get(tensor)
        if fanout is not None and (rate is not None or source == tensor):
            return LookupRate(1.0 if rate is None else rate, fanout)
        if source not in self.patterns or tensor not in self.patterns:
            return None
        one, other = self.patterns[source], self.patterns[tensor]
        return self.memo.once(("reached", p), (one, other), lambda: measure_lookup_rate(one, p, other))


def measure_lookup_rate(source: Pattern, level: int, tensor: Pattern) -> LookupRate | None:
    """Return how many coordinates, as often as they occur in `level` of `source`, are found in level 0 of `tensor`, and how many
    elements are below each of those on average. None if the levels differ in size, or if nothing can be looked up."""
    if len(tensor.levels) < 2:
        return None
    times = np.ones(1, dtype=np.int64)
    for upper, links, lower in zip(source.levels[:level], source.below, source.levels[1:], strict=False):
        element_times = np.repeat(times, upper.lengths)
        times = sum_by_group(
            np.zeros(len(element_times), dtype=np.int64) if links is None else links, element_times, lower.fibers
        )
    fibers = source.levels[level]
    weights_by_coordinate = np.bincount(fibers.crd, weights=np.repeat(times, fibers.lengths), minlength=fibers.size)
    rows = tensor.levels[0]
    if rows.size != fibers.size or not weights_by_coordinate.any():
        return None
    crd = np.flatnonzero(weights_by_coordinate)
    at = rows.find(np.zeros(len(crd), dtype=np.int64), crd)
    hit = at >= 0
    below = tensor.below[0]
    fiber = np.zeros(len(at), dtype=np.int64) if below is None else take(below, at, 0)
    lengths = take(tensor.levels[1].lengths, fiber, 0)
    weights = weights_by_coordinate[crd]
    total = float(weights[hit].sum())
    return LookupRate(total / float(weights.sum()), float(weights[hit] @ lengths[hit]) / total if total else 0.0)
