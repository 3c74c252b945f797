"""`fuseflow propagate`, and `--propagate` of other commands: what they print and write, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import fuseflow

ROOT = Path(__file__).parents[2]
GCN, MLP = ROOT / "models" / "gcn.py", ROOT / "models" / "sparse_mlp.py"
PRUNED = ("--sparsify", "*.weight=magnitude:0.9")
PROGRAM = "tensor A[3, 4] csr\ntensor B[4, 2] dense\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y\n"


def printed(*words: str | Path) -> str:
    result = fuseflow(*words)
    assert result.exit_code == 0, result.output
    return result.output


def document(*words: str | Path) -> dict[str, Any]:
    result = fuseflow(*words, "--json", "-", "-q")
    assert result.exit_code == 0, result.output
    values: dict[str, Any] = json.loads(result.stdout)
    return values


def refused(*words: str | Path) -> str:
    result = fuseflow(*words)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output and result.output.count("error[") == 1
    return result.output


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def program(here: Path) -> Path:
    (here / "p.ein").write_text(PROGRAM)
    (here / "t.yaml").write_text("A: {path: a.npy}\nB: {path: b.npy}\n")
    import numpy as np

    np.save(here / "a.npy", np.array([[1, 0, 2, 0], [0, 0, 0, 0], [0, 0, 3, 0]], np.float32))
    np.save(here / "b.npy", np.arange(8, dtype=np.float32).reshape(4, 2))
    return here / "p.ein"


def test_the_table_shows_what_is_left_of_each_weight():
    output = printed("propagate", GCN, *PRUNED)
    rows = {line.split()[0]: line for line in output.splitlines() if line.startswith("layer") and "total" not in line}
    assert set(rows) == {"layer1.weight", "layer1.bias", "layer2.weight", "layer2.bias"}
    assert rows["layer1.weight"].split() == ["layer1.weight", "34", "x", "16", "55", "526", "0", "18", "18", "15", "x", "6"]
    assert "layer1, total" in output and "left out, since no output needs it: 66 of 306 stored values" in output


def test_all_tensors_are_in_the_json_and_in_the_table_of_all():
    values = document("propagate", GCN, *PRUNED)
    kinds = {row["kind"] for row in values["tensors"]}
    assert kinds == {"constant", "input", "intermediate", "output"} and values["form"] == "einsum"
    names = [row["name"] for row in values["tensors"]]
    assert all(name in printed("propagate", GCN, *PRUNED, "--all") for name in names)
    row = next(row for row in values["tensors"] if row["name"] == "layer2.weight")
    assert (row["shape"], row["shape_now"], row["stored"], row["now"]) == ([16, 4], [6, 4], 7, 7)


def test_a_run_without_what_is_not_needed_agrees_in_fewer_cycles():
    whole, smaller = (document("run", GCN, *PRUNED, "--fuse", "layerwise", *more) for more in ((), ("--propagate",)))
    assert smaller["check"]["passed"] and smaller["cycles"] < 0.6 * whole["cycles"]


@pytest.mark.parametrize("command", ["compile", "estimate"])
def test_other_commands_leave_it_out_too(command: str):
    assert "left out, since no output needs it" in printed(command, GCN, *PRUNED, "--propagate")


def test_inputs_are_known_where_that_is_asked(program: Path):
    tensors = ("--tensors", "t.yaml")
    assert document("propagate", program, *tensors)["tensors"][1]["shape_now"] == [4, 2]
    values = document("propagate", program, *tensors, "--fixed", "A")
    assert [row["shape_now"] for row in values["tensors"]] == [[2, 2], [2, 2], [2, 2]]
    result = document("run", program, *tensors, "--propagate", "--fixed", "A")
    assert result["check"]["passed"]


def test_a_model_without_an_einsum_form_is_analysed_as_a_graph(tmp_path: Path):
    model = tmp_path / "angle.py"
    model.write_text(
        "import torch\n\n\nclass Angle(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = torch.nn.Linear(4, 4)\n\n    def forward(self, x):\n        return torch.atan2(self.fc(x), x)\n\n\n"
        "def build(data):\n    return Angle(), (torch.rand(2, 4),)\n"
    )
    output = printed("propagate", model, "--sparsify", "*.weight=filter:0.5:masked")
    assert "the graph of PyTorch operators was analysed" in output and "fc.weight" in output


def test_both_forms_agree_on_weights():
    einsum, graph = (document("propagate", MLP, *more) for more in ((), ("--graph",)))
    counts = [
        {row["name"]: (row["needed"], row["dead"]) for row in v["tensors"] if row["kind"] == "constant"} for v in (einsum, graph)
    ]
    assert counts[0] == counts[1] and graph["form"] == "graph"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", GCN, "--fixed", "adj"), "`--fixed` without `--propagate`"),
        (("compile", GCN, "--constants"), "`--constants` without `--propagate`"),
        (("propagate", GCN, "--fixed", "adjj"), "no input is called `adjj`"),
        (("propagate", GCN, "--graph", "--fixed", "adj"), "`--fixed` is of Einsum programs"),
        (("propagate", GCN, "--graph", "--constants"), "`--constants` is of Einsum programs"),
        (("propagate", "none.py"), "none.py"),
        (("propagate", GCN, "--sparsify", "layr1.weight=magnitude:0.5"), "no weight is called `layr1.weight`"),
    ],
)
def test_what_is_wrong_is_said(words: tuple[str, ...], message: str):
    assert message in refused(*words)


def test_a_saved_program_takes_no_propagation(here: Path):
    printed("compile", GCN, "-o", "out")
    assert "takes no `--propagate`" in refused("estimate", "out", "--propagate")


def test_the_page_of_a_run_shows_what_was_left_out(here: Path):
    printed("run", GCN, *PRUNED, "--propagate", "-o", "out", "-q")
    rows = {row["name"]: row for row in json.loads((here / "out" / "result.json").read_text())["left_out"]}
    assert "layer1.weight" in rows and "layer2.bias" not in rows
    printed("report", "out")
    page = (here / "out" / "report.html").read_text()
    assert "Left out, since no output needs it" in page and "<td>15 x 6</td>" in page
    assert "left_out" not in document("run", GCN, *PRUNED)
