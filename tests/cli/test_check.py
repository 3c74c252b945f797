"""`fuseflow check`: it lists all that is in the way of a model, and runs nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fuseflow.cli.main import main

MODELS = """
import torch

class Inner(torch.nn.Module):
    def forward(self, x):
        return torch.mode(x).values[:, None] + torch.lgamma(x)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.linear = Inner(), torch.nn.Linear(4, 4)
        self.pool = torch.nn.LPPool1d(2, 2)

    def forward(self, x):
        if x.sum() > 0:
            x = x + 1
        y = self.inner(self.linear(x))
        return torch.nanmedian(torch.linalg.inv(y @ y.T), 0), self.pool(x)

def build():
    return Model().eval(), (torch.rand(3, 4),)

def narrow():
    return torch.nn.Linear(3, 3).to(torch.complex64), (torch.rand(2, 3).to(torch.complex64),)

def good():
    return torch.nn.Linear(3, 3), (torch.rand(2, 3),)
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.py"
    path.write_text(MODELS)
    return path


def check(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", *arguments])


def test_every_blocker_of_every_stage(model: Path) -> None:
    result = check("model.py", "--json", "list.json")
    assert result.exit_code == 1
    values = json.loads(Path("list.json").read_text())
    assert values["schema"] == 1 and values["blocked"]
    assert values["blockers"][0]["problem"] == "control flow depends on data"
    names = ("mode.", "lgamma", "nanmedian", "inv_ex")
    by_name = {name: [b for b in values["blockers"] if name in b["problem"]] for name in names}
    assert all(len(matches) == 1 for matches in by_name.values())
    assert len(values["blockers"]) == 1 + len(by_name)
    (nanmedian,), (lgamma,) = by_name["nanmedian"], by_name["lgamma"]
    assert (nanmedian["module"], nanmedian["shape"], nanmedian["alternative"]) == ("", [3], False)
    assert (lgamma["module"], lgamma["shape"], lgamma["line"]) == ("inner", [3, 4], "model.py:6")
    assert "5 in the way of `model.py`" in result.output


def test_nothing_blocks(model: Path) -> None:
    result = check("model.py:good")
    assert result.exit_code == 0
    assert "nothing blocks `model.py:good`" in result.output
    assert check("model.py:good", "-q").output == ""


def test_types_that_no_tensor_has(model: Path) -> None:
    result = check("model.py:narrow")
    assert result.exit_code == 1
    assert "complex numbers in `aten.linear.default`" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.py:godo"], "no function `godo`"),
        (["gone.py"], "gone.py"),
        (["model.py:good", "--fuse", "layer"], "no module, Einsum or region `layer`"),
        (["model.py:good", "-O", "a=1"], "no option `a`"),
    ],
)
def test_wrong_usage_is_no_blocker(model: Path, arguments: list[str], message: str) -> None:
    result = check(*arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_nothing_is_simulated(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was simulated")

    monkeypatch.setattr("fuseflow.run.compiled.Compiled.run", refuse)
    assert check("model.py:good").exit_code == 0
