"""An oracle of the simulator: every node looks at its inputs in every cycle and fires at most once.

It shares neither code nor idea with the interpreter: time is a loop over cycles, and the only rules are that a token pushed in
cycle t with latency L is there from t + L on, and that a slot counts as free if it was free when the cycle began. A node is a
generator that yields `See(ports)` to be sent the heads of those inputs, `Fire` for a firing (which returns its cycle), or a function
of the cycle that tells whether what the node looks at besides is there. In a cycle without a firing it is starved if it cannot see
what it wants to see, and blocked if it could but may not fire.
"""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from fuseflow.ops import OPERATORS, REDUCERS
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N, Stop, stop
from fuseflow.sim import Machine
from fuseflow.tensors import Tensor


@dataclass
class See:
    ports: tuple[int, ...]


@dataclass
class Fire:
    take: tuple[int, ...] = ()
    give: dict[int, Any] = field(default_factory=dict)
    control: bool = False  # on a stop or `D`
    when: Callable[[int], bool] = lambda now: True  # what else must be free


@dataclass
class Fifo:
    depth: float
    items: deque[tuple[Any, int]] = field(default_factory=deque)
    before: int = 0  # occupancy when the cycle began
    made: int = 0  # tokens that came in this cycle
    peak: int = 0  # most slots in use in a cycle: a token that leaves in it still has its own


@dataclass
class Unit:
    """A node, or half an accumulator."""

    name: str
    steps: Iterator[Any]
    inputs: list[Fifo]
    outputs: list[list[Fifo]]
    records: list[list[tuple[Any, int]]]
    latency: int
    interval: int
    turn: n.Turn | None = None  # at a port that it shares
    request: Any = None
    gap: int = 1
    fired: list[int] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)  # of every cycle since the last firing, why there was none
    starved: int = 0
    blocked: int = 0

    def cycle(self, now: int) -> bool:
        """Advance until the node has fired in this cycle or cannot; whether it fired."""
        while self.request is not None:
            request = self.request
            if isinstance(request, See):
                heads = [self.inputs[k].items[0] if self.inputs[k].items else (None, math.inf) for k in request.ports]
                if any(visible > now for _, visible in heads):
                    return self.wait("starved")
                self.resume([token for token, _ in heads])
            elif isinstance(request, Fire):
                if self.fired and now < self.fired[-1] + self.gap:
                    return self.wait("blocked")
                if any(f.before >= f.depth for k in request.give for f in self.outputs[k]) or not request.when(now):
                    return self.wait("blocked")
                if self.turn is not None and not request.control and now % self.turn.of != self.turn.number:
                    return self.wait("blocked" if self.fired else "starved")
                self.fire(request, now)
                return True
            elif not request(now):
                return self.wait("starved")
            else:
                self.resume(None)
        return False

    def wait(self, why: str) -> bool:
        self.idle.append(why)
        return False

    def fire(self, request: Fire, now: int) -> None:
        for k in request.take:
            self.inputs[k].items.popleft()
        for k, token in request.give.items():
            for fifo in self.outputs[k]:
                fifo.items.append((token, now + self.latency))
                fifo.made += 1
            self.records[k].append((token, now + self.latency))
        self.gap = 1 if request.control else self.interval
        self.fired.append(now)
        self.starved += self.idle.count("starved")
        self.blocked += self.idle.count("blocked")
        self.idle = []
        self.resume(now)

    def resume(self, answer: Any) -> None:
        try:
            self.request = self.steps.send(answer)
        except StopIteration:
            self.request = None


@dataclass
class Outcome:
    """`cycles` is None after a deadlock. `idle`: by node, cycles starved and blocked up to the last firing."""

    cycles: int | None
    fired: dict[str, list[int]]
    idle: dict[str, tuple[int, int]]
    streams: dict[n.Port, list[tuple[Any, int]]]
    peaks: dict[n.Edge, int]


