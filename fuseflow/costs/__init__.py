"""What graphs are expected to cost: the statistics of tensors, the streams that follow from them, and firings, FLOPs, bytes and cycles."""

from fuseflow.costs.cost import Estimate, estimate_graph, expected_traffic
from fuseflow.costs.statistics import TensorStatistics, assume_statistics, collect_statistics, measure_statistics
from fuseflow.costs.stream_shapes import stream_shapes

__all__ = [
    "Estimate",
    "TensorStatistics",
    "assume_statistics",
    "collect_statistics",
    "estimate_graph",
    "expected_traffic",
    "measure_statistics",
    "stream_shapes",
]
