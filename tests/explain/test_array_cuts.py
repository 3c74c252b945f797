"""What is said of cuts on an array: the region with the operator behind it is counted, and the default cut fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import fuseflow

from fuseflow.array.capacity import tile_use
from fuseflow.array.settings import ArraySettings, read_array
from fuseflow.compiler import compile_source
from fuseflow.einsum.parse import parse
from fuseflow.explain.array_cuts import explain_cuts
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine

IDEAL = load_machine("ideal")
LAYERS = """
tensor A[8, 8] csr
tensor X[8, 6] dense
tensor W[6, 4] dense
tensor b[4] dense
T[i, j] = sum(k) X[i, k] * W[k, j]
H[i, j] = sum(k) A[i, k] * T[k, j]
B[i, j] = H[i, j] + b[j]
R[i, j] = relu(B[i, j])
output R
"""


def source() -> Source:
    return load(ModelSpec(parse(LAYERS)))


def with_ports(ports: int) -> ArraySettings:
    grid, tiles = f"grid: {{columns: {ports}, rows: 8}}", "tiles: {pattern: PM, kinds: {P: PE, M: MEM}}"
    return read_array(f"array: {{{grid}, {tiles}, ports: {{side: north}}, footprint: onyx}}", "small.yaml")


@pytest.mark.parametrize("lanes", [(), ("T-H.i",)])
def test_each_cut_has_the_tiles_of_its_region_with_the_operator_behind_it(lanes: tuple[str, ...]) -> None:
    array, regions = with_ports(10), {"T-H": ("T", "H"), "B-R": ("B", "R")}
    two = Schedule(fuse_regions=tuple(regions), regions=tuple(regions.items())).par(**dict.fromkeys(lanes, 2))
    (cut,) = explain_cuts(compile_source(source(), two, IDEAL), array)
    longer = Schedule(fuse_regions=("T-H",), regions=(("T-H", ("T", "H", "B")),)).par(**dict.fromkeys(lanes, 2))
    region = compile_source(source(), longer, IDEAL).regions[0]
    assert (cut.region, cut.operator, cut.use) == ("T-H", "B", tile_use(region.graph, array, IDEAL))


def test_a_cut_without_a_common_region_says_why() -> None:
    text = """
    tensor A[4, 4] csr
    P[i, j] = keep(3 over i, j) A[i, j]
    Y[i, j] = P[i, j] * 2
    output Y
    """
    (cut,) = explain_cuts(compile_source(load(ModelSpec(parse(text))), Schedule.fuse("none"), IDEAL), with_ports(10))
    assert cut.use is None and cut.refusal == "`P` is a region by itself"


def test_the_default_cut_fits() -> None:
    free, small = (compile_source(source(), Schedule(), IDEAL, array=with_ports(ports)) for ports in (64, 8))
    needed = [tile_use(region.graph, with_ports(8), IDEAL) for region in free.regions]
    assert not all(use.fits for use in needed)
    assert all(tile_use(region.graph, with_ports(8), IDEAL).fits for region in small.regions)


def test_explain_fusion_prints_a_line_for_each_cut(tmp_path: Path) -> None:
    program, file = tmp_path / "layers.ein", tmp_path / "report.json"
    program.write_text(LAYERS)
    words = ["explain", "fusion", program, "--fuse", "none", "--array", "plasticine"]
    result = fuseflow(*words, "--json", file)
    assert result.exit_code == 0, result.output
    lines = [line for line in result.stdout.splitlines() if line.startswith("cut before")]
    assert [line.partition(":")[0] for line in lines] == ["cut before H", "cut before B", "cut before R"]
    assert all(line.endswith("which fits") for line in lines)
    assert [cut["before"] for cut in json.loads(file.read_text())["cuts"]] == ["H", "B", "R"]


def test_the_lines_that_the_page_has_about_graphsage() -> None:
    root = Path(__file__).parents[2]
    result = fuseflow("explain", "fusion", root / "models/paper/graphsage.py", "--small", "--array", "plasticine")
    page = (root / "docs/how-to/fit-a-fixed-array.md").read_text(encoding="utf-8")
    lines = [line for line in result.stdout.splitlines() if line.startswith("cut before")]
    assert sum(f"- `{line}`" in page for line in lines) == 2
