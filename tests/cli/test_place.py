"""`fuseflow place`, and `fuseflow estimate --array`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import fuseflow

from fuseflow.array.artifact import load_placement
from fuseflow.array.settings import load_array
from fuseflow.machine.files import load_machine

ROOT = Path(__file__).parents[2]
SPMM = [str(ROOT / "docs/example/spmm.ein"), "--tensors", str(ROOT / "docs/example/tensors.yaml")]
SMALL = "array: {grid: {columns: 4, rows: 3}, tiles: {pattern: PM, kinds: {P: PE, M: MEM}}, ports: {side: north}, footprint: simple}\n"


def test_a_row_has_the_tiles_lengths_clocks_and_loading(tmp_path: Path) -> None:
    result = fuseflow(
        "place", *SPMM, "--array", "onyx", "--seeds", "1", "--effort", "1", "--legend", "--wide", "-o", tmp_path / "placed"
    )
    assert result.exit_code == 0, result.output
    row = next(line for line in result.stdout.splitlines() if line.startswith("full")).split()
    files = json.loads((tmp_path / "placed/placed.json").read_text())
    assert files["files"] == ["full.place.json", "full.svg"] and files["regions"][0] == {
        "name": "full",
        "file": "full.place.json",
    }
    values = json.loads((tmp_path / "placed/full.place.json").read_text())
    kinds = [kind for kind, *_ in values["cells"].values()]
    assert row[1:5] == [str(n) for n in (len(kinds), *map(kinds.count, ("PE", "MEM", "IO")))] and row[5] == str(
        values["wirelength"]
    )
    hops = {(name, tuple(b)) for name, branches in values["routes"].items() for branch in branches for b in branch[1:]}
    assert row[-3] == "909" and int(row[-2]) < 909
    assert row[-1] == f"{-(-(12 * len(kinds) + len(hops)) // 16) + 64}*"
    assert "*: from numbers that array `onyx` assumes: load.drain" in result.stdout
    assert "a length of wires that no placement is below" in result.stdout


def test_equal_calls_write_equal_bytes_which_are_read_back(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    import fuseflow as ff

    for name in ("one", "two"):
        assert fuseflow("place", *SPMM, "--array", "onyx", "-o", tmp_path / name, "-q").stdout == ""
    for file in ("full.place.json", "full.svg", "placed.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    (region,) = ff.compile(SPMM[0], tensors=SPMM[2]).regions
    placed = load_placement(tmp_path / "one/full.place.json", region.graph, load_array("onyx"), load_machine("rda"))
    assert placed.seeds == 4 and placed.bound is not None and 0 < placed.bound < placed.placement.wirelength
    drawing = ROOT / "docs/array.svg"
    if request.config.getoption("--update-golden"):
        drawing.write_bytes((tmp_path / "one/full.svg").read_bytes())
    assert drawing.read_bytes() == (tmp_path / "one/full.svg").read_bytes(), "`pytest --update-golden` draws it anew"


def test_a_run_has_cycles_beside_those_without_distances_and_a_picture_of_busy_tiles(tmp_path: Path) -> None:
    words = ("--array", "onyx", "--seeds", "1", "--effort", "1", "--wide", "-o", tmp_path / "placed")
    near = fuseflow("place", *SPMM, *words)
    plain = (tmp_path / "placed/full.svg").read_bytes()
    result = fuseflow("place", *SPMM, *words, "--run", "--json", tmp_path / "placed.json")
    assert result.exit_code == 0, result.output
    (region,) = json.loads((tmp_path / "placed.json").read_text())["regions"]
    run, ideal = (
        fuseflow("run", *SPMM, "--wide", *more) for more in (("--array", "onyx", "--placement", tmp_path / "placed"), ())
    )
    cycles = [next(line for line in r.stdout.splitlines() if line.startswith("full")).split()[2] for r in (run, ideal)]
    row, before = (next(line for line in r.stdout.splitlines() if line.startswith("full")).split() for r in (result, near))
    assert row == [*before, *cycles] and [str(region["cycles"]), str(region["ideal_cycles"])] == cycles
    assert region["bound"] == int(row[6]) <= region["wirelength"] == int(row[5])
    assert (tmp_path / "placed/full.svg").read_bytes() != plain


def test_an_array_of_the_user_without_delays_and_fewer_tracks(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SMALL.replace("columns: 4", "columns: 8"))
    result = fuseflow("place", *SPMM, "--array", tmp_path / "small.yaml", "--tracks", "2", "--fuse", "none")
    assert result.exit_code == 0, result.output
    footer = [line.split() for line in result.stdout.splitlines() if line.startswith("small")]
    assert footer == [["small", "12", "12", "8", "2"]] and "*" not in result.stdout


def test_what_does_not_fit_says_both_numbers(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SMALL)
    result = fuseflow("place", *SPMM, "--fuse", "full", "--array", tmp_path / "small.yaml", "-o", tmp_path / "placed")
    assert result.exit_code == 2 and not (tmp_path / "placed").exists()
    assert (
        "region `full` needs " in result.stderr
        and "8 ports, and array `small` has 6 and 6 and 4" in result.stderr
        and "--par" in result.stderr
    )
    shown = fuseflow("estimate", *SPMM, "--array", tmp_path / "small.yaml")
    assert shown.exit_code == 0, shown.output
    row = shown.stdout.partition("missing")[2]
    assert " IO\n" in row and "small" in row


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "--array"),
        (["--array", "onix"], "there is no array `onix`"),
        (["--array", "onyx", "--tracks", "0"], "--tracks"),
        (["--array", "onyx", "--effort", "0"], "--effort"),
        (["--array", "onyx", "--effort", "nan"], "--effort"),
        (["--array", "onyx", "--exact", "nan"], "--exact"),
        (["--array", "onyx", "-o", "-"], "standard output"),
    ],
)
def test_what_is_refused(words: list[str], why: str) -> None:
    result = fuseflow("place", *SPMM, *words)
    assert result.exit_code == 2 and why in result.stderr
