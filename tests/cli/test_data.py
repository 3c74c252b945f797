"""`fuseflow data` lists the data that `--data` takes, with their files, and says how large data are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import fuseflow

from fuseflow.frontend.data import DATASET_NAMES, load_data, raw_files
from fuseflow.frontend.datasets.standins import PUBLISHED_COUNTS

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"


@pytest.fixture(autouse=True)
def no_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_all_data_sets_are_listed() -> None:
    names = fuseflow("data", "--quiet").stdout.splitlines()
    assert {name.partition(":")[0] for name in names} == {*DATASET_NAMES, "FILE"}
    assert {f"synthetic:{name}" for name in PUBLISHED_COUNTS} <= {*names}
    for name in names:
        if name != "FILE" and name in ("karate", "random", "images:imagenet", "synthetic:cora"):
            assert load_data(name).nodes > 0


@pytest.mark.parametrize("name", ["cora", "dblp", "mag"])
def test_files_are_there_when_all_of_them_are(name: str, tmp_path: Path) -> None:
    raw = raw_files(name)
    folder = tmp_path / "files" / raw.places[0]
    folder.mkdir(parents=True)

    def listed() -> dict[str, object]:
        told = json.loads(fuseflow("data", "--data-dir", tmp_path / "files", "--json", "-", "-q").stdout)
        assert told["schema"] == 1
        (entry,) = (entry for entry in told["data"] if entry["spec"] == name)
        return entry

    assert listed()["files"] == list(raw.files) and not listed()["there"]
    for file in raw.files:
        assert not listed()["there"]
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("")
    assert listed()["there"] and listed()["folder"] == str(folder)
    table = fuseflow("data", "--data-dir", tmp_path / "files").stdout
    assert f" in {folder}\n" in table


def test_the_table_fits_eighty_columns_and_says_where_files_go() -> None:
    result = fuseflow("data")
    table, _, files = result.stdout.partition("\nfiles, ")
    assert result.exit_code == 0 and max(len(line.rstrip()) for line in table.splitlines() if "─" not in line) <= 80
    assert (
        "cora: ind.cora.x, .tx, .allx, .y, .ty, .ally, .graph, .test.index in DIR/Cora/raw or DIR/Cora or DIR/raw or DIR\n"
        in files
    )


def test_sizes_of_data() -> None:
    told = json.loads(fuseflow("data", "karate", "--json", "-", "-q").stdout)
    assert (told["nodes"], told["edges"], told["features"], told["classes"]) == (34, 156, 34, 4)
    assert told["edge_density"] == 156 / 34**2 and told["mean_degree"] == 156 / 34 and told["largest_degree"] == 17
    lines = fuseflow("data", "karate").stdout.splitlines()
    assert lines[:2] == ["data      karate", "nodes     34"]
    assert lines[2] == "edges     156, a density of 0.135; 4.6 in the mean and 17 at most from a node"
    ring = fuseflow("data", f"{EXAMPLE / 'ring.el'}:directed=false,features=8")
    assert "nodes     3\nedges     6, " in ring.stdout and "note: " in ring.stdout
    images = json.loads(fuseflow("data", "images:side=6,count=3", "--json", "-", "-q").stdout)
    assert images["edges"] is None and images["nodes"] == 3 and images["features"] == 36
    assert fuseflow("data", "random", "--seed", "3").stdout == fuseflow("data", "random:seed=3").stdout.replace(
        "random:seed=3", "random"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["data", "kerate"], "did you mean `karate`?"),
        (["data", "--data-dir", "nowhere"], "no directory `nowhere`"),
        (["data", "karate", "--data-dir", "."], "reads no files"),
        (["data", "missing.mtx"], "no file `missing.mtx`"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], said: str) -> None:
    result = fuseflow(*words)
    assert result.exit_code == 2 and said in result.stderr
