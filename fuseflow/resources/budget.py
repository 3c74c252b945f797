"""Budgets: the most of each resource that a region may occupy, as `mul=64,port=256` or by the names `small`, `medium` and `large`.

Regions run one after the other, and each has the whole accelerator, so a budget holds for every region separately. The limit of `live`
holds for the whole program: intermediates lie in the memory from one region to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from fuseflow.byte_sizes import BYTE_UNITS, BYTES_HINT, MOST_COUNTED, byte_text, split_amount
from fuseflow.errors import UsageError, did_you_mean
from fuseflow.resources.graph_resources import COMPONENTS, Resources

LIVE = "live"
"""The name of the limit of the bytes of intermediates that are alive at the same time (`fuseflow.costs.live_bytes`)."""
LIMITED = (*COMPONENTS, LIVE)
"""What a budget may limit."""
BYTES = frozenset(("fifo", "workspace", "buffer", LIVE))
"""What is counted in bytes, so that its limit may have a unit."""
GATE_UNITS: Mapping[str, int] = MappingProxyType({"": 1, "K": 1_000, "M": 1_000_000})
"""The gate equivalents of each unit in which an area may be written."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The most of each component that a region may occupy, and the most bytes of intermediates that may be alive at the same time
    (`live`). What has no limit is unlimited. On an `array`, the limits have its tiles by kind, too.

    >>> str(Budget.parse("mul=16,fifo=64KB")), Budget.parse("small,mul=32").limits["mul"]
    ('mul=16,fifo=64KB', 32)
    """

    limits: Mapping[str, int]
    live: int | None = None
    array: str = ""

    @classmethod
    def of(cls, budget: Budget | str | Mapping[str, int | str]) -> Budget:
        """Return the budget given as a text, or as a mapping from components to limits. Raises `UsageError` as `parse` does."""
        if isinstance(budget, Budget):
            return budget
        if isinstance(budget, str):
            return cls.parse(budget)
        return cls._ordered({name: _limit(name, str(value), f"{name}={value}") for name, value in budget.items()})

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read a list of limits of components and names of budgets. Later entries win: `small,mul=32`.

        Raises `UsageError` for an unknown component, a component with two limits, and a limit that is no number above zero.
        """
        limits: dict[str, int] = {}
        given: set[str] = set()
        for entry in text.split(","):
            name, equals, amount = (part.strip() for part in entry.partition("="))
            if not equals and name in NAMED_BUDGETS:
                limits |= NAMED_BUDGETS[name].limits
                continue
            if not equals and name not in LIMITED:
                raise UsageError(f"there is no budget `{name}`", hint=did_you_mean(name, (*NAMED_BUDGETS, *LIMITED)))
            if name in given:
                raise UsageError(f"the budget has two limits of `{name}`", hint="keep one of them")
            given.add(name)
            limits[name] = _limit(name, amount, entry.strip())
        return cls._ordered(limits)

    @classmethod
    def _ordered(cls, limits: Mapping[str, int]) -> Budget:
        return cls(MappingProxyType({name: limits[name] for name in COMPONENTS if name in limits}), limits.get(LIVE))

    def on_array(self, array: str, tiles: Mapping[str, int]) -> Budget:
        """Return the budget with the tiles of an array, by the names that `Resources.tiles` has."""
        return replace(self, limits=MappingProxyType({**self.limits, **tiles}), array=array)

    def __hash__(self) -> int:
        return hash((tuple(self.limits.items()), self.live))

    def __str__(self) -> str:
        limits = ",".join(f"{name}={amount_text(name, limit)}" for name, limit in self.to_json().items())
        return " on ".join(part for part in (limits, self.array and f"array `{self.array}`") if part)

    def with_limit(self, component: str, limit: int) -> Budget:
        """Return the budget with another limit of one component."""
        limits = {**self.limits, component: limit}
        return replace(self, limits=MappingProxyType({name: limits[name] for name in (*COMPONENTS, *limits) if name in limits}))

    def exceeded(self, resources: Resources) -> dict[str, int | None]:
        """Return the components of some resources that exceed the budget, with their amounts (None: a FIFO has no bound)."""
        used = {name: resources.amount(name) for name in self.limits}
        return {name: value for name, value in used.items() if value is None or value > self.limits[name]}

    def shares(self, resources: Resources) -> dict[str, float]:
        """Return the share of each component's limit that some resources take; infinite if a FIFO has no bound."""
        used = {name: resources.amount(name) for name in self.limits}
        return {name: float("inf") if value is None else value / self.limits[name] for name, value in used.items()}

    def to_json(self) -> dict[str, int]:
        """Return the limits as plain values, that of `live` included, without the tiles of the array."""
        limits = {name: limit for name, limit in self.limits.items() if name in COMPONENTS}
        return {**limits, **({} if self.live is None else {LIVE: self.live})}


def amount_text(component: str, amount: int) -> str:
    """Return an amount of a component as a user writes it.

    >>> amount_text("fifo", 65536), amount_text("mul", 64), amount_text("area", 2_000_000)
    ('64KB', '64', '2M')
    """
    if component == "area":
        unit = next(unit for unit in ("M", "K", "") if amount % GATE_UNITS[unit] == 0)
        return f"{amount // GATE_UNITS[unit]}{unit}"
    return byte_text(amount) if component in BYTES else str(amount)


def component_name(name: str) -> str:
    """Return the name of a component unchanged. Raises `UsageError` with the nearest name if there is no such component."""
    if name not in COMPONENTS:
        raise UsageError(f"there is no resource `{name}`", hint=did_you_mean(name, COMPONENTS))
    return name


def _limit(name: str, text: str, entry: str) -> int:
    """Return the limit of `name`, written as `text`. Raises `UsageError`, which repeats `entry`."""
    if name not in LIMITED:
        raise UsageError(f"there is no resource `{name}`", hint=did_you_mean(name, LIMITED))
    split, (units, example, hint) = split_amount(text), _units(name)
    if split is None:
        raise UsageError(f"the limit of `{entry}` is no number", hint=f"as in `{name}={example}`")
    number, unit = split
    if unit not in units:
        raise UsageError(f"the limit of `{entry}` has the unit `{unit}`", hint=hint)
    amount = number * units[unit]
    if amount <= 0:
        raise UsageError(f"the limit of `{entry}` is not above zero", hint=f"leave `{name}` out for as much as is wanted")
    if amount.denominator != 1:
        raise UsageError(f"the limit of `{entry}` is no whole number", hint=f"as in `{name}={example}`")
    if amount > MOST_COUNTED:
        raise UsageError(
            f"the limit of `{entry}` is more than 64 bits count", hint=f"leave `{name}` out for as much as is wanted"
        )
    return int(amount)


def _units(name: str) -> tuple[Mapping[str, int], str, str]:
    """Return the units that the limit of a component may have, an example of a limit, and a hint to how limits are written."""
    if name in BYTES:
        return BYTE_UNITS, "64KB", BYTES_HINT
    if name == "area":
        return GATE_UNITS, "2M", "gate equivalents are written `2000000`, `2000K` or `2M`"
    return {"": 1}, "64", f"`{name}` is a number of units, as in `{name}=64`"


def _named(mul: int, port: int, memory: str) -> Budget:
    return Budget.of({"mul": mul, "port": port, "fifo": memory, "buffer": memory})


NAMED_BUDGETS: Mapping[str, Budget] = MappingProxyType(
    {"small": _named(16, 64, "64KB"), "medium": _named(64, 256, "1MB"), "large": _named(1024, 1024, "16MB")}
)
"""The budgets that have a name."""
