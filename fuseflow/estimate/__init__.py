"""The estimate: what a graph does and how many cycles that takes, without a simulation.

Work is counted exactly from the coordinates that tensors store (`counted`), or expected from their statistics (`expected`).
"""

from fuseflow.estimate.assumptions import Assumptions
from fuseflow.estimate.bound import Bound
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.expected.cost import Estimate, estimate_graph, expected_traffic
from fuseflow.estimate.expected.stream_shapes import stream_shapes
from fuseflow.estimate.graph_work import Work, count_work
from fuseflow.estimate.overlap import AssumedOverlap, MeasuredOverlap
from fuseflow.estimate.statistics import TensorStatistics, assume_statistics, collect_statistics, measure_statistics

__all__ = [
    "AssumedOverlap",
    "Assumptions",
    "Bound",
    "CountMemo",
    "Estimate",
    "MeasuredOverlap",
    "TensorStatistics",
    "Work",
    "assume_statistics",
    "collect_statistics",
    "count_work",
    "estimate_graph",
    "expected_traffic",
    "measure_statistics",
    "stream_shapes",
]