def run(graph: n.Graph, tensors: dict[str, Tensor], machine: Machine) -> Outcome:
    depths, turns = dict(graph.depths), dict(graph.turns)
    readers, types = graph.readers(), graph.types()
    fifos: dict[n.Edge, Fifo] = {}
    streams: dict[n.Port, list[tuple[Any, int]]] = {}
    units: list[Unit] = []
    for node in graph.nodes:
        ports = node.ports
        for edge in (e for port in ports for e in readers.get(port, ())):
            fifos[edge] = Fifo(depths.get(edge, machine.first_depth) or math.inf)
        streams |= {port: [] for port in ports}
        outputs = [[fifos[e] for e in readers.get(port, ())] for port in ports]
        inputs = [fifos[n.Edge(node.name, k)] for k in range(len(node.inputs))]
        read = [types[p] for p in node.inputs]
        latency, interval = timing(node, graph, machine, read)
        folds = isinstance(node, n.Reduce | n.Accumulate)
        for k, steps in enumerate(behaviour(node, graph, tensors, read, latency, machine.handover_depth or math.inf)):
            own = max(interval, machine.interval.fold or 1) if folds and k == 0 else interval  # what emits folds nothing
            units.append(Unit(node.name, steps, inputs, outputs, [streams[p] for p in ports], latency, own, turns.get(node.name)))
            units[-1].resume(None)
    patience = 2 + max(u.latency + u.interval for u in units) + max((turn.of for turn in turns.values()), default=0)
    now = idle = 0
    while any(u.request is not None for u in units) and idle <= patience:
        for fifo in fifos.values():
            fifo.before, fifo.made = len(fifo.items), 0
        busy = sum(u.cycle(now) for u in units)
        for fifo in fifos.values():
            fifo.peak = max(fifo.peak, fifo.before + fifo.made)
        idle = 0 if busy else idle + 1
        now += 1
    fired: dict[str, list[int]] = {}
    idle_of: dict[str, tuple[int, int]] = {}
    for unit in units:
        fired.setdefault(unit.name, []).extend(unit.fired)
        starved, blocked = idle_of.get(unit.name, (0, 0))
        idle_of[unit.name] = starved + unit.starved, blocked + unit.blocked
    ended = all(u.request is None for u in units)
    cycles = 1 + max(max(f) for f in fired.values()) if ended else None
    return Outcome(cycles, fired, idle_of, streams, {edge: fifo.peak for edge, fifo in fifos.items()})


def timing(node: n.Node, graph: n.Graph, machine: Machine, read: list[n.StreamType]) -> tuple[int, int]:
    if isinstance(node, n.Permute):
        node = n.Accumulate(node.name, node.inputs, "sum", len(node.order) - 1)
    unit = "default"
    if isinstance(node, n.Alu | n.Reduce | n.Accumulate) and any(x.tile for x in read):
        elements = math.prod(np.broadcast_shapes(*(x.tile for x in read if x.tile and not node.function.startswith("matmul"))))
        if node.function.startswith("matmul"):
            unit, elements = "mul", math.prod(read[0].tile) * read[1].tile[0 if node.function == "matmul_t" else 1]
        elif node.function == "transpose":
            unit = "logic"
        else:
            named = node.function.removeprefix("row_").removeprefix("col_")
            unit = (OPERATORS.get(node.function) or REDUCERS[named]).unit
        cycles = math.ceil(elements / machine.tile_macs)
        interval = max(machine.interval.of(unit) if isinstance(node, n.Alu) else 1, cycles)
        return machine.latency.of(unit) + interval - 1, interval
    if isinstance(node, n.Alu):
        unit = OPERATORS[node.function].unit
    elif isinstance(node, n.Scan | n.Locate):
        dense = graph.declared[node.tensor].format.levels[node.level].text == "dense"
        unit = "default" if dense else "memory"
    elif isinstance(node, n.Load | n.WriteLevel | n.WriteValues):
        unit = "memory"
    elif isinstance(node, n.Reduce | n.Accumulate):
        return machine.latency.of(REDUCERS[node.function].unit), 1
    return machine.latency.of(unit), machine.interval.of(unit)


