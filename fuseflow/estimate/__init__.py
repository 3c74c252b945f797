"""The estimate: what a graph will cost, from tensor statistics alone, without simulation."""

from fuseflow.estimate.cost import Estimate, estimate, traffic
from fuseflow.estimate.shapes import shapes
from fuseflow.estimate.statistics import TensorStatistics, assume, measure, statistics

__all__ = ["Estimate", "TensorStatistics", "assume", "estimate", "measure", "shapes", "statistics", "traffic"]
