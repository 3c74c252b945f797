"""A team of threads runs one graph. It is formed in the middle of a run, when the run turns out to be long. Between two of its
runs, the layout is as if one thread had run it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier

import numpy as np

from fuseflow.memory.buffer_assignment import early_readers, preloaded_readers
from fuseflow.memory.fronts import Fronts, divides
from fuseflow.memory.ports import LATE
from fuseflow.native.barrier import BARRIER_WORDS
from fuseflow.native.bitsets import bit_set
from fuseflow.native.kernel_library import Library
from fuseflow.native.records import COMPILED, address, zeros
from fuseflow.native.signatures import ADVANCE, SWEEP_TOGETHER, Function
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.loop import SHORT, STATUS_COUNT
from fuseflow.sim.engine.network_layout import NetworkLayout
from fuseflow.sim.engine.node_layout import Array
from fuseflow.sim.engine.stream_rings import READER, READER_SIZE, STREAM, STREAM_SIZE
from fuseflow.sim.engine.threaded_loop import (
    BOARD,
    BOARD_SIZE,
    BORDER,
    BORDER_SIZE,
    CROSSING,
    CROSSING_SIZE,
    WORKER,
    WORKER_SIZE,
    sweep_in_threads,
)
from fuseflow.sim.engine.visits import ABROAD, AGENDA, AGENDA_SIZE, ASKER, OUTLOOK, SETS, STEP, UNASKED
from fuseflow.sim.processors import PROCESSORS

CLUSTERS = 4
"""A cluster of nodes has at most the work of a thread divided by this, so that clusters can be dealt out evenly."""
VISIT, FIRING = 80, 6
"""The rough nanoseconds of a visit of a part, and of a firing. Tuned on attention with 16 lanes on `rda`, tried with 64 lanes."""
LEAST_WORK = 4000
"""The nanoseconds of work in a window of the memory for each thread, from which on another thread pays: threads meet three times in a
window. Tuned and tried as above."""


def threads_that_pay(layout: NetworkLayout, most: int) -> int:
    """Return how many threads, up to `most`, have enough work between two meetings: one where the memory answers at once, since a thread
    then runs so far in one go that the others wait for it."""
    if layout.controller is None:
        return 1
    windows = max(layout.controller.memory.cycle // layout.controller.step, 1)
    return min(max(int(_work(layout).sum() / windows / LEAST_WORK), 1), most)


def thread_of_parts(layout: NetworkLayout, threads: int) -> Array:
    """Return the thread of each part, by the work of all parts until now. All parts of a unit have one thread."""
    owners = _units(layout)
    work = np.bincount(owners, _work(layout))
    clusters = _clusters(layout, owners, work, work.sum() / threads / CLUSTERS)
    load, thread_of = np.zeros(threads), np.zeros(len(work), np.int64)
    cluster_work = np.bincount(clusters, work)
    for cluster in np.argsort(-cluster_work, kind="stable").tolist():
        thread_of[cluster] = thread = int(load.argmin())
        load[thread] += cluster_work[cluster]
    parts: Array = thread_of[clusters[owners]]
    return parts


def _units(layout: NetworkLayout) -> Array:
    """Return the unit of each part: parts of a node stay together, and so do nodes that read one preloaded tensor, since all wait
    at the ports of the first, and the root with the nodes that wait for what it loads into the scratchpad."""
    numbers: dict[str, int] = {}
    preloaded, early = preloaded_readers(layout.graph), early_readers(layout.graph)

    def name(part: int, owner: n.Node | None) -> str:
        if owner is None:
            return f"part {part}"
        if isinstance(owner, n.Load) and owner.name in preloaded:
            return f"tensor {owner.tensor}"
        return "loads" if isinstance(owner, n.Root) or owner.name in early else f"node {owner.name}"

    return np.array([numbers.setdefault(name(p, owner), len(numbers)) for p, owner in enumerate(layout.owners)])


def _work(layout: NetworkLayout) -> Array:
    """Return the work of each part until now, in nanoseconds."""
    moves = layout.arrays[int(layout.agenda["outlooks"][0])]["moves"]
    work: Array = VISIT * (moves + 1) + FIRING * layout.nodes["firings"]
    return work


def _clusters(layout: NetworkLayout, owners: Array, work: Array, most: float) -> Array:
    """Return the cluster of each node: nodes between which many runs of tokens went are together, up to `most` work."""
    cluster, total = list(range(len(work))), work.tolist()

    def find(node: int) -> int:
        while cluster[node] != node:
            cluster[node] = node = cluster[cluster[node]]
        return node

    traffic = layout.readers["head"]
    for r in np.argsort(-traffic, kind="stable").tolist():
        reader = layout.edges[r]
        first, second = find(owners[layout.writer_of[reader.stream]]), find(owners[reader.part])
        if first != second and total[first] + total[second] <= most:
            cluster[second] = first
            total[first] += total[second]
    return np.array([find(node) for node in range(len(cluster))])


@contextmanager
def team_for(layout: NetworkLayout, library: Library) -> Iterator[Team | None]:
    """Yield a team for a layout that has run for a while, or None if one thread is as fast, or if no processor is free."""
    forced = layout.limits.threads
    if not COMPILED or not (layout.controller is None or divides(layout.controller)):
        taken = 0
    elif forced:
        taken = forced - 1
    else:
        taken = PROCESSORS.take(threads_that_pay(layout, PROCESSORS.count) - 1)
    pool = _started(taken)
    try:
        if pool is None:
            yield None
            return
        team = Team(layout, library, thread_of_parts(layout, taken + 1), pool)
        try:
            yield team
        finally:
            team.dissolve()
    finally:
        if pool is not None:
            pool.shutdown()
        PROCESSORS.give_back(0 if forced else taken)


def _started(threads: int) -> ThreadPoolExecutor | None:
    """Return a pool whose `threads` threads have all started, since they wait for each other later. Return None for no threads, or
    if the system starts no more."""
    if threads < 1:
        return None
    pool, ready = ThreadPoolExecutor(threads), Barrier(threads + 1)
    try:
        for _ in range(threads):
            pool.submit(ready.wait)
        ready.wait()
    except RuntimeError:
        ready.abort()
        pool.shutdown()
        return None
    return pool


class Team:
    """A team for a layout, whose thread `thread_of[k]` runs part k, until it dissolves. `pool` has a thread for each but this one."""

    def __init__(self, layout: NetworkLayout, library: Library, thread_of: Array, pool: ThreadPoolExecutor) -> None:
        self.layout, self.thread_of, self.pool = layout, thread_of, pool
        threads = int(thread_of.max()) + 1
        self.threads, self.count = threads, len(layout.parts)
        self.kept: list[Array] = []
        """The arrays that kernels find by address."""
        self._cross()
        self.outlooks = OUTLOOK.array(2 * self.count)
        """Of all parts, and behind these what is published about them to other threads."""
        self.agendas, self.borders, self.sets = AGENDA.array(threads), BORDER.array(threads), list[dict[str, Array]]()
        self.agendas[:] = layout.agenda
        self.agendas["outlooks"] = address(self.outlooks)
        for thread in range(threads):
            self._fill_agenda(thread)
        self.workers, self.boards = WORKER.array(threads), BOARD.array(threads)
        self.fronts = self._fill_workers(library)
        self.loop: Function = library.compiled(sweep_in_threads, SWEEP_TOGETHER)

    def turn(self, budget: int) -> tuple[int, int]:
        """Run for about `budget` firings, or until the engine is needed. Return the status and the cycle as `sweep_at_memory` does."""
        self._enter()
        workers = [address(self.workers) + WORKER_SIZE * thread for thread in range(self.threads)]
        others = [self.pool.submit(self.loop, worker, budget) for worker in workers[1:]]
        result = self.loop(workers[0], budget)
        assert all(other.result() == result for other in others), "all threads go through the same steps"
        self._leave()
        cycle, status = divmod(result, STATUS_COUNT)
        if status == SHORT:
            self._make_room()
        return status, cycle

    def dissolve(self) -> None:
        """Make the memory one again. The team does not run any more."""
        if self.fronts is not None:
            self.fronts.join()

    def _cross(self) -> None:
        """Find the streams between threads, and make their views and proxies."""
        layout, edges = self.layout, self.layout.edges
        writers = np.array([layout.writer_of[edge.stream] for edge in edges], np.int64)
        readers = np.array([edge.part for edge in edges], np.int64)
        self.crossed = np.flatnonzero(self.thread_of[writers] != self.thread_of[readers])
        self.streams = np.array([edges[r].stream for r in self.crossed], np.int64)
        self.writers, self.readers = writers[self.crossed], readers[self.crossed]
        order = np.array([r for numbers in layout.readers_of for r in numbers], np.int64)
        self.places = np.argsort(order)[self.crossed]
        count = len(self.crossed)
        self.views, self.proxies, self.crossings = STREAM.array(count), READER.array(count), CROSSING.array(count)
        for name, records, size, numbers in (
            ("stream", layout.streams, STREAM_SIZE, self.streams),
            ("reader", layout.readers, READER_SIZE, self.crossed),
            ("window", self.views, STREAM_SIZE, np.arange(count)),
            ("proxy", self.proxies, READER_SIZE, np.arange(count)),
        ):
            self.crossings[name] = address(records) + size * numbers
        self.crossings["writer_part"], self.crossings["reader_part"] = self.writers, self.readers

    def _keep(self, array: Array) -> int:
        self.kept.append(array)
        return address(array)

    def _fill_agenda(self, thread: int) -> None:
        """Tell a thread which parts of the graph are its own, in the record of its agenda, and which streams it shares with other
        threads, in the record of its border."""
        layout, agenda, border = self.layout, self.agendas[thread], self.borders[thread]
        own, words = self.thread_of == thread, int(agenda["words"])
        members = bit_set(np.flatnonzero(own), words)
        self.sets.append({name: np.zeros(words, np.int64) for name in SETS} | {"members": members})
        for name, array in self.sets[-1].items():
            agenda[name] = address(array)
        neighbours = layout.arrays[int(agenda["neighbours"])].copy()
        neighbours[:, 1] &= members[neighbours[:, 0]]
        agenda["neighbours"] = self._keep(neighbours)
        near = own[self.writers] | own[self.readers]
        ends = np.concatenate([self.writers[near], self.readers[near]])
        crossings = np.tile(address(self.crossings) + CROSSING_SIZE * np.flatnonzero(near), 2)
        order = np.argsort(ends, kind="stable")
        border["first"] = self._keep(np.searchsorted(ends[order], np.arange(self.count + 1)))
        border["crossings"] = self._keep(crossings[order])
        border["mine"], border["others"] = (self._keep(bit_set(ends[own[ends] == mine], words)) for mine in (True, False))
        asking, shown = layout.arrays[int(agenda["askers"])]["part"], np.unique(ends[own[ends]])
        hidden = np.setdiff1d(asking[own[asking]], shown)
        askers, index = ASKER.array(len(hidden) + len(shown)), np.zeros(self.count, np.int64)
        askers["part"], agenda["shown"] = np.concatenate([hidden, shown]), len(hidden)
        askers["bound"] = np.where(np.isin(askers["part"], asking), 0, UNASKED)
        index[askers["part"]] = np.arange(len(askers))
        agenda["askers"], agenda["asking"], border["askers"] = self._keep(askers), len(askers), self._keep(index)
        agenda["path"] = self._keep(STEP.array(self.count))

    def _fill_workers(self, library: Library) -> Fronts | None:
        """Fill the workers, and return the fronts of the memory that they use, if there is one."""
        workers, controller = self.workers, self.layout.controller
        threads = np.arange(self.threads)
        workers["nodes"], workers["threads"], workers["number"] = address(self.layout.nodes), self.threads, threads
        for name, records, size in (
            ("agenda", self.agendas, AGENDA_SIZE), ("border", self.borders, BORDER_SIZE), ("board", self.boards, BOARD_SIZE),
        ):  # fmt: skip
            workers[name] = address(records) + size * threads
        workers["workers"], workers["barrier"] = address(workers), self._keep(zeros(BARRIER_WORDS, np.int64))
        if controller is None:
            return None
        numbers = {node.name: thread for node, thread in zip(self.layout.owners, self.thread_of.tolist(), strict=True) if node}
        thread_of_ports = np.array([numbers[port.node] for port in controller.ports], np.int64)
        fronts = Fronts(controller, thread_of_ports, self.threads)
        workers["now"] = controller.memory.cycle
        workers["memory"], workers["step"] = [fronts.front(thread) for thread in range(self.threads)], controller.step
        for name in ("send", "run", "receive"):
            function = getattr(fronts.model, name)
            workers[name] = 0 if function is None else library.address(function, ADVANCE)
        return fronts

    def _enter(self) -> None:
        """Let each thread see the layout from its side of the border."""
        layout, main = self.layout, self.layout.agenda[0]
        self.views[:], self.proxies[:] = layout.streams[self.streams], layout.readers[self.crossed]
        self.views["writer"] += self.count
        self.proxies["part"] += self.count
        layout.readers["stream"][self.crossed] = self.crossings["window"]
        layout.reader_addresses[self.places] = self.crossings["proxy"]
        layout.streams["sealed"][self.streams] = layout.streams["tail"][self.streams]
        layout.readers["sealed"][self.crossed] = layout.readers["noted"][self.crossed]
        for name in SETS[:3]:
            for sets in self.sets:
                sets[name][:] = layout.arrays[int(main[name])] & sets["members"]
        own, published = self.outlooks[: self.count], self.outlooks[self.count :]
        own[:] = layout.arrays[int(main["outlooks"])]
        own["awaited"] += self.count * ((own["awaited"] >= 0) & (self.thread_of[own["awaited"]] != self.thread_of))
        published["ready"], published["moves"], published["awaited"] = layout.nodes["ready"], own["moves"], ABROAD

    def _leave(self) -> None:
        """Let one thread see the layout as it is."""
        layout, main, own = self.layout, self.layout.agenda[0], self.outlooks[: self.count]
        layout.readers["slot_cursor"][self.crossed] = self.proxies["slot_cursor"]
        layout.readers["stream"][self.crossed] = self.crossings["stream"]
        layout.reader_addresses[self.places] = self.crossings["reader"]
        for name in SETS[:3]:
            layout.arrays[int(main[name])][:] = np.bitwise_or.reduce([sets[name] for sets in self.sets])
        own["awaited"] -= self.count * (own["awaited"] >= self.count)
        layout.arrays[int(main["outlooks"])][:] = own

    def _make_room(self) -> None:
        """Make room for the transactions of channels that have none."""
        assert self.fronts is not None
        for short in self.boards["short"].tolist():
            assert short != LATE, "a request is older than the end of the last window"
            if short != 0:
                self.fronts.memory.model.grow(short)
