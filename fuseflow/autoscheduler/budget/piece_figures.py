"""The figures of the regions of a search. Regions that differ in names alone are estimated once: a model repeats its layers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from fuseflow.autoscheduler.budget.figures import RegionFigures
from fuseflow.estimate.graph_work import Work
from fuseflow.estimate.program import Estimator, EstimatorRegion, TensorKnowledge
from fuseflow.sim import Machine


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedPiece:
    """A region that was estimated, with the names of its tensors and of its nodes. A region that differs from it in names alone has others
    in the same places."""

    figures: RegionFigures
    work: Work
    tensors: tuple[str, ...]
    nodes: tuple[str, ...]


@dataclass(slots=True)
class PieceFigures:
    """The figures of regions in one lane on a machine."""

    estimator: Estimator
    machine: Machine
    _pieces: dict[Hashable, EstimatedPiece] = field(default_factory=dict)

    def add(self, piece: EstimatorRegion, knowledge: TensorKnowledge) -> tuple[Hashable, RegionFigures]:
        """Return a key that is equal for regions of one cost, and the figures of a region; and add what it writes to `knowledge`."""
        self.estimator.add_views(piece.views_before, knowledge)
        key, (tensors, _) = self.estimator.key(piece.graph, knowledge), self.estimator.shape(piece.graph)
        nodes = tuple(node.name for node in piece.graph.nodes)
        if key not in self._pieces:
            self._pieces[key] = self._estimated(piece, knowledge, tensors, nodes)
        same = self._pieces[key]
        knowledge.write(piece.graph, same.work, dict(zip(same.tensors, tensors, strict=True)))
        self.estimator.add_views(piece.views_after, knowledge)
        return key, same.figures if same.nodes == nodes else same.figures.renamed(dict(zip(same.nodes, nodes, strict=True)))

    def _estimated(
        self, piece: EstimatorRegion, knowledge: TensorKnowledge, tensors: tuple[str, ...], nodes: tuple[str, ...]
    ) -> EstimatedPiece:
        estimate = self.estimator.region(piece, self.machine, knowledge.copy())
        return EstimatedPiece(RegionFigures.of(estimate, self.machine), estimate.work, tensors, nodes)