def behaviour(
    node: n.Node, graph: n.Graph, tensors: dict[str, Tensor], read: list[n.StreamType], latency: int, handover: float
) -> list[Iterator[Any]]:
    inputs = tuple(range(len(node.inputs)))
    match node:
        case n.Root():
            return [root()]
        case n.Scan():
            level = tensors[node.tensor].levels[node.level]
            return [scan(lambda ref: [] if ref is N else list(zip(*level.fiber(ref), strict=True)), (0, 1))]
        case n.Range():
            return [scan(lambda ref: [(c, c) for c in range(node.size)], (0,))]
        case n.Locate():
            decl = graph.declared[node.tensor]
            size = decl.shape[decl.format.order[node.level]]
            if decl.format.levels[node.level].text != "dense":
                level = tensors[node.tensor].levels[node.level]
                if decl.format.levels[node.level].text == "compressed":
                    return [keep(inputs, level.fiber(0))]
                return [
                    aligned(inputs, lambda c, r=0: N if c is N or r is N else dict(zip(*level.fiber(r), strict=True)).get(c, N))
                ]
            return [aligned(inputs, lambda c, r=0: N if c is N or r is N else r * size + c)]
        case n.Load():
            values, fill = tensors[node.tensor].values.astype(float), graph.declared[node.tensor].fill
            if not graph.declared[node.tensor].tile:
                return [aligned(inputs, lambda ref: fill if ref is N else float(values[ref]))]
            return [aligned(inputs, lambda ref: np.full(graph.declared[node.tensor].tile, fill) if ref is N else values[ref])]
        case n.Alu():
            return [aligned(inputs, alu(node, [x.tile for x in read]))]
        case n.Repeat():
            return [repeat()]
        case n.Join():
            return [join(node)]
        case n.Align():
            return [align(read[2].depth - read[0].depth)]
        case n.Reduce():
            return [reduce(*folding(node.function, read[0].tile))]
        case n.Accumulate():
            return accumulate(node.order, folding(node.function, read[-1].tile)[0], latency, handover)
        case n.Permute():
            return permute(node.order, latency, handover)
        case n.Select():
            return select(node, latency, handover)
        case n.Drop():
            return [drop(len(inputs), node.value)]
        case n.Flatten():
            return [flatten(node.size)]
        case n.SplitLevel():
            return [split(node.size)]
        case n.Fork():
            return [fork(node.lanes)]
        case n.Merge():
            return [merge(inputs, node.levels)]
        case _:
            return [aligned(inputs, None)]


def is_stop(token: Any) -> bool:
    return isinstance(token, Stop)


def out_of(token: Stop, levels: int) -> Stop:
    return stop(max(0, token.low - levels), token.high - levels)


def root():
    yield Fire((), {0: 0})
    yield Fire((), {0: D}, True)


def scan(fiber: Callable[[Any], list[tuple[int, int]]], outs: tuple[int, ...]):
    while True:
        (ref,) = yield See((0,))
        if ref is D or is_stop(ref):
            yield Fire((0,), dict.fromkeys(outs, D if ref is D else ref.raised()), True)
            if ref is D:
                return
            continue
        elements = fiber(ref)
        for k, element in enumerate(elements):
            yield Fire((0,) if k == 0 else (), {out: element[out] for out in outs})
        if not elements:
            yield Fire((0,))
        (after,) = yield See((0,))
        if is_stop(after):
            yield Fire((0,), dict.fromkeys(outs, stop(0, after.high + 1)), True)
        else:
            yield Fire((), dict.fromkeys(outs, stop(0, 0)), True)


def aligned(ports: tuple[int, ...], function: Callable[..., Any] | None):
    while True:
        tokens = yield See(ports)
        control = tokens[0] is D or is_stop(tokens[0])
        give = {} if function is None else {0: tokens[0] if control else function(*tokens)}
        yield Fire(ports, give, control)
        if tokens[0] is D:
            return


def keep(ports: tuple[int, ...], fiber: Any):
    crds, refs = fiber
    for _ in crds:
        yield Fire()
    yield from aligned(ports, lambda crd: N if crd is N else refs[list(crds).index(crd)] if crd in crds else N)


def alu(node: n.Alu, tiles: list[tuple[int, ...]]) -> Callable[..., Any]:
    function = on_tiles(node.function) or on_elements(OPERATORS[node.function].scalar, any(tiles))

    def call(*tokens: Any) -> Any:
        queue = list(zip(tokens, tiles, strict=True))
        values = []
        for o in node.operands:
            token, tile = (o.value, ()) if o.constant else queue.pop(0)
            values.append(token if token is not N else np.full(tile, o.value) if tile else o.value)
        return function(*values)

    return call


