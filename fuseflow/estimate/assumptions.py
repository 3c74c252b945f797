"""Statistics as a user states them: `adj.density=0.001,degree=powerlaw:2.3`, `adj&x=0.3`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, prod
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.errors import UsageError, did_you_mean
from fuseflow.estimate.overlap import AssumedOverlap, MeasuredOverlap
from fuseflow.estimate.statistics import TensorStatistics
from fuseflow.filesystem import read_text

STATISTIC_KEYS = ("density", "stored", "degree", "neighbours")
Degrees = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Assumption:
    """Of one tensor. `degree`: `uniform`, `regular`, `powerlaw:ALPHA` or the numbers of stored entries of its rows; `neighbours`: stored
    entries of a row, on average over the stored columns."""

    density: float | None = None
    stored: float | None = None
    degree: str | tuple[float, ...] = ""
    neighbours: float | None = None


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Statements by tensor, and the share of the coordinates of one tensor that another one has, by pair."""

    tensors: Mapping[str, Assumption] = field(default_factory=dict)
    rates: Mapping[tuple[str, str], float] = field(default_factory=dict)
    _found: dict[str, TensorStatistics] = field(default_factory=dict)
    _neighbours: dict[str, float] = field(default_factory=dict)

    @classmethod
    def parse(cls, specs: Iterable[str]) -> Assumptions:
        """Raises `UsageError`."""
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
                before = tensors.get(name, Assumption())
                if getattr(before, key) not in (None, ""):
                    raise UsageError(f"`--stats`: `{name}.{key}` is given twice")
                tensors[name] = replace(before, **{key: _value(item, key, value)})  # type: ignore[arg-type]
        return cls(tensors, rates)

    def check(self, program: Program) -> None:
        """Raise `UsageError` for a tensor that the program does not read, or that has nothing to state."""
        inputs = {t.name: t for t in program.inputs}
        for name in (*self.tensors, *(name for pair in self.rates for name in pair)):
            if name not in inputs:
                raise UsageError(f"`--stats`: the program reads no tensor `{name}`", hint=did_you_mean(name, inputs))
        for name in self.tensors:
            format = inputs[name].format
            if format is None or format.all_dense:
                raise UsageError(
                    f"`--stats`: `{name}` is stored dense, all of it", hint=f"give it a sparse format: `--format {name}=csr`"
                )

    def statistics(self, declared: TensorType) -> TensorStatistics | None:
        """What was said of an input; None if nothing was."""
        stated = self.tensors.get(declared.name)
        if stated is None:
            return None
        if declared.block:
            raise UsageError(f"`--stats`: `{declared.name}` is stored in blocks, which take its data to count")
        if declared.name not in self._found:
            self._found[declared.name], neighbours = _stated_statistics(declared, stated)
            if neighbours is not None:
                self._neighbours[declared.name] = neighbours
        return self._found[declared.name]

    def pairs(self, measured: MeasuredOverlap) -> AssumedOverlap:
        means = {name: found.fanouts[1] for name, found in self._found.items() if len(found.fanouts) > 1}
        return AssumedOverlap(self.rates, self._neighbours, means, measured)


def _value(item: str, key: str, value: str) -> float | str | tuple[float, ...]:
    if key == "degree":
        return _degree(item, value)
    return _number(item, value, 1 if key == "density" else None)


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
    """Of a tensor as stated, and the mean row over its stored columns."""
    format = declared.format
    assert format is not None
    sizes = tuple(declared.shape[d] for d in format.order)
    said = [key for key in ("density", "stored") if getattr(stated, key) is not None]
    listed = isinstance(stated.degree, tuple)
    if len(said) + listed != 1:
        problem = "says twice how much is stored" if said else "does not say how much is stored"
        raise UsageError(f"`--stats` of `{declared.name}` {problem}", hint="give `density`, `stored` or `degree=@FILE`")
    total = stated.density * prod(sizes) if stated.density is not None else float(stated.stored or 0)
    if total > prod(sizes):
        raise UsageError(f"`--stats`: `{declared.name}` has room for {prod(sizes):,} entries, not {total:,.0f}")
    if stated.degree in ("", "uniform"):
        found = _uniform_statistics(sizes, [level.full for level in format.levels], total)
        mean = total / sizes[0] if sizes and sizes[0] else 0.0
        return found, stated.neighbours if stated.neighbours is not None else (
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


def _uniform_statistics(sizes: tuple[int, ...], full: list[bool], stored: float) -> TensorStatistics:
    """Entries anywhere: a coordinate is stored unless nothing is below it."""
    above, places, fanouts = 1.0, 1.0, []
    share = stored / prod(sizes) if prod(sizes) else 0.0
    for p, size in enumerate(sizes):
        places *= size
        below = prod(sizes[p + 1 :])
        there = share if below == 1 else 1 - (1 - share) ** below
        held = above * size if full[p] else places * there
        fanouts.append(held / above if above else 0.0)
        above = held
    return TensorStatistics(sizes, tuple(fanouts))


def _degree_distribution(name: str, stated: Assumption, rows: int, columns: int, total: float) -> tuple[Degrees, Degrees]:
    """Degrees, and how many rows have each."""
    if isinstance(stated.degree, tuple):
        degrees = np.array(stated.degree)
        if len(degrees) != rows or (degrees > columns).any():
            raise UsageError(f"`--stats`: `{name}` has {rows} rows of at most {columns} entries; `degree` lists {len(degrees)}")
        return degrees, np.ones(rows)
    if stated.degree == "regular":
        return np.array([total / rows if rows else 0.0]), np.array([float(rows)])
    return power_law(float(stated.degree.partition(":")[2]), rows, columns, total)


def power_law(exponent: float, rows: int, columns: int, total: float) -> tuple[Degrees, Degrees]:
    """Degrees 1, 2, ... with P(d) ~ (d + shift)^-exponent up to the degree that one row is expected to exceed; the shift, or the share of
    rows without entries, follows from the mean."""
    if not rows or not columns or not total:
        return np.zeros(1), np.array([float(rows)])

    def weights(shift: float) -> tuple[Degrees, Degrees]:
        most = int(min(columns, max(1.0, (1 + shift) * rows ** (1 / (exponent - 1)) - shift)))
        degrees = np.arange(1, most + 1, dtype=np.float64)
        found = (degrees + shift) ** -exponent
        return degrees, found / found.sum()

    def off(shift: float) -> float:
        degrees, found = weights(shift)
        return float(degrees @ found) - total / rows

    least, most = -0.9, 1.0
    if off(least) >= 0:  # most rows are empty
        degrees, found = weights(least)
        return np.append(degrees, 0.0), np.append(found * (total / float(degrees @ found)), rows - total / float(degrees @ found))
    while off(most) < 0 and most < columns * 4:
        most *= 2
    if off(most) < 0:
        raise UsageError(f"`--stats`: no power law has {total / rows:,.4g} of {columns:,} entries in a row on average")
    bisect: Callable[..., float] = brentq
    shift = bisect(off, least, most, xtol=1e-6)
    degrees, found = weights(shift)
    return degrees, found * rows
