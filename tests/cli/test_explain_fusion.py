"""`fuseflow explain fusion`: without data, as tables and as JSON, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fuseflow.cli.main import main

ROOT = Path(__file__).parents[2]
GCN = ROOT / "models" / "gcn.py"
PROGRAM = """\
tensor A[3, 4] csr
tensor x[4] dense
y[i] = sum(k) A[i, k] * x[k]
z[i] = relu(y[i])
output z
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.ein"
    path.write_text(PROGRAM)
    return path


def explain(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["explain", "fusion", *map(str, arguments)])


def test_a_text_program_needs_no_data(program: Path):
    result = explain(program)
    assert result.exit_code == 0
    assert "y         z         yes    `layerwise` fuses what no reshape parts" in result.stdout
    assert not result.stderr


def test_json_alone_on_standard_output(program: Path):
    result = explain(program, "--fuse", "none", "--json", "-")
    assert result.exit_code == 0 and "they can be fused" in result.stderr
    found = json.loads(result.stdout)
    assert found["model"] == "program" and found["schedule"] == "fuse: [none]\n"
    (pair,) = found["pairs"]
    assert (pair["producer"], pair["consumer"], pair["fused"], pair["can_fuse"]) == ("y", "z", False, True)


def test_json_in_a_file_that_is_the_same_every_time(program: Path, tmp_path: Path):
    texts = []
    for name in ("a.json", "b.json"):
        assert explain(program, "--json", tmp_path / name).exit_code == 0
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]


def test_gcn_recomputes_its_first_layer_for_every_edge():
    found = json.loads(explain(GCN, "--fuse", "full", "--json", "-").stdout)
    times = {row["name"]: row["times"] for row in found["producers"]}
    assert times["relu"] == pytest.approx(190 / 34, abs=1e-4)
    assert times["layer1.matmul"] == pytest.approx((190 / 34) ** 2, abs=1e-4)
    assert times["layer2.add"] == 1
    assert len(found["producers"][0]["instances"][0]["inside"]) == 2


def test_what_does_not_compile_is_an_error(program: Path, tmp_path: Path):
    result = explain(program, "--fuse", "w")
    assert result.exit_code == 2 and "no module, Einsum or region `w`" in result.stderr
    assert explain(tmp_path / "nothing.ein").exit_code == 2


def test_what_propagation_left_out_is_a_table(tmp_path: Path):
    arguments = (GCN, "--sparsify", "*.weight=magnitude:0.9")
    result = explain(*arguments, "--propagate", "--json", tmp_path / "fusion.json")
    assert result.exit_code == 0 and "shape\n" in result.stdout
    rows = json.loads((tmp_path / "fusion.json").read_text())["left_out"]
    weight = next(row for row in rows if row["name"] == "layer1.weight")
    assert (weight["stored"], weight["now"], weight["shape_now"]) == (55, 18, [15, 6])
    assert "shape\n" not in explain(*arguments).stdout