def on_elements(scalar: Callable[..., float], tiled: bool) -> Callable[..., Any]:
    if not tiled:
        return scalar
    of_elements = np.vectorize(scalar, otypes=[float])

    def call(*tiles: Any) -> Any:
        with np.errstate(invalid="ignore"):  # an operator may make NaN, as of inf - inf, and that is its result
            return of_elements(*tiles)

    return call


def matmul(a: Any, b: Any) -> Any:
    mul, add = OPERATORS["mul"].scalar, REDUCERS["sum"].scalar
    return element([[functools.reduce(add, map(mul, row, column), 0.0) for column in b.T.tolist()] for row in a.tolist()])


def rows(name: str, a: Any) -> list[list[float]]:
    op = REDUCERS[name]
    return [[functools.reduce(op.scalar, row, op.identity)] for row in a.tolist()]


def element(values: list[list[float]]) -> Any:
    """What a product or a fold leaves: a tile, or a number."""
    return np.array(values) if np.size(values) > 1 else values[0][0]


def on_tiles(name: str) -> Callable[..., Any] | None:
    match name.split("_"):
        case ["matmul"]:
            return matmul
        case ["matmul", "t"]:
            return lambda a, b: matmul(a, b.T)
        case ["transpose"]:
            return lambda a: a.T
        case ["row", reducer]:
            return lambda a: element(rows(reducer, a))
        case ["col", reducer]:
            return lambda a: element([*zip(*rows(reducer, a.T), strict=True)])
    return None


def folding(name: str, tile: tuple[int, ...]) -> tuple[Callable[..., Any], Any]:
    """A reduction's function and identity."""
    op = REDUCERS[name]
    return on_elements(op.scalar, bool(tile)), np.full(tile, op.identity) if tile else op.identity


def repeat():
    while True:
        (signal,) = yield See((1,))
        if signal is D or (is_stop(signal) and signal.low > 0):
            yield See((0,))
            yield Fire((0, 1), {0: signal}, True)
            if signal is D:
                return
            continue
        (x,) = yield See((0,))
        if is_stop(signal):
            yield Fire((0,))
        first = True
        while not is_stop(signal):
            yield Fire((0, 1) if first else (1,), {0: x})
            first = False
            (signal,) = yield See((1,))
        if signal.high > 0:
            yield See((0,))
        yield Fire((0, 1) if signal.high > 0 else (1,), {0: signal}, True)


def join(node: n.Join):
    ports = tuple(range(len(node.inputs)))
    while True:
        heads = yield See(ports)
        crds = [heads[c] for c, _ in node.sides()]
        if all(c is D or is_stop(c) for c in crds):
            yield Fire(ports, dict.fromkeys(range(1 + sum(node.payloads)), crds[0]), True)
            if crds[0] is D:
                return
            continue
        least = min(c for c in crds if not (c is D or is_stop(c)))
        holds = [c == least for c in crds]
        emit = {"intersect": all(holds), "union": True, "left": holds[0]}[node.kind]
        take = tuple(p for held, (c, payloads) in zip(holds, node.sides(), strict=True) if held for p in (c, *payloads))
        payload = [heads[p] if held else N for held, (_, ps) in zip(holds, node.sides(), strict=True) for p in ps]
        yield Fire(take, dict(enumerate([least, *payload])) if emit else {})


def align(e: int):
    held, inside = None, False  # lowest level of the stop still to be emitted; whether `old` had a coordinate in this list
    while True:
        was, now = yield See((0, 1))
        ended = [t is D or is_stop(t) for t in (was, now)]
        if all(ended):
            if not inside:
                yield See((2,))
            end = D if now is D else stop(now.low + e if held is None else held, now.high + e)
            yield Fire((0, 1) if inside else (0, 1, 2), {0: end}, True)
            if now is D:
                return
            held, inside = None, False
            continue
        give = {} if ended[1] or held is None else {0: stop(held, e - 1)}
        held = None if give else held
        if ended[0] or (not ended[1] and now < was):
            yield Fire((1,), give)
            held = e - 1
            continue
        kept = was == now
        yield Fire((0, 1) if kept else (0,), give)
        inside, closed = True, False
        while not closed:
            (x,) = yield See((2,))
            closed = is_stop(x) and x.high >= e - 1
            yield Fire((2,), {0: x} if kept and not closed else {}, is_stop(x))
        held = x.low if kept else held


