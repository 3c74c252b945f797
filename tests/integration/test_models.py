"""The models of the repository, end to end: PyTorch, the dense interpreter, the fused programs and the executed graphs agree."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import sources

import fuseflow as ff
from fuseflow.compiler import compile_source
from fuseflow.einsum.interpret import evaluate
from fuseflow.errors import FuseFlowError
from fuseflow.frontend import load_model
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.fusion.region_program import as_program
from fuseflow.run.check import relative_error

ROOT = Path(__file__).parents[2]
GCN = ROOT / "models" / "gcn.py"
PLANETOID = ROOT.parent / "shared" / "data" / "planetoid"
CHOICES = ("none", "layer1", "layerwise", "full")

needs_planetoid = pytest.mark.skipif(not PLANETOID.is_dir(), reason="the Planetoid files are not beside the repository")


def run_all(data: str, **options: object) -> dict[str, ff.Result]:
    results, source = {}, load(ModelSpec(GCN, data=data, **options))  # type: ignore[arg-type]
    for choice in CHOICES:
        result = compile_source(source, ff.Schedule.fuse(choice), ff.load_machine("ideal")).run()
        assert result.check is not None
        assert result.check.passed and result.check.reference == "PyTorch" and result.check.max_rel_error <= 1e-4, choice
        results[choice] = result
    return results


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
    unfused, fused = (sources.compiled("gcn.py", ff.Schedule.fuse(c)).run() for c in ("none", "full"))
    assert "relu" in unfused.stats["bytes"]["by_tensor"] and "relu" not in fused.stats["bytes"]["by_tensor"]
    assert fused.stats["bytes"]["write"] < unfused.stats["bytes"]["write"]
    assert fused.flops > unfused.flops  # what is not stored is computed again


@pytest.mark.parametrize("choice", CHOICES)
def test_every_level_agrees(choice: str) -> None:
    compiled = sources.compiled("gcn.py", ff.Schedule.fuse(choice))
    (output,) = compiled.program.outputs
    assert compiled.source.expected is not None
    want = compiled.source.expected[output]
    memory = {name: tensor.to_dense().astype(np.float64) for name, tensor in compiled.inputs().items()}
    assert relative_error(evaluate(compiled.program, memory)[output], want) < 1e-5
    for region in compiled.regions:
        memory |= evaluate(as_program(region.fused), memory)
    assert relative_error(memory[output], want) < 1e-5
    assert relative_error(compiled.run().tensors[output].to_dense(), want) < 1e-5


def test_linalg_and_the_printed_program_compile_to_the_same_graphs(tmp_path: Path) -> None:
    """Every stage is an input: the MLIR and the text of a program give the graphs that the model gave."""
    schedule = ff.Schedule.fuse("full").order("full", "i,k,m,n,l,j")
    compiled = ff.compile(GCN, schedule=schedule)
    for ending, stage in ((".mlir", "linalg"), (".ein", "einsum")):
        path = tmp_path / f"gcn{ending}"
        path.write_text(str(compiled.emit(stage)))
        assert ff.compile(path, schedule=schedule).emit("samml") == compiled.emit("samml")


def test_the_seed_fixes_the_weights() -> None:
    first, same, other = (ff.compile(GCN, seed=seed, machine="ideal").run().outputs for seed in (1, 1, 2))
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
    data = str(options["data"]) if "data" in options else None
    for choice, count in zip(("none", "layerwise", "full"), regions, strict=True):
        compiled = sources.compiled(file, ff.Schedule.fuse(choice), "ideal", {"small": True, **given}, data)
        result = compiled.run()
        assert result.check is not None and result.check.passed and result.check.max_rel_error <= 1e-5, choice
        assert len(compiled.regions) == count


GPT = ROOT / "models" / "gpt_bigbird.py"


@pytest.mark.parametrize(
    "given", [{}, {"part": "decoder", "activation": "relu"}, {"part": "attention"}], ids=["model", "decoder", "part"]
)
def test_gpt_is_what_pytorch_computes(given: dict[str, object]) -> None:
    source = load(ModelSpec(GPT, options={"small": True, **given}))
    assert source.expected is not None and source.data == "bigbird:block=4,length=32,features=8"
    assert source.tensors["mask"].format.short() == "csr"
    results = evaluate(source.program, {name: tensor.to_dense() for name, tensor in source.tensors.items()})
    for name, want in source.expected.items():
        assert relative_error(results[name], want) < 1e-5


def test_gpt_runs() -> None:
    result = ff.compile(GPT, options={"small": True, "decoders": 1}, machine="ideal").run()
    assert result.check is not None and result.check.passed
    assert result.settings.options == {"small": True, "decoders": 1}


@pytest.mark.parametrize(("choice", "regions"), [("none", 60), ("full", 5)])
def test_gpt_at_the_other_granularities(choice: str, regions: int) -> None:
    compiled = sources.compiled("gpt_bigbird.py", ff.Schedule.fuse(choice), "ideal", {"small": True})
    result = compiled.run()
    assert result.check is not None and result.check.passed and result.check.max_rel_error <= 1e-5
    assert len([region for region in compiled.regions if region.einsums]) == regions


def test_gpt_has_the_published_size() -> None:
    model = load_model(GPT, options={"decoders": 1})
    count = sum(p.numel() for p in model.module.parameters())
    width = 768
    assert count == 12 * width**2 + 13 * width  # four projections, a feed-forward of four widths, two norms
    assert int(model.module.mask.sum()) == 483_328  # of the published blocks of 64


def test_sage_averages_over_the_neighbours_of_a_node() -> None:
    """Rows add up to 1, or to 0 for a node on its own; a node is not its own neighbour."""
    mean, _ = load_model(ROOT / "models" / "graphsage.py", "random:nodes=40,degree=1,features=3").inputs
    dense = mean.to_dense()
    assert {round(float(s), 5) for s in dense.sum(1)} == {0.0, 1.0}
    assert not dense.diagonal().any()


def test_sae_keeps_the_same_share_of_every_output() -> None:
    module = load_model(ROOT / "models" / "sae.py", options={"density": 0.25}).module
    assert module.encoder.weight.crow_indices().diff().unique().tolist() == [28 * 28 // 4]
    assert module.decoder.weight.crow_indices().diff().unique().tolist() == [256 // 4]


@pytest.mark.skipif(find_spec("torch_geometric") is not None, reason="PyTorch Geometric is installed")
def test_a_model_of_a_library_that_is_not_there() -> None:
    with pytest.raises(FuseFlowError, match=r"made of PyTorch Geometric's layers: pip install torch-geometric"):
        load(ModelSpec(ROOT / "models" / "gcn_pyg.py"))
