"""`--train` and the options of a training step: what commands print and write, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import fuseflow

ROOT = Path(__file__).parents[2]
MODEL = """
import torch
from torch import nn

loss, optimizer = "mse", "sgd:lr=0.5"

def build():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    return model, (torch.rand(5, 4),), torch.zeros(5, 2)
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "m.py"
    path.write_text(MODEL)
    return path


def test_a_run_prints_phases_losses_of_both_and_the_check(model: Path):
    result = fuseflow("run", model, "--train", "--steps", "3", "--simulate", "1", "--fuse", "none")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    phases = [word for line in lines for word in line.split()[:1] if word in ("forward", "loss", "backward", "update")]
    assert phases[:4] == ["forward", "loss", "backward", "update"]
    ours, theirs = (next(line for line in lines if line.startswith(start)) for start in ("losses: ", "PyTorch's own run: "))
    assert ours.partition(": ")[2] == theirs.partition(": ")[2] and len(ours.split()) == 4
    assert "no cycles of steps 2-3, whose values alone were computed" not in result.stdout  # the places of entries do not change
    assert "cycles of step 1 hold for steps 1-3" in result.stdout
    assert "check against PyTorch: passed" in result.stdout


def test_json_and_a_directory_have_the_steps(model: Path, tmp_path: Path):
    result = fuseflow("run", model, "--train", "--steps", "2", "--gradients", "-o", "out", "--json", "-", "-q")
    assert result.exit_code == 0, result.output
    values = json.loads(result.stdout)
    assert [step["step"] for step in values["training"]["steps"]] == [1, 2]
    assert values["check"]["passed"] and values["training"]["check"]["passed"]
    stored = json.loads((tmp_path / "out" / "training.json").read_text())
    assert stored["reference_losses"] == pytest.approx([step["loss"] for step in stored["steps"]], rel=1e-6)
    assert sum(cost["cycles"] for cost in stored["phases"]) == values["cycles"]
    assert max(row["bytes"] for row in stored["live"]) == values["live_bytes"]
    assert (tmp_path / "out" / "outputs" / "grad.model.0.weight.npy").exists() or list(
        (tmp_path / "out" / "outputs").glob("grad.*")
    )


def test_a_directory_has_the_state_after_the_last_step(model: Path, tmp_path: Path):
    for steps in (1, 2):
        result = fuseflow(
            "run", model, "--train", "--steps", steps, "--optimizer", "sgd:lr=0.1,momentum=0.5", "-o", f"out{steps}"
        )
        assert result.exit_code == 0, result.output
    once, twice = ({p.stem: np.load(p) for p in (tmp_path / out / "state").iterdir()} for out in ("out1", "out2"))
    names = {f"{layer}.{part}{end}" for layer in "02" for part in ("weight", "bias") for end in ("", ".momentum_buffer")}
    assert once.keys() == twice.keys() == names
    training = json.loads((tmp_path / "out2" / "training.json").read_text())
    module, x, y = (scope := {}, exec(MODEL, scope), torch.manual_seed(0), scope["build"]())[-1]
    optimizer, losses = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.5), []
    for state in (once, twice):
        losses.append(torch.nn.functional.mse_loss(module(*x), y))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
        for name, parameter in module.named_parameters():
            np.testing.assert_allclose(state[name], parameter.detach(), rtol=1e-5, atol=1e-7)
            np.testing.assert_allclose(
                state[f"{name}.momentum_buffer"], optimizer.state[parameter]["momentum_buffer"], rtol=1e-4, atol=1e-7
            )
    assert [step["loss"] for step in training["steps"]] == pytest.approx([loss.item() for loss in losses], rel=1e-5)
    outputs = tmp_path / "out2" / "outputs"
    assert float(np.load(outputs / "loss.npy")) == pytest.approx(losses[0].item(), rel=1e-5)


def test_the_user_wins_over_the_file(model: Path):
    ours = fuseflow("compile", model, "--train", "--loss", "l1", "--optimizer", "adamw:lr=0.1", "--emit", "einsum")
    file = fuseflow("compile", model, "--train", "--emit", "einsum")
    assert ours.exit_code == file.exit_code == 0, ours.output + file.output
    assert "exp_avg" in ours.stdout and "exp_avg" not in file.stdout
    assert "loss" not in fuseflow("compile", model, "--emit", "einsum").stdout


def test_estimate_and_explain(model: Path):
    result = fuseflow("estimate", model, "--train", "--fuse", "none")
    assert result.exit_code == 0 and "grad." in result.stdout, result.output
    result = fuseflow("explain", "fusion", model, "--train", "--fuse", "none")
    assert result.exit_code == 0 and "stored for the backward" in result.stdout, result.output
    result = fuseflow("explain", "fusion", model, "--train", "--fuse", "none", "--json", "-")
    stored = json.loads(result.stdout)["stored_for_backward"]
    assert any(row["phase"] == "forward" and any(name.startswith("grad.") for name in row["einsums"]) for row in stored)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "--loss", "mse"), "`--loss` without `--train`"),
        (("compile", "--optimizer", "sgd"), "`--optimizer` without `--train`"),
        (("estimate", "--gradients"), "`--gradients` without `--train`"),
        (("run", "--steps", "2"), "`--steps` without `--train`"),
        (("run", "--simulate", "2"), "`--simulate` without `--train`"),
        (("run", "--train", "--simulate", "2"), "`--simulate` without `--steps`"),
        (("run", "--train", "--steps", "2", "--sample", "2%"), "`--sample` is of one step"),
        (("run", "--train", "--bisect"), "`--bisect` compares the values of a forward"),
        (("compile", "--train", "--propagate"), "changes what `propagate` takes as known"),
        (("run", "--train", "--loss", "ms"), "did you mean `mse`?"),
        (("run", "--train", "--optimizer", "sgd:lx=1"), "lr"),
    ],
)
def test_bad_options(model: Path, words: tuple[str, ...], message: str):
    result = fuseflow(words[0], model, *words[1:])
    assert result.exit_code == 2 and message in result.output and "Traceback" not in result.output


def test_a_program_is_not_trained(tmp_path: Path):
    path = tmp_path / "p.ein"
    path.write_text("tensor x[4] dense\ny[i] = relu(x[i])\noutput y\n")
    result = fuseflow("run", path, "--train", "--loss", "mse")
    assert result.exit_code == 2 and "takes no `training`" in result.output and "a PyTorch model is trained" in result.output


@pytest.mark.parametrize("name", ["gcn", pytest.param("graphsage", marks=pytest.mark.slow), "sae", "sparse_mlp"])
def test_models_train(name: str):
    result = fuseflow("run", ROOT / "models" / f"{name}.py", "--small", "--train", "--steps", "2", "--simulate", "1")
    assert result.exit_code == 0 and "check against PyTorch: passed" in result.stdout, result.output