def reduce(fold: Callable[..., Any], identity: Any):
    total = identity
    while True:
        (v,) = yield See((0,))
        if v is D:
            yield Fire((0,), {0: D}, True)
            return
        if not is_stop(v):
            yield Fire((0,))
            total = fold(total, v)
        elif v.low > 0:
            yield Fire((0,), {0: out_of(v, 1)}, True)
        else:
            yield Fire((0,), {0: total}, True)
            total = identity
            if v.high > 0:
                yield Fire((), {0: out_of(v, 1)}, True)


def accumulate(k: int, fold: Callable[..., Any], latency: int, handover: float) -> list[Iterator[Any]]:
    def put(work: dict[Any, Any], at: tuple[int, ...], v: Any) -> None:
        work[at[1:]] = fold(work[at[1:]], v) if at[1:] in work else v

    return through_workspaces(k, k, put, latency, handover)


def permute(order: tuple[int, ...], latency: int, handover: float) -> list[Iterator[Any]]:
    def put(work: dict[Any, Any], at: tuple[int, ...], v: Any) -> None:
        turned = tuple(at[level] for level in order)
        assert turned not in work
        work[turned] = v

    return through_workspaces(len(order) - 1, len(order), put, latency, handover)


Put: TypeAlias = Callable[[dict[Any, Any], tuple[int, ...], Any], None]


@dataclass
class Handover:
    """What lies between the two halves: workspaces with their stops and the cycles from which emit sees them. Of each token that emit was
    done with, `taken` has the cycle."""

    depth: float
    items: deque[tuple[Any, Any, int]] = field(default_factory=deque)
    taken: list[int] = field(default_factory=list)
    given: int = 0

    def room(self, now: int) -> bool:
        """Whether a slot was free when this cycle began: what left in it still had its own."""
        return self.given - sum(t < now for t in self.taken) < self.depth

    def give(self, work: Any, end: Any, visible: int) -> None:
        self.items.append((work, end, visible))
        self.given += 1


def both(first: Callable[[int], bool], second: Callable[[int], bool]) -> Callable[[int], bool]:
    return lambda now: first(now) and second(now)


def through_workspaces(k: int, crds: int, put: Put, latency: int, handover: float) -> list[Iterator[Any]]:
    """Of k + 1 levels of coordinates that are taken, the `crds` innermost are given."""
    ready = Handover(handover)
    emitted: list[int] = []  # cycle of the last firing of each workspace
    return [fill(k, put, latency, ready, emitted), emit(crds, k + 1 - crds, ready, emitted)]


def fill(k: int, put: Put, latency: int, ready: Handover, emitted: list[int]):
    everything = tuple(range(k + 2))
    key: list[int] = []
    work, started = None, 0
    while True:
        (v,) = yield See((k + 1,))
        if v is D:
            yield See(everything)
            t = yield Fire(everything, {}, True, ready.room)
            ready.give(None, D, t + latency)
            return
        if work is None and not (is_stop(v) and v.low > k):
            work, started = {}, started + 1

        def free(now: int, b: int = started - 3) -> bool:
            """The workspace before the last one is empty: checked by every firing on this one, true from the first on."""
            return b < 0 or (len(emitted) > b and emitted[b] < now)

        if is_stop(v):
            yield from childless(key, k - v.low, free, True)  # on no value, whatever the interval of tiles is
            outer = tuple(i for i in range(k) if v.high >= k - i)
            yield See((*outer, k))
            t = yield Fire((*outer, k, k + 1), {}, True, both(free, ready.room) if v.high >= k else free)
            del key[max(0, k - 1 - v.high) :]
            if v.high >= k:
                ready.give(work, v, t + latency)
                work = None
        else:
            missing = tuple(range(len(key), k))
            found = yield See((*missing, k))
            yield Fire((*missing, k, k + 1), when=free)
            key += found[:-1]
            put(work, (*key, found[-1]), v)


def select(node: n.Select, latency: int, handover: float) -> list[Iterator[Any]]:
    """By trees: a group is a list of entries, each with the numbers of the elements around it, which tell equal coordinates apart."""
    ready = Handover(handover)  # of groups, each with its stop or None
    emitted: list[int] = []
    return [fill_groups(node.every, node.levels - 1, latency, ready, emitted), emit_groups(node, ready, emitted)]


