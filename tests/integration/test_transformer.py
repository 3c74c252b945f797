"""Transformers from end to end: regions, cycles, masked products, at every granularity."""

from __future__ import annotations

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from tests.support.decoder import HEAD, HEADS, attention, decoders, mask


def compiled(text: str, fuse: str, machine: str = "ideal") -> ff.compiler.Compiled:
    program, rng = parse(text), np.random.default_rng(0)
    tensors = {t.name: rng.standard_normal(t.shape).astype(np.float32) for t in program.inputs}
    return ff.compile(program, tensors={**tensors, "M": mask()}, schedule=ff.Schedule.fuse(fuse), machine=machine)


def ran(program: ff.compiler.Compiled, **options) -> ff.compiler.Result:
    result = program.run(**options)
    assert result.check is not None and result.check.passed
    return result


@pytest.mark.parametrize("fuse", ["none", "layerwise", "full"])
@pytest.mark.parametrize("text", [attention(), decoders(1)], ids=["attention", "decoder"])
def test_granularities(text, fuse) -> None:
    ran(compiled(text, fuse))


def test_two_decoders() -> None:
    names = {fuse: [(r.name, len(r.einsums)) for r in compiled(decoders(2), fuse).regions] for fuse in ("layerwise", "full")}
    c1, c2, rest = 7, 6, 7
    assert names["layerwise"] == [("h.0", c1), ("h.0-2", c2), ("h.0-3", rest), ("h.1", c1), ("h.1-2", c2), ("h.1-3", rest)]
    assert names["full"] == [("full", c1), ("full-2", c2), ("full-3", rest + c1), ("full-4", c2), ("full-5", rest)]
    layers, whole = (ran(compiled(decoders(2), fuse)) for fuse in ("layerwise", "full"))
    assert [(r.name, r.times) for r in layers.regions] == [("h.0", 2), ("h.0-2", 2), ("h.0-3", 2)]
    assert [(r.name, r.times) for r in whole.regions] == [("full", 1), ("full-2", 2), ("full-3", 1), ("full-5", 1)]
    assert layers.cycles == ran(compiled(decoders(2), "layerwise"), dedup=False).cycles > whole.cycles


def products(result: ff.compiler.Result) -> int:
    return sum(r.times * r.simulation.operators.get("mul", 0) for r in result.regions)


def test_a_mask_samples_the_products() -> None:
    """Fused, scores are computed where the mask stores something; alone, all are."""
    kept, each = int(mask().sum()), HEADS * HEAD
    assert products(ran(compiled(attention(), "full"))) == 2 * kept * each
    assert products(ran(compiled(attention(), "none"))) == (mask().size + kept) * each


def test_a_mask_without_entries_needs_no_products() -> None:
    program = compiled(attention(), "full")
    tensors = {name: tensor.to_dense() for name, tensor in program.source.tensors.items()}
    empty = ff.compile(parse(attention()), tensors={**tensors, "M": np.zeros_like(mask())}, machine="ideal")
    assert products(empty.run(check=False)) == 0


def test_no_producer_runs_again_in_a_fused_decoder() -> None:
    """As many products as in regions of their own, but for one output projection that is computed for the norm and for its residual."""
    alone, fused = (products(ran(compiled(decoders(1), fuse))) for fuse in ("none", "layerwise"))
    assert fused <= alone + 6 * 4 * 4
