"""The partition of a graph: which thread runs the parts of each node.

Nodes that exchange many runs of tokens stay together, as far as no thread gets too much of the work.
"""

from __future__ import annotations

import numpy as np

from fuseflow.memory.buffer_assignment import early_readers, preloaded_readers
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.network_layout import NetworkLayout
from fuseflow.sim.engine.node_layout import Array

CLUSTERS = 4
"""A cluster of nodes has at most the work of a thread divided by this, so that clusters can be dealt out evenly."""
VISIT, FIRING = 80, 6
"""The nanoseconds that a visit of a part takes, and a firing, roughly. Tuned on attention with 16 lanes on `rda`, and tried with 64
lanes."""
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