def fill_groups(every: int, k: int, latency: int, ready: Handover, emitted: list[int]):
    everything = tuple(range(k + 2))
    key: list[int] = []
    path = [0] * (k + 1)  # how many elements came before at each level
    group, started = None, 0
    while True:
        (v,) = yield See((k + 1,))
        if v is D:
            yield See(everything)
            t = yield Fire(everything, {}, True, ready.room)
            ready.give(None, D, t + latency)
            return
        follows = False
        if not is_stop(v):
            (c,) = yield See((k,))
            follows = every > 0 and bool(group) and group[-1][1][-1] // every != c // every
        opens = follows or (group is None and not (is_stop(v) and v.low > k))
        started += opens

        def free(now: int, b: int = started - 3) -> bool:
            return b < 0 or (len(emitted) > b and emitted[b] < now)

        if is_stop(v):
            group = [] if opens else group
            opened = len(key)
            yield from childless(key, k - v.low, free, True)
            for level in range(opened, len(key)):
                path[level] += 1
            outer = tuple(i for i in range(k) if v.high >= k - i)
            yield See((*outer, k))
            t = yield Fire((*outer, k, k + 1), {}, True, both(free, ready.room) if v.high >= k else free)
            del key[max(0, k - 1 - v.high) :]
            if v.high >= k:
                ready.give(group, v, t + latency)
                group = None
            continue
        missing = tuple(range(len(key), k))
        found = yield See((*missing, k))
        t = yield Fire((*missing, k, k + 1), when=both(free, ready.room) if follows else free)
        if follows:
            ready.give(group, None, t + latency)
        group = [] if opens else group
        for level in (*missing, k):
            path[level] += 1
        key += found[:-1]
        group.append((tuple(path), (*key, found[-1]), v))


def emit_groups(node: n.Select, ready: Handover, emitted: list[int]):
    keep, k = node.keep, node.levels

    def rank(value: float) -> tuple[bool, float]:
        if math.isnan(value):
            return node.least, 0
        return not node.least, -value if node.greatest else value if node.least else -abs(value)

    while True:
        yield lambda now: bool(ready.items) and ready.items[0][2] <= now
        group, end, _ = ready.items.popleft()
        if end is D:
            yield Fire((), dict.fromkeys(range(k + 1), D), True)
            return
        ranked = sorted(range(len(group or ())), key=lambda i: (rank(group[i][2]), i))
        before = None
        for i in sorted(ranked[:keep]):
            path, key, value = group[i]
            same = 0
            if before is not None:
                same = next(j for j in range(k) if path[j] != before[j])
                if same < k - 1:
                    yield Fire((), on_all(stop(0, k - 2 - same), k), True)
            before = path
            t = yield Fire((), {j: key[j] for j in range(same, k)} | {k: 1.0 if node.marks else value})
        if end is not None:
            low = end.low if group is None else (0 if ranked else k - 1)
            t = yield Fire((), on_all(stop(low, end.high), k), True)
        ready.taken.append(t)
        if group is not None:
            emitted.append(t)


def childless(key: list[int], due: int, free: Callable[[int], bool] = lambda now: True, control: bool = False):
    """Take outer coordinates that have nothing below them, so that `due` are open."""
    missing = tuple(range(len(key), due))
    if missing:
        key += yield See(missing)
        yield Fire(missing, {}, control, free)


def emit(k: int, lost: int, ready: Handover, emitted: list[int]):
    while True:
        yield lambda now: bool(ready.items) and ready.items[0][2] <= now
        work, end, _ = ready.items.popleft()
        if end is D:
            yield Fire((), dict.fromkeys(range(k + 1), D), True)
            return
        entries, before = sorted((work or {}).items(), key=lambda entry: entry[0]), None
        for key, value in entries:
            same = 0
            if before is not None:
                same = next(i for i in range(k) if key[i] != before[i])
                if same < k - 1:
                    yield Fire((), on_all(stop(0, k - 2 - same), k), True)
            before = key
            yield Fire((), {i: key[i] for i in range(same, k)} | {k: value})
        low = max(0, end.low - lost) if work is None else (0 if entries else k - 1)
        t = yield Fire((), on_all(stop(low, end.high - lost), k), True)
        ready.taken.append(t)
        if work is not None:
            emitted.append(t)


