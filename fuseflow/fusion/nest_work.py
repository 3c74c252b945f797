"""The work of a region in an order, from its trees alone: how often the loops of its nests run, with no table made.

    Y[i, j] = sum(k) A[i, k] * B[k, j]        i: 100, k: 50, j: 20; A stores a tenth of its entries

    order   runs of its loops, outermost first
    i,k,j   100, 500, 10,000
    j,i,k    20, 2,000, 10,000

A loop runs for the share of its coordinates that every view and producer in the body stores, as if these were independent. In each run, a
view or producer that has the index moves on by one element, and an operator runs in the innermost loop of its operands. So the numbers
follow the costs of tables from afar: joins are taken as intersections, and repeated, located and aligned elements count the same.
They say which orders are worth a table; the cost of an order follows from its table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fuseflow.fusion.linear_extensions import LoopOrder
from fuseflow.fusion.tree import Operation, Producer, Reduction, Selection, Tree, View, free_indices, nodes


@dataclass(frozen=True, slots=True)
class Completion:
    """The rule that says before which loop of a nest a producer in its body must be complete (rule L4 of the lowering contract).
    Tables are built by it, too.

        m[i] = max(k) X[i, k];  Y[i, j] = X[i, j] - m[i]        in order i,k,j the maximum is complete before loop j

    `place` has the position of each loop in one order. The indices in `single` need no loop.
    """

    place: Mapping[str, int]
    single: frozenset[str] = frozenset()

    def awaited(self, node: Producer) -> tuple[str, ...]:
        """Return the indices before whose loops a producer must be complete: for a threshold, only its innermost index."""
        if isinstance(node, Selection) and not node.over:
            return (max(node.free, key=self.place.__getitem__),) if node.free else ()
        return tuple([v for v in node.over if v not in self.single]) if self.single else node.over

    def is_due(self, node: Producer, v: str, run: Collection[str]) -> bool:
        """Return whether a producer must be complete before loop `v` of a nest. `run` has the loops outside of `v`.

        A reduction is due at one of its indices once a reduction index is at or before it, and at an index that it lacks only if
        it is a plain value by then. Otherwise it is carried: it runs again inside that loop. A selection is due like a reduction
        over the indices along which it compares.
        """
        place, at = self.place, self.place[v]
        if not any(place[r] <= at for r in self.awaited(node)):
            return False
        return v in node.free or v in node.over or all(w in run or w in self.single for w in node.free)


class NestPlace(NamedTuple):
    """The facts that decide the work of a nest: its `tree`, how often it runs (`runs`), the loops `around` it that it or a nest
    inside of it has, each with its runs, outermost first, and the `order` of its loops and of the loops inside of it."""

    tree: Tree
    runs: float
    around: tuple[tuple[str, float], ...]
    order: LoopOrder


class NestWork(NamedTuple):
    """The `work` of a nest, in elements of streams, and the elements of its `busiest` stream. `left` has the indices of its
    result, each with the share of its coordinates that are present. `inside` are the nests of the producers in its body."""

    work: float
    busiest: float
    left: Mapping[str, float]
    inside: tuple[NestPlace, ...]


@dataclass(frozen=True, slots=True)
class NestBody:
    """The body of a nest. `loops` are the loops of the nest, and `over` those that it reduces. `streams` has the number of
    streams that move in each loop, and `shares` the share of its coordinates that the views store. `values` has how many values
    are read or computed for each combination of indices; an operator counts twice, since it takes values and emits one. `below`
    are the loops of the nest and of the nests of the `producers` in it."""

    loops: tuple[str, ...]
    over: frozenset[str]
    producers: tuple[Producer, ...]
    streams: Mapping[str, int]
    shares: Mapping[str, float]
    values: Mapping[tuple[str, ...], int]
    below: frozenset[str]

    @classmethod
    def of(
        cls,
        tree: Tree,
        loops: tuple[str, ...],
        over: tuple[str, ...],
        free: Mapping[Tree, tuple[str, ...]],
        stored: Mapping[View, Mapping[str, float]],
        bodies: Mapping[Tree, NestBody],
    ) -> NestBody:
        """Return the body of a nest that has these `loops` and reduces the loops `over`. `free` has the indices of the value of
        each node, `stored` the shares of coordinates that views store, and `bodies` the nests of the producers inside."""
        streams, shares, values = dict.fromkeys(loops, 1), dict[str, float](), Counter[tuple[str, ...]]()
        body = nodes(tree, below=lambda node: () if isinstance(node, Producer) else node.operands)
        producers = tuple([node for node in body if isinstance(node, Producer)])
        for node in body:
            indices = free[node]
            if isinstance(node, View | Producer):
                for v in indices:
                    streams[v] += 1
            if isinstance(node, View | Operation):
                values[indices] += 2 if isinstance(node, Operation) else 1
            for v, share in stored[node].items() if isinstance(node, View) else ():
                shares[v] = shares.get(v, 1.0) * share
        below = frozenset(loops).union(*[bodies[node].below for node in producers])
        return cls(loops, frozenset(over), producers, streams, shares, values, below)


@dataclass(frozen=True, slots=True)
class RegionWork:
    """The nests of a region: the `bodies` by tree, the trees of its results (`roots`), and the `sizes` of the loops. `nests`
    keeps computed work: most nests are the same in many orders."""

    bodies: Mapping[Tree, NestBody]
    roots: tuple[Tree, ...]
    sizes: Mapping[str, int]
    nests: dict[NestPlace, NestWork] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        results: Sequence[tuple[tuple[str, ...], Tree]],
        sizes: Mapping[str, int],
        stored: Mapping[View, Mapping[str, float]],
    ) -> RegionWork:
        """Return the nests of a region. Its results have these indices and trees, its loops these sizes, and its views store these shares
        of the coordinates of their indices."""
        roots = tuple([tree for _, tree in results])
        free, bodies = free_indices(*roots), dict[Tree, NestBody]()
        for node in nodes(*roots):
            if isinstance(node, Producer):
                over = node.over if isinstance(node, Reduction) else ()
                own = tuple(dict.fromkeys((*node.free, *node.over)))
                bodies[node] = NestBody.of(node.body, own, over, free, stored, bodies)
        for indices, tree in results:
            if tree not in bodies:
                bodies[tree] = NestBody.of(tree, indices, (), free, stored, bodies)
        return cls(bodies, roots, sizes)

    def __call__(self, order: LoopOrder) -> tuple[float, float]:
        """Return the elements of the busiest stream and of all streams in an order."""
        rule = Completion({v: p for p, v in enumerate(order)})
        nests: dict[NestPlace, NestWork] = {}
        for root in self.roots:
            self._take(self._place(root, 1.0, {}, order), rule, order, nests)
        return max([nest.busiest for nest in nests.values()]), sum([nest.work for nest in nests.values()])

    def repeats(self, order: LoopOrder) -> float:
        """Return the work of a region over the work of its producers, each label run once."""
        rule, once = Completion({v: p for p, v in enumerate(order)}), dict[str | Tree, float]()
        for tree in self.bodies:
            work = self._take(self._place(tree, 1.0, {}, order), rule, order, {}).work
            label = tree.label if isinstance(tree, Producer) else tree
            once[label] = min(work, once.get(label, work))
        least = sum(once.values())
        return self(order)[1] / least if least else 1.0

    def savings(self, order: LoopOrder) -> Mapping[str, float]:
        """Return, by the label of a producer, how much work of a region would be saved if each value of the producer were computed once."""
        rule, nests = Completion({v: p for p, v in enumerate(order)}), dict[NestPlace, NestWork]()
        for root in self.roots:
            self._take(self._place(root, 1.0, {}, order), rule, order, nests)
        producers = [(nest, nest.tree) for nest in nests if isinstance(nest.tree, Producer)]
        runs, once = dict[str, float](), dict[str, float]()
        for nest, tree in producers:
            alone = self._whole(self._place(tree, 1.0, {}, order), rule, order)
            once[tree.label] = min(alone, once.get(tree.label, alone))
            runs[tree.label] = runs.get(tree.label, 0.0) + self._whole(nest, rule, order)
        return {label: work - once[label] for label, work in runs.items()}

    def _whole(self, place: NestPlace, rule: Completion, order: LoopOrder) -> float:
        """Return the work of a nest and of the nests inside of it."""
        nests = dict[NestPlace, NestWork]()
        self._take(place, rule, order, nests)
        return sum([nest.work for nest in nests.values()])

    def _place(self, tree: Tree, outside: float, runs: Mapping[str, float], order: LoopOrder) -> NestPlace:
        """Return the facts of the nest of a tree that runs `outside` times, inside loops with these `runs`."""
        below = self.bodies[tree].below
        around = tuple([loop for loop in runs.items() if loop[0] in below])
        return NestPlace(tree, outside, around, tuple([v for v in order if v in below]))

    def _take(self, place: NestPlace, rule: Completion, order: LoopOrder, taken: dict[NestPlace, NestWork]) -> NestWork:
        """Return the work of a nest. The nest and the nests inside of it are added to `taken`."""
        nest = taken.get(place)
        if nest is None:
            nest = self.nests.get(place)
            if nest is None:
                nest = self.nests[place] = self._computed(place, rule, order, taken)
            taken[place] = nest
            for inside in nest.inside:
                self._take(inside, rule, order, taken)
        return nest

    def _computed(self, nest: NestPlace, rule: Completion, order: LoopOrder, taken: dict[NestPlace, NestWork]) -> NestWork:
        """Compute the work of a nest."""
        body, runs = self.bodies[nest.tree], dict(nest.around)
        count, busiest, work, shares = nest.runs, nest.runs, 0.0, dict(body.shares)
        waiting, inside, levels = list(body.producers), list[NestPlace](), list[tuple[str, float]]()
        for v in (*sorted([v for v in body.loops if v not in runs], key=rule.place.__getitem__), None):
            for node in [node for node in waiting if v is None or rule.is_due(node, v, runs)]:
                waiting.remove(node)
                inside.append(self._place(node, count, runs, order))
                for w, share in self._take(inside[-1], rule, order, taken).left.items():
                    shares[w] = shares.get(w, 1.0) * share
            if v is not None:
                runs[v] = count = count * self.sizes[v] * shares.get(v, 1.0)
                levels.append((v, count))
                work += count * body.streams[v]
                busiest = max(busiest, count)
        innermost_first = [*reversed(runs)]
        for indices, number in body.values.items():
            innermost = next((v for v in innermost_first if v in indices), None)
            work += number * (1.0 if innermost is None else runs[innermost])
        folded, left = self._folded(body, levels, nest.runs)
        return NestWork(work + count + folded, busiest, left, tuple(inside))

    def _folded(self, body: NestBody, levels: Sequence[tuple[str, float]], outside: float) -> tuple[float, dict[str, float]]:
        """Return the work of the reductions of a nest whose loops ran as often as `levels` says, and the levels of its result. A
        workspace holds the coordinates that any of the fibers has which it merges."""
        work, left = 0.0, list(levels)
        for p in reversed(range(len(levels))):
            v, reduced = left[p]
            if v not in body.over:
                continue
            above, inner = left[p - 1][1] if p else outside, left[p + 1 :]
            work += left[-1][1] * (1 + len(inner))
            del left[p:]
            old = reduced
            fibers, new = (reduced / above if above else 0.0), above
            for w, count in inner:
                new *= self.sizes[w] * (1 - (1 - self._share(w, count, old)) ** fibers)
                old = count
                left.append((w, new))
        runs_around = [outside, *(count for _, count in left)]
        return work, {v: self._share(v, count, around) for (v, count), around in zip(left, runs_around, strict=False)}

    def _share(self, v: str, count: float, above: float) -> float:
        """Return the share of the coordinates of loop `v` for which it runs `count` times, inside a loop that runs `above` times."""
        full = above * self.sizes[v]
        return min(1.0, count / full) if full else 0.0
