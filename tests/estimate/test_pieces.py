"""Graphs that are counted in pieces against their runs, number for number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from counted_graphs import IDEAL, SPMM, counted, differences, stored
from random_graphs import random_case

from fuseflow.estimate import CountMemo, stream_walk
from fuseflow.estimate.counted import patterns
from fuseflow.estimate.counted.patterns import tensor_pattern
from fuseflow.estimate.counted.stream_trie import FiberLevel
from fuseflow.samml.text import parse
from fuseflow.sim import simulate
from fuseflow.tensors import Format, Tensor, pack
from fuseflow.tensors.pack import repack

LARGER = SPMM.replace("[3, 4]", "[30, 40]").replace("[4, 5]", "[40, 50]").replace("[3, 5]", "[30, 50]")
GRAPH = parse(LARGER.format(a="csr", x="csr"))


def sparse_tensors() -> dict[str, Tensor]:
    rng = np.random.default_rng(0)
    shapes = {"A": (30, 40), "X": (40, 50)}
    arrays = {name: np.where(rng.random(shape) < 0.1, 1.0 + rng.random(shape), 0.0) for name, shape in shapes.items()}
    tensors = {name: pack(array, Format.parse("csr", 2)) for name, array in arrays.items()}
    return {name: replace(tensor, values=tensor.values.astype("f4")) for name, tensor in tensors.items()}


@contextmanager
def counts_in_pieces() -> Iterator[list[object]]:
    """Give a list of what was counted in pieces inside of the `with`."""
    in_pieces, count = list[object](), stream_walk.count_pieces

    def counting(*given: Any) -> object:
        streams = count(*given)
        if streams is not None:
            in_pieces.append(streams)
        return streams

    with patch("fuseflow.estimate.graph_counts.count_pieces", counting):
        yield in_pieces


def test_a_product_in_pieces_is_that_of_the_run():
    tensors = sparse_tensors()
    run, smallest = simulate(GRAPH, tensors, IDEAL), dict[str, int]()
    for budget in reversed(range(20, 900, 20)):
        work = counted(GRAPH, tensors, memo=CountMemo(budget, pieces=64))
        if work.exact:
            smallest["in pieces"] = budget
            assert not differences(work, run), f"budget {budget}"
        if "Y" in work.patterns:
            assert stored(work.patterns["Y"]) == stored(tensor_pattern(run.outputs["Y"]))
        with patch("fuseflow.estimate.graph_counts.count_pieces", lambda *given: None):
            if counted(GRAPH, tensors, memo=CountMemo(budget, pieces=64)).exact:
                smallest["at once"] = budget
    assert smallest["in pieces"] < smallest["at once"]


KEPT = parse("""
graph kept
tensor A[30, 40]  csr
tensor X[40, 50]  dcsr
tensor Y[30]  dense
output Y
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
X_k = locate(A_k.crd) X.0
X_j = scan(X_k) X.1
X_val = load(X_j.ref) X
acc = accumulate(A_k.crd, X_j.crd, X_val) sum order=1
outer = reduce(acc.val) sum
write_i = write(A_i.crd) Y.0
write_val = write(outer) Y.vals
""")


def test_a_level_that_is_kept_is_read_by_the_first_piece():
    tensors = sparse_tensors()
    tensors["X"] = repack(tensors["X"], KEPT.declared["X"].format)
    run = simulate(KEPT, tensors, IDEAL)
    with counts_in_pieces() as in_pieces:
        for budget in range(20, 900, 20):
            work = counted(KEPT, tensors, memo=CountMemo(budget, pieces=64))
            assert not work.exact or not differences(work, run), f"budget {budget}"
    assert in_pieces


COUNTED_IN_PIECES = (334, 642, 734, 1031)
"""Seeds of random graphs that are small enough in pieces, and not as a whole: one in two hundred."""


def test_random_graphs_in_pieces():
    with counts_in_pieces() as in_pieces:
        for seed in (*range(150), *COUNTED_IN_PIECES):
            case = random_case(seed)
            graph, machine = replace(case.graph, depths=()), case.machine.model_copy(update={"fifo_depth": None})
            for budget in (16, 64, 256):
                work = counted(graph, case.tensors, machine, CountMemo(budget, pieces=64))
                if work.exact:
                    assert not differences(work, simulate(graph, case.tensors, machine)), f"seed {seed}, budget {budget}"
    assert len(in_pieces) >= len(COUNTED_IN_PIECES)


def test_a_piece_that_has_a_coordinate_too_few_is_noticed():
    tensors = sparse_tensors()
    run = simulate(GRAPH, tensors, IDEAL)

    def inside(level: FiberLevel, piece: tuple[int, int]) -> object:
        return (level.crd > piece[0]) & (level.crd < piece[1])

    with patch.object(patterns, "_inside", inside):
        work = counted(GRAPH, tensors, memo=CountMemo(400, pieces=64))
    assert work.exact and differences(work, run)