def on_all(end: Stop, crds: int) -> dict[int, Stop]:
    """A stop of the values on output `crds`, and on each coordinate stream before it that it ends a list of."""
    return {i: out_of(end, crds - 1 - i) for i in range(crds) if end.high >= crds - 1 - i} | {crds: end}


def drop(count: int, value: float | None):
    everything, m, k = tuple(range(count)), count - 1, count - 2
    key: list[int] = []
    sent, held, kept = 0, -1, False
    while True:
        (v,) = yield See((m,))
        if v is D:
            yield See(everything)
            yield Fire(everything, dict.fromkeys(everything, D), True)
            return
        if is_stop(v):
            yield from childless(key, k - v.low)
            outer = tuple(i for i in range(k) if v.high >= k - i)
            yield See((*outer, k))
            give = {}
            if v.high >= k:
                give = on_all(stop(0 if kept else max(v.low, k), v.high), m)
                held, kept = -1, False
            elif kept:
                held = max(held, v.high)
            yield Fire((*outer, k, m), give, True)
            del key[max(0, k - 1 - v.high) :]
            sent = min(sent, len(key))
            continue
        keep = v is not N and (value is None or v != value)
        if keep and held >= 0:
            yield Fire((), on_all(stop(0, held), m), True)
            held = -1
        missing = tuple(range(len(key), k))
        found = yield See((*missing, k))
        key += found[:-1]
        yield Fire((*missing, k, m), {i: key[i] for i in range(sent, k)} | {k: found[-1], m: v} if keep else {})
        if keep:
            sent, kept = k, True


def flatten(size: int):
    key: list[int] = []
    while True:
        (c,) = yield See((1,))
        if c is D:
            yield See((0,))
            yield Fire((0, 1), {0: D}, True)
            return
        if is_stop(c):
            yield from childless(key, 1 - c.low)
            ends = c.high > 0
            if ends:
                yield See((0,))
            yield Fire((0, 1) if ends else (1,), {0: out_of(c, 1)} if ends else {}, True)
            key = []
        elif key:
            yield Fire((1,), {0: key[0] * size + c})
        else:
            key += yield See((0,))
            yield Fire((0, 1), {0: key[0] * size + c})


def split(size: int):
    current = None
    while True:
        (c,) = yield See((0,))
        if c is D:
            yield Fire((0,), {0: D, 1: D}, True)
            return
        if is_stop(c):
            yield Fire((0,), {0: c, 1: c.raised() if current is None else stop(0, c.high + 1)}, True)
            current = None
            continue
        if current not in (None, c // size):
            yield Fire((), {1: stop(0, 0)}, True)
            current = None
        yield Fire((0,), {1: c % size} if current is not None else {0: c // size, 1: c % size})
        current = c // size


def fork(lanes: int):
    turn = 0
    while True:
        (x,) = yield See((0,))
        if x is D or is_stop(x):
            yield Fire((0,), dict.fromkeys(range(lanes), x), True)
            if x is D:
                return
        else:
            yield Fire((0,), {turn: x})
            turn = (turn + 1) % lanes


def merge(lanes: tuple[int, ...], m: int):
    # What is known of each lane in the current dealt list: `fresh` before its first element, `ended` after its last one.
    turn, state = 0, ["fresh"] * len(lanes)
    while True:
        (x,) = yield See((turn,))
        here, following = turn, (turn + 1) % len(lanes)
        if x is D or (is_stop(x) and x.low >= m):
            yield See(lanes)
            yield Fire(lanes, {0: x}, True)
            if x is D:
                return
        elif not is_stop(x):
            yield Fire((here,), {0: x})
            turn = following if m == 0 else turn
        elif x.high < m:
            yield Fire((here,), {0: x}, True)
            if x.high == m - 1:
                state[here], turn = "open", following
        else:
            state[here], turn = "ended", following
            if state[turn] == "fresh":
                (head,) = yield See((turn,))
                goes_on = not (is_stop(head) and head.low >= m)
            else:
                goes_on = state[turn] == "open"
            if goes_on:
                yield Fire((here,), {0: stop(x.low, m - 1)}, True)
            else:
                fresh = tuple(k for k in lanes if state[k] == "fresh")
                yield See(fresh)
                yield Fire((here, *fresh), {0: x}, True)
                state = ["fresh"] * len(lanes)
