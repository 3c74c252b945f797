"""The estimate of the work of a graph and of the cycles that it takes, without a simulation.

Work is counted exactly from the coordinates that tensors store (`counted`), or expected from their statistics (`fuseflow.costs`).
"""

from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.graph_counts import Work, count_work
from fuseflow.estimate.graph_cycles import Bound
from fuseflow.estimate.stated_statistics import Assumptions, TensorOverlap

__all__ = ["Assumptions", "Bound", "CountMemo", "TensorOverlap", "Work", "count_work"]
