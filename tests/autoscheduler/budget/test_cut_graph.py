"""Ranges that differ in names alone share an estimate, and where there are many cuts, longer ranges begin at few states of each."""

from __future__ import annotations

from dataclasses import fields, replace
from unittest.mock import patch

import numpy as np
import pytest
from budget_spaces import random_source

from fuseflow.autoscheduler.budget import cut_graph
from fuseflow.autoscheduler.budget.cut_graph import CutGraph, OrderedRange, RegionFigures
from fuseflow.autoscheduler.budget.paths import RangeOption, cheapest_paths
from fuseflow.autoscheduler.budget.program_variants import VariantFactory
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.einsum.parse import parse
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.frontend.imported_program import Source
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine
from fuseflow.tensors import Format, pack

RDA, NONE = load_machine("rda"), Schedule.fuse("none")


def repeated_source(layers: int, size: int = 6) -> Source:
    """Return a program of layers that differ in names alone."""
    rng = np.random.default_rng(3)
    adjacency = np.round(rng.normal(size=(size, size)), 2) * (rng.random((size, size)) < 0.4)
    lines = [f"tensor A[{size}, {size}] csr", f"tensor T0[{size}, {size}] dense"]
    for n in range(layers):
        lines += [
            f"Y{n}[i, j] = sum(k) A[i, k] * T{n}[k, j]",
            f"T{n + 1}[i, j] = max(Y{n}[i, j], 0)",
        ]
    program = parse("\n".join([*lines, f"output T{layers}"]) + "\n")
    tensors = {"A": pack(adjacency, Format.parse("csr", 2)), "T0": pack(rng.normal(size=(size, size)), Format.dense(2))}
    return Source("layers", program, tensors)


def cut(source: Source) -> CutGraph:
    variant = VariantFactory(source, RDA, Estimator(assume_unknown=True), NONE)(NONE)
    assert variant is not None
    return variant.graph


def all_edges(graph: CutGraph) -> list[OrderedRange]:
    return [e for s in graph.states() if s.cut < graph.last for e in graph.edges(s) if e.pieces]


@pytest.mark.parametrize("source", [repeated_source(3), random_source(5), random_source(9)], ids=["layers", "5", "9"])
def test_figures_that_are_shared_are_those_of_each_range(source: Source) -> None:
    for edge in all_edges(cut(source)):
        estimator, knowledge = Estimator(assume_unknown=True), edge.before.knowledge.copy()
        for piece, figures in zip(estimator_regions(edge.pieces), edge.figures, strict=True):
            own = RegionFigures.of(estimator.region(piece, RDA, knowledge), RDA)
            for field in fields(own):
                assert getattr(figures, field.name) == getattr(own, field.name), field.name
        for name in edge.after.knowledge.formats:
            assert edge.after.knowledge.statistics[name] == knowledge.statistics[name]


def test_ranges_that_differ_in_names_alone_are_estimated_once() -> None:
    graph = cut(repeated_source(6))
    with patch.object(Estimator, "region", autospec=True, side_effect=Estimator.region) as region:
        edges = all_edges(graph)
    keys = {key for edge in edges for key in edge.key[0]}  # type: ignore[index]  # the keys of its pieces come first
    assert region.call_count == len(keys) < len(edges) / 2


def test_longer_ranges_begin_at_the_states_that_are_reached_first() -> None:
    source = random_source(29)
    wide, narrow = cut(source), cut(source)
    all_paths = cheapest_paths(wide, lambda edge: [RangeOption(edge.figures[-1].cycles if edge.pieces else 0.0)], 1)
    with patch.object(cut_graph, "SETTINGS", replace(SETTINGS, many_states=1)):
        few_paths = cheapest_paths(narrow, lambda edge: [RangeOption(edge.figures[-1].cycles if edge.pieces else 0.0)], 1)
    assert narrow.edge_count < wide.edge_count
    assert all_paths[0].cycles <= few_paths[0].cycles
    for state in narrow.states(fused=False):
        if state.cut < narrow.last:
            assert narrow.edges(state, fused=False)


def test_orders_differ_in_more_than_loops_of_one_coordinate() -> None:
    text = "tensor X[1, 6, 5]\ntensor W[5, 4]\nT[b, i, j] = sum(k) X[b, i, k] * W[k, j]\noutput T\n"
    program, rng = parse(text), np.random.default_rng(0)
    tensors = {t.name: pack(rng.normal(size=t.shape), Format.dense(len(t.shape))) for t in program.inputs}
    graph = cut(Source("batch", program, tensors))
    products = [edge.order for edge in graph.edges(graph.start, fused=False)]
    assert len(products) == len({tuple(index for index in order if index != "b") for order in products}) == 6
