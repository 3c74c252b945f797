"""The estimate: what a graph does and how long that takes, without simulation: counted from tensors, or expected from their statistics."""

from fuseflow.estimate.bound import Bound
from fuseflow.estimate.cost import Estimate, estimate, traffic
from fuseflow.estimate.count import Work, count
from fuseflow.estimate.given import Given
from fuseflow.estimate.memo import Memo
from fuseflow.estimate.pairs import GivenPairs, MeasuredPairs
from fuseflow.estimate.shapes import shapes
from fuseflow.estimate.statistics import TensorStatistics, assume, measure, statistics

__all__ = [
    "Bound",
    "Estimate",
    "Given",
    "GivenPairs",
    "MeasuredPairs",
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
