"""Loop orders, the linear extensions of the partial-order graph: the nearest to the program, a bounded set of candidates, and the
neighbours of an order. `order_search` finds the best."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Protocol

from fuseflow.directed_graphs import topological_order
from fuseflow.errors import FusionError
from fuseflow.fusion.linear_extensions import Enclosing, LoopOrder, order_sampler
from fuseflow.fusion.refusal import Refusal, attempt

MAX_CANDIDATES = 24
"""The number of orders that are compared before one is chosen, unless the caller says otherwise."""
SAMPLED_DOWN_SETS = 5_000
"""The most down-sets that are counted for a uniform sample, which takes some milliseconds."""


def enumerate_orders(graph: Enclosing, program_order: Sequence[str]) -> Iterator[LoopOrder]:
    """Yield all linear extensions, lazily, in lexicographic order of `program_order`: the nearest to the program first."""
    if not graph:
        yield ()
        return
    after = {v: tuple(graph[v]) for v in graph}
    waiting = dict.fromkeys(after, 0)
    for w in chain.from_iterable(after.values()):
        waiting[w] += 1
    prefix: list[str] = []
    candidates = [iter(program_order)]  # for each place of the prefix, and the next one, what was not tried there
    while candidates:
        v = next((v for v in candidates[-1] if waiting[v] == 0), None)
        if v is None:
            candidates.pop()
            if prefix:
                _remove_last(prefix, after, waiting)
            continue
        waiting[v] = -1
        for w in after[v]:
            waiting[w] -= 1
        prefix.append(v)
        if len(prefix) < len(waiting):
            candidates.append(iter(program_order))
        else:
            yield tuple(prefix)
            _remove_last(prefix, after, waiting)


def _remove_last(prefix: list[str], after: Mapping[str, Sequence[str]], waiting: dict[str, int]) -> None:
    """Remove the last loop of a prefix. Each of the loops after it has one more loop to wait for then."""
    v = prefix.pop()
    for w in after[v]:
        waiting[w] += 1
    waiting[v] = 0


def candidate_orders(graph: Enclosing, program_order: Sequence[str], limit: int = MAX_CANDIDATES) -> tuple[LoopOrder, ...]:
    """Return up to `limit` orders, the nearest to the program first: all if they are few, else the nearest and a repeatable sample.

    The sample is uniform if the orders can be counted in little time (`SAMPLED_DOWN_SETS`). Otherwise it sorts by random
    priorities, which reaches every order but prefers some.
    """
    few = tuple(islice(enumerate_orders(graph, program_order), limit + 1))
    if len(few) <= limit:
        return few
    rng = random.Random(0)
    uniform = order_sampler(graph, SAMPLED_DOWN_SETS)

    def draw() -> LoopOrder:
        if uniform is not None:
            return uniform(rng)
        priority = {v: rng.random() for v in graph}
        return tuple(topological_order(graph, priority.__getitem__))

    chosen = {few[0]}
    for _ in range(4 * limit):
        if len(chosen) < limit:
            chosen.add(draw())
    rank = {v: p for p, v in enumerate(program_order)}
    return tuple(sorted(chosen, key=lambda order: [rank[v] for v in order]))


class OrderCost(Protocol):
    """The cost of an order: a lower `rank` is better."""

    @property
    def rank(self) -> float: ...


@dataclass(frozen=True, slots=True)
class OrderCandidate:
    """An order that was considered, with its cost, or without a cost and with the reason why lowering refused it."""

    order: LoopOrder
    cost: OrderCost | None
    refusal: str = ""

    @classmethod
    def of(cls, order: LoopOrder, outcome: OrderCost | Refusal) -> OrderCandidate:
        """Return an order with its cost or refusal."""
        return cls(order, None, outcome.error.message) if isinstance(outcome, Refusal) else cls(order, outcome)

    @property
    def rank(self) -> float:
        return math.inf if self.cost is None else self.cost.rank


def first_order(
    graph: Enclosing, program_order: Sequence[str], cost: Callable[[LoopOrder], OrderCost], region: str, limit: int
) -> tuple[OrderCandidate, ...]:
    """Return the orders from the nearest to the program on, up to the first that `cost` does not refuse with a `FusionError`. If it
    refuses `limit` orders, the refusal of the first is raised."""
    refusals: dict[LoopOrder, Refusal] = {}
    for order in islice(enumerate_orders(graph, program_order), limit):
        price = attempt(cost, order)
        if not isinstance(price, Refusal):
            return (*(OrderCandidate.of(*refused) for refused in refusals.items()), OrderCandidate(order, price))
        refusals[order] = price
    raise next(iter(refusals.values())).error if refusals else FusionError(f"region `{region}` has no legal order")


def adjacent_orders(graph: Enclosing, order: LoopOrder) -> Iterator[LoopOrder]:
    """Yield the linear extensions that differ from `order` by the position of a single index (some come twice)."""
    for position, v in enumerate(order):
        rest = order[:position] + order[position + 1 :]
        p = position
        while p > 0 and v not in graph[rest[p - 1]]:
            p -= 1
            yield (*rest[:p], v, *rest[p:])
        p = position
        while p < len(rest) and rest[p] not in graph[v]:
            p += 1
            yield (*rest[:p], v, *rest[p:])
