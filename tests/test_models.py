"""The models of the repository, end to end: PyTorch, the dense interpreter, the fused programs and the executed graphs agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.compiler.check import compare
from fuseflow.einsum.interpret import evaluate
from fuseflow.fusion.program import as_program

ROOT = Path(__file__).parents[1]
GCN = ROOT / "models" / "gcn.py"
PLANETOID = ROOT.parent / "shared" / "data" / "planetoid"
CHOICES = ("none", "layer1", "layerwise", "full")

needs_planetoid = pytest.mark.skipif(not PLANETOID.is_dir(), reason="the Planetoid files are not beside the repository")


def run_all(data: str, **options: object) -> dict[str, ff.Result]:
    found = {}
    for choice in CHOICES:
        result = ff.compile(GCN, data=data, schedule=ff.Schedule.fuse(choice), **options).run()  # type: ignore[arg-type]
        assert result.check is not None
        assert result.check.passed and result.check.reference == "PyTorch" and result.check.max_rel_error <= 1e-4, choice
        found[choice] = result
    return found


@pytest.mark.parametrize("data", ["karate", "random:nodes=30,degree=3,features=12,density=0.2,seed=5"])
def test_gcn_at_every_fusion_choice(data: str) -> None:
    results = run_all(data)
    assert len({r.cycles for r in results.values()}) == len(CHOICES)
    assert {c: len(r.regions) for c, r in results.items()} == {"none": 8, "layer1": 5, "layerwise": 2, "full": 1}


@needs_planetoid
@pytest.mark.parametrize("data", ["cora:nodes=300", "citeseer:nodes=200"])
def test_gcn_on_citation_graphs(data: str) -> None:
    run_all(data, data_dir=PLANETOID)


def test_fusion_keeps_intermediates_off_memory() -> None:
    """What a region computes for itself is neither written nor read."""
    unfused, fused = (ff.compile(GCN, schedule=ff.Schedule.fuse(c)).run() for c in ("none", "full"))
    assert "relu" in unfused.stats["bytes"]["by_tensor"] and "relu" not in fused.stats["bytes"]["by_tensor"]
    assert fused.stats["bytes"]["write"] < unfused.stats["bytes"]["write"]
    assert fused.flops > unfused.flops  # what is not stored is computed again


@pytest.mark.parametrize("choice", CHOICES)
def test_every_level_agrees(choice: str) -> None:
    compiled = ff.compile(GCN, schedule=ff.Schedule.fuse(choice))
    (output,) = compiled.program.outputs
    assert compiled.source.expected is not None
    want = compiled.source.expected[output]
    memory = {name: tensor.to_dense().astype(np.float64) for name, tensor in compiled.inputs().items()}
    assert compare(evaluate(compiled.program, memory)[output], want)[0] < 1e-5
    for region in compiled.regions:
        memory |= evaluate(as_program(region.fused), memory)
    assert compare(memory[output], want)[0] < 1e-5
    assert compare(compiled.run().tensors[output].to_dense(), want)[0] < 1e-5


def test_linalg_and_the_printed_program_compile_to_the_same_graphs(tmp_path: Path) -> None:
    """Every stage is an input: the MLIR and the text of a program give the graphs that the model gave."""
    schedule = ff.Schedule.fuse("full").order("full", "i,k,m,n,l,j")
    compiled = ff.compile(GCN, schedule=schedule)
    for ending, stage in ((".mlir", "linalg"), (".ein", "einsum")):
        path = tmp_path / f"gcn{ending}"
        path.write_text(str(compiled.emit(stage)))
        assert ff.compile(path, schedule=schedule).emit("samml") == compiled.emit("samml")


def test_the_seed_fixes_the_weights() -> None:
    first, same, other = (ff.compile(GCN, seed=seed).run().outputs for seed in (1, 1, 2))
    (name,) = first
    np.testing.assert_array_equal(first[name], same[name])
    assert not np.array_equal(first[name], other[name])


# name: options, and how many regions each choice has
MODELS: dict[str, tuple[dict[str, object], tuple[int, int, int]]] = {
    "sae.py": ({}, (5, 2, 1)),
    "graphsage.py": ({"data": "karate:nodes=12"}, (11, 2, 1)),
    "gcn_pyg.py": ({"data": "karate:nodes=12"}, (8, 2, 1)),
    "gpt_bigbird.py": ({"part": "attention"}, (5, 1, 1)),
}


@pytest.mark.parametrize("file", MODELS)
def test_every_model_at_every_granularity(file: str) -> None:
    options, regions = MODELS[file]
    if file == "gcn_pyg.py":
        pytest.importorskip("torch_geometric")
    given = {key: value for key, value in options.items() if key != "data"}
    for choice, count in zip(("none", "layerwise", "full"), regions, strict=True):
        schedule = ff.Schedule.fuse(choice)
        compiled = ff.compile(
            ROOT / "models" / file, data=options.get("data"), options={"small": True, **given}, schedule=schedule, machine="ideal"
        )
        result = compiled.run()
        assert result.check is not None and result.check.passed and result.check.max_rel_error <= 1e-5, choice
        assert len(result.regions) == count
