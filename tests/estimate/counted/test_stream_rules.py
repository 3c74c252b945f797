"""Rules of counted streams on nests that are written by hand."""

from __future__ import annotations

import numpy as np

from fuseflow.estimate import CountMemo
from fuseflow.estimate.counted.stream_rules import StreamRules
from fuseflow.estimate.counted.stream_trie import FiberLevel, FiberNest


def test_an_empty_list_stays_where_it_is_when_labels_come_in_another_order():
    """The first of two lists is empty. Their labels descend, so that the distinct lists are numbered the other way round."""
    outer, other = (FiberNest(None, np.array([0]), FiberLevel(np.array([0, 2]), np.array([0, 1]), 2)) for _ in range(2))
    signal = FiberNest(outer, np.array([0, 1]), FiberLevel(np.array([0, 0, 2]), np.array([0, 1]), 2))
    repeated = StreamRules(CountMemo(), {}, {}, frozenset())._labelled(other, np.array([1, 0]), signal)
    assert repeated.nest is not None
    assert repeated.nest.list_lengths.tolist() == [0, 2]
