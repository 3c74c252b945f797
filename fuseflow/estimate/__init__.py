"""The estimate: what a graph does and how long that takes, without simulation: counted from tensors, or expected from their statistics."""

from fuseflow.estimate.assumptions import Assumptions
from fuseflow.estimate.bound import Bound
from fuseflow.estimate.counted.memo import Memo
from fuseflow.estimate.expected.cost import Estimate, estimate, traffic
from fuseflow.estimate.expected.stream_shapes import shapes
from fuseflow.estimate.graph_work import Work, count
from fuseflow.estimate.overlap import AssumedOverlap, MeasuredOverlap
from fuseflow.estimate.statistics import TensorStatistics, assume, measure, statistics

__all__ = [
    "AssumedOverlap",
    "Assumptions",
    "Bound",
    "Estimate",
    "MeasuredOverlap",
    "Memo",
    "TensorStatistics",
    "Work",
    "assume",
    "count",
    "estimate",
    "measure",
    "shapes",
    "statistics",
    "traffic",
]
