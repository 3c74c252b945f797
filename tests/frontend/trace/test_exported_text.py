"""The exported program as text."""

from pathlib import Path

import pytest
import torch

import fuseflow as ff
from fuseflow.errors import FrontendError, UsageError
from fuseflow.frontend.trace.model_call import exported_text, model_call


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.lin(x))


def test_it_names_the_operators_their_lines_and_the_weights() -> None:
    text = exported_text(model_call(Net(), (torch.ones(2, 4),), None))
    assert "torch.ops.aten.relu.default" in text and "target='lin.weight'" in text
    assert f"{Path(__file__).name}:19 in forward" in text
    assert text == exported_text(model_call(Net(), (torch.ones(2, 4),), None)) and "0x" not in text


def test_lines_of_libraries_are_named_from_their_folder() -> None:
    text = exported_text(model_call(Net(), (torch.ones(2, 4),), None))
    places = [line for line in text.splitlines() if "# File: " in line]
    assert any("# File: torch/nn/modules/linear.py:" in line for line in places)


def test_a_file_says_what_is_in_it(tmp_path: Path) -> None:
    program = torch.export.export(Net(), (torch.ones(2, 4),))
    torch.export.save(program, tmp_path / "net.pt2")
    loaded = torch.export.load(tmp_path / "net.pt2")
    compiled = ff.compile(tmp_path / "net.pt2")
    text = compiled.emit("torch")
    assert isinstance(text, str) and text.count("torch.ops") == str(loaded).count("torch.ops") > 0


def test_a_model_from_the_cache_says_the_same(tmp_path: Path) -> None:
    model = tmp_path / "net.py"
    model.write_text("import torch\n\n\ndef build():\n    return torch.nn.Linear(4, 3), (torch.ones(2, 4),)\n")
    texts = [ff.compile(model).emit("torch") for _ in range(2)]
    assert texts[0] == texts[1] and "linear" in str(texts[0])


def test_what_is_no_model_is_refused() -> None:
    from fuseflow.einsum.parse import parse

    with pytest.raises(UsageError, match="is no PyTorch model"):
        ff.compile(parse("tensor x[4]\ny[i] = x[i]\noutput y")).emit("torch")


def test_a_model_that_pytorch_cannot_export_is_refused() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x

    with pytest.raises(FrontendError, match="depends on data"):
        exported_text(model_call(f, (torch.ones(3),), None))
