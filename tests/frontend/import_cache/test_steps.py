"""Training steps in the cache of imported models: a hit is what the import was, and takes the same steps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import fuseflow as ff
from fuseflow.frontend.model_spec import ModelSpec, TrainingRequest
from fuseflow.frontend.sources import load
from fuseflow.run.training.training_run import TrainingRun

MODELS = Path(__file__).resolve().parents[3] / "models"
MODEL = """
import torch
from torch import nn

optimizer = "adam:lr=0.1"

def loss(output, target):
    return ((output - target) ** 2).mean()

def build():
    print("built")
    model = nn.Sequential(nn.Linear(6, 5), nn.Dropout(0.4), nn.ReLU(), nn.Linear(5, 2))
    return model.eval(), (torch.rand(8, 6),), torch.rand(8, 2)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("FUSEFLOW_MODEL_CACHE_MB")
    return tmp_path / "cache" / "models"


@pytest.fixture
def spec(cache: Path, tmp_path: Path) -> ModelSpec:
    """A step of a model with dropout, whose file has its loss as a function."""
    path = tmp_path / "m.py"
    path.write_text(MODEL)
    return ModelSpec(path, training=TrainingRequest())


@pytest.fixture
def builds(capfd: pytest.CaptureFixture[str]) -> Callable[[ModelSpec], bool]:
    """`builds(spec)` loads a model and returns whether its file was run."""

    def load_model(spec: ModelSpec) -> bool:
        capfd.readouterr()
        load(spec)
        return "built" in capfd.readouterr().out

    return load_model


def compiled(spec: ModelSpec, **arguments: object) -> ff.Compiled:
    schedule = ff.Schedule.fuse("none")
    return ff.compile(spec.model, schedule=schedule, sparsity=spec.sparsity, training=spec.training, **arguments)  # type: ignore[arg-type]


def files(folder: Path) -> dict[Path, bytes]:
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(None, marks=pytest.mark.slow, id="dense"),
        pytest.param("0.weight=magnitude:0.5:csr", id="csr"),
        pytest.param("0.weight=magnitude:0.5", marks=pytest.mark.slow, id="masked"),
    ],
)
def test_a_hit_is_what_the_import_was(spec: ModelSpec, tmp_path: Path, rule: str | None) -> None:
    from fuseflow.sparsity.spec import parse_sparsify

    spec = replace(spec, sparsity=rule and parse_sparsify(rule))
    runs = list[TrainingRun]()
    for name in ("first", "second"):
        torch.manual_seed(99)  # what the process drew before is no part of a model
        step = compiled(spec)
        step.save(tmp_path / name)
        runs.append(step.run(steps=3))
    assert files(tmp_path / "first") == files(tmp_path / "second") != {}
    first, second = runs
    assert first.losses == second.losses and first.reference_losses == second.reference_losses
    assert first.check is not None and second.check is not None and first.check.passed and second.check.passed
    for name, tensor in first.state.items():
        np.testing.assert_array_equal(second.state[name].to_dense(), tensor.to_dense())


def test_another_request_is_a_miss(spec: ModelSpec, builds: Callable[[ModelSpec], bool]) -> None:
    assert builds(spec) and not builds(spec)
    for other in (None, TrainingRequest("mse"), TrainingRequest(optimizer="sgd"), TrainingRequest(gradients=True)):
        assert builds(replace(spec, training=other)) and not builds(replace(spec, training=other))
    assert not builds(spec)


def test_what_only_this_process_knows_is_not_kept(spec: ModelSpec, builds: Callable[[ModelSpec], bool]) -> None:
    for request in (TrainingRequest(torch.nn.MSELoss()), TrainingRequest(target=torch.zeros(8, 2))):
        assert builds(replace(spec, training=request)) and builds(replace(spec, training=request))


def test_batches_go_on_from_a_hit(spec: ModelSpec) -> None:
    def run() -> TrainingRun:
        rows = torch.Generator().manual_seed(0)
        batches = [{"input": torch.rand(8, 6, generator=rows), "target": torch.rand(8, 2, generator=rows)} for _ in range(2)]
        return compiled(spec).run(steps=2, batches=batches)

    first, second = run(), run()
    assert first.losses == second.losses and second.check is not None and second.check.passed


def test_a_hit_compiles_without_pytorch(cache: Path) -> None:
    code = (
        "import sys; import fuseflow as ff; from fuseflow.frontend.model_spec import TrainingRequest;"
        "ff.compile('models/gcn.py', training=TrainingRequest(), schedule=ff.Schedule.fuse('none')).estimate();"
        "print(*sorted(sys.modules))"
    )
    first, second = (
        subprocess.run([sys.executable, "-c", code], cwd=MODELS.parent, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert "torch" in first.stdout.split() and "torch" not in second.stdout.split()
