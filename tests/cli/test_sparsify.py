"""`fuseflow sparsify`, and the options of sparsity in other commands: what they print and write, and what they refuse."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import fuseflow

from fuseflow.sparsity.layouts.layout import Layout
from fuseflow.sparsity.layouts.listing import LAYOUTS

ROOT = Path(__file__).parents[2]
GCN, MLP = ROOT / "models" / "gcn.py", ROOT / "models" / "sparse_mlp.py"
HALF = "*.weight=magnitude:0.5:csr"
PROGRAM = "tensor A[3, 4] csc\ntensor x[4] dense\ny[i] = sum(k) A[i, k] * x[k]\noutput y\n"


def document(*words: str | Path) -> dict[str, Any]:
    result = fuseflow("sparsify", *words, "--json", "-", "-q")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refused(*words: str | Path) -> str:
    """Run a command that must end with one readable error, and return what it prints."""
    before = sorted(Path.cwd().rglob("*"))
    result = fuseflow(*words)
    assert result.exit_code == 2, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output and result.output.count("error[") == 1
    assert sorted(Path.cwd().rglob("*")) == before, "nothing is written"
    return result.output


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of the sparse weights of the GCN."""
    directory = tmp_path_factory.mktemp("sparse") / "d"
    assert fuseflow("sparsify", GCN, "--sparsify", HALF, "-o", directory).exit_code == 0
    return directory


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cells(output: str, first: str) -> list[str]:
    """The words of the line that begins so."""
    return next(line.split() for line in output.splitlines() if line.startswith(first))


def test_a_row_for_each_weight_and_their_sums() -> None:
    result = fuseflow("sparsify", GCN, "--sparsify", HALF)
    assert result.exit_code == 0
    row = cells(result.stdout, "layer1.weight")
    assert row[:8] == ["layer1.weight", "magnitude:0.5", "csr", "34", "x", "16", "272", "0.5000"]
    assert 0.5 < float(row[8]) < 1, "the largest half has more than half of the magnitudes"
    assert row[9:] == ["2,176", f"{272 * 8 + 35 * 4:,}"], "values, columns, and positions of 4 bytes each"
    assert cells(result.stdout, "layer2.weight")[6:8] == ["32", "0.5000"]
    assert cells(result.stdout, "weights") == ["weights", "304", "0.5000", "2,432", "2,640"]


def test_a_model_that_is_sparse_in_its_file() -> None:
    result = fuseflow("sparsify", MLP, "--small")
    assert result.exit_code == 0
    assert cells(result.stdout, "layer1.weight")[1:3] == ["magnitude:0.9", "csr"]
    assert cells(result.stdout, "relu ")[1:6] == ["threshold:0.1", "dense", "8", "x", "32"]
    sums = cells(result.stdout, "weights")
    assert sums[1] == str(205 + 103), "intermediates are no part of the sums"


def test_a_rule_for_other_weights_joins_those_of_the_file() -> None:
    rows = document(MLP, "--small", "--sparsify", "head.weight=nm:2:4")["tensors"]
    assert [row["name"] for row in rows] == ["layer1.weight", "layer2.weight", "head.weight", "relu", "relu_2"]
    assert "`layer1.weight` has a rule already" in refused("sparsify", MLP, "--small", "--sparsify", "layer1.weight=nm:2:4")


def test_json_has_the_numbers_of_the_table() -> None:
    found = document(GCN, "--sparsify", HALF)
    assert (found["schema"], found["model"]) == (1, str(GCN))
    first, second = found["tensors"]
    assert {k: v for k, v in first.items() if k != "energy"} == {
        "name": "layer1.weight",
        "kind": "weight",
        "shape": [34, 16],
        "rule": "magnitude:0.5",
        "layout": "csr",
        "kept": 272,
        "size": 544,
        "bytes_before": 2176,
        "bytes_after": 2316,
    }
    assert 0.5 < second["energy"] < 1


def test_json_goes_to_a_file_beside_the_table(here: Path) -> None:
    result = fuseflow("sparsify", GCN, "--sparsify", HALF, "--json", "rows.json")
    assert result.exit_code == 0 and "layer1.weight" in result.stdout
    assert json.loads((here / "rows.json").read_text()) == document(GCN, "--sparsify", HALF)


def test_quiet_prints_nothing(here: Path) -> None:
    assert fuseflow("sparsify", GCN, "--sparsify", HALF, "-q").output == ""


def test_of_several_rules_the_last_that_matches_counts() -> None:
    rows = document(GCN, "--sparsify", "*.weight=magnitude:0.25", "--sparsify", "layer2.weight=nm:2:4:bcsr:2x2")["tensors"]
    assert [(row["rule"], row["layout"]) for row in rows] == [("magnitude:0.25", "csr"), ("nm:2:4", "bcsr:2x2")]
    rows = document(GCN, "--sparsify", "layer2.weight=nm:2:4", "--sparsify", "*.weight=magnitude:0.25")["tensors"]
    assert [row["rule"] for row in rows] == ["magnitude:0.25"] * 2


def test_a_directory_gives_the_same_model_again(written: Path) -> None:
    assert document(GCN, "--sparsity", written) == document(GCN, "--sparsify", HALF)
    assert sorted(path.name for path in written.iterdir()) == ["sparsity.json", "spec.yaml", "weights.npz"]


def test_a_directory_brings_its_weights_whatever_the_seed(here: Path, written: Path) -> None:
    assert fuseflow("sparsify", GCN, "--seed", "3", "--sparsity", written, "-o", "again").exit_code == 0
    with np.load(written / "weights.npz") as first, np.load(here / "again" / "weights.npz") as second:
        assert sorted(first) == sorted(second)
        for name in first:
            np.testing.assert_array_equal(first[name], second[name])


def test_an_earlier_directory_is_replaced(here: Path) -> None:
    for rule, kept in (("nm:1:2", 32), ("nm:1:4", 16)):
        assert fuseflow("sparsify", GCN, "--sparsify", f"layer2.weight={rule}", "-o", "d").exit_code == 0
        (row,) = document(GCN, "--sparsity", "d")["tensors"]
        assert row["kept"] == kept


def test_a_directory_keeps_the_rules_of_intermediates(here: Path) -> None:
    assert fuseflow("sparsify", MLP, "--small", "-o", "d", "-q").exit_code == 0
    spec = (here / "d" / "spec.yaml").read_text()
    assert "relu*: {external: threshold:0.1}" in spec.replace("'", "")


# Options of the other commands


@pytest.fixture(scope="module")
def runs(written: Path) -> dict[str, dict[str, Any]]:
    """The same sparse model by a rule, by a file and by a directory, run."""
    spec = written.parent / "spec.yaml"
    spec.write_text("weights:\n  '*.weight': {sparsifier: magnitude:0.5, layout: csr}\n")
    forms: dict[str, list[str | Path]] = {
        "rule": ["--sparsify", HALF],
        "file": ["--sparsity", spec],
        "directory": ["--sparsity", written],
        "dense": [],
    }
    found = {}
    for name, words in forms.items():
        result = fuseflow("run", GCN, *words, "--json", "-", "-q")
        assert result.exit_code == 0, result.output
        found[name] = json.loads(result.stdout)
    return found


def test_run_of_a_sparse_model_is_correct_and_costs_less(runs: dict[str, dict[str, Any]]) -> None:
    assert runs["rule"]["check"]["passed"]
    assert runs["rule"]["flops"] < runs["dense"]["flops"]


@pytest.mark.parametrize("form", ["file", "directory"])
def test_all_forms_run_the_same(runs: dict[str, dict[str, Any]], form: str) -> None:
    assert runs[form]["cycles"] == runs["rule"]["cycles"] and runs[form]["flops"] == runs["rule"]["flops"]
    assert runs[form]["check"]["passed"]


def test_rules_beside_a_file_stand_behind_it(here: Path) -> None:
    (here / "s.yaml").write_text("weights:\n  '*.weight': {sparsifier: nm:2:4}\n")
    printed = fuseflow(
        "run", GCN, "--sparsity", "s.yaml", "--sparsify", "layer1.weight=magnitude:0.9:coo", "--print-sparsity"
    ).stdout
    assert printed == "weights:\n  '*.weight': {sparsifier: nm:2:4}\n  layer1.weight: {sparsifier: magnitude:0.9, layout: coo}\n"


def test_compile_stores_weights_as_said(here: Path, written: Path) -> None:
    program = fuseflow("compile", GCN, "--sparsity", written, "--emit", "einsum", "-o", "-").stdout
    assert cells(program, "tensor layer1.weight")[3:] == cells(program, "tensor layer2.weight")[3:] == ["csr"]
    nm = fuseflow("compile", GCN, "--sparsify", "layer2.weight=nm:2:4", "--emit", "einsum", "-o", "-").stdout
    assert cells(nm, "tensor layer2.weight")[3:] == ["nm(2:4)"]


def test_estimates_of_sparse_models_are_lower() -> None:
    flops = []
    for words in ([], ["--sparsify", "*.weight=magnitude:0.9:csr"]):
        result = fuseflow("estimate", GCN, *words, "--json", "-", "-q")
        assert result.exit_code == 0, result.output
        flops.append(json.loads(result.stdout)["flops"])
    assert flops[1] < flops[0]


@pytest.mark.parametrize("topic", ["order", "fusion", "cycles"])
def test_explanations_take_sparse_models(topic: str, written: Path) -> None:
    result = fuseflow("explain", topic, GCN, "--sparsity", written)
    assert result.exit_code == 0 and result.stdout != fuseflow("explain", topic, GCN).stdout


@pytest.mark.parametrize("command", ["compile", "run", "estimate", "sparsify", "check"])
def test_the_printed_spec_is_read_again_as_the_same(here: Path, command: str) -> None:
    words = ["--sparsify", "*.weight=magnitude:0.5:coo", "--sparsify", "layer2.weight=nm:2:4:dim=0"]
    printed = fuseflow(command, GCN, *words, "--print-sparsity")
    assert printed.exit_code == 0 and printed.stdout.startswith("weights:\n")
    (here / "spec.yaml").write_text(printed.stdout)
    again = fuseflow(command, GCN, "--sparsity", "spec.yaml", "--print-sparsity")
    assert again.stdout == printed.stdout
    assert sorted(here.iterdir()) == [here / "spec.yaml"], "the command itself does not run"


def test_the_spec_of_a_directory_is_printed(written: Path) -> None:
    printed = fuseflow("run", GCN, "--sparsity", written, "--print-sparsity")
    assert printed.stdout == (written / "spec.yaml").read_text()


def test_no_spec_prints_as_nothing() -> None:
    result = fuseflow("run", GCN, "--print-sparsity")
    assert (result.exit_code, result.output) == (0, "")


# What is refused


@pytest.mark.parametrize(
    ("rule", "message", "hint"),
    [
        ("layer1.weihgt=magnitude:0.5", "no weight is called `layer1.weihgt`", "did you mean `layer1.weight`?"),
        ("relu=magnitude:0.5", "no weight is called `relu`", "layer1.weight"),
        ("*.weight=magnitud:0.5", "there is no sparsifier `magnitud`", "did you mean `magnitude`?"),
        ("*.weight=magnitude:0.5:crs", "`crs`, and no layout is called so", "csr"),
        ("*.weight=nm:2:4:crs", "`crs`, and no layout is called so", "csr"),
        ("*.weight=threshold:0.1:crs", "`crs`, and no layout is called so", "csr"),
        ("*.weight=magnitude:1.5", "cannot leave out a fraction of 1.5", "a number from 0 to 1"),
        ("*.weight=magnitude:-0.1", "cannot leave out a fraction of -0.1", "a number from 0 to 1"),
        ("*.weight=random:nan", "cannot leave out a fraction of nan", "a number from 0 to 1"),
        ("*.weight=nm:4:2", "4 entries cannot be kept of every 2", "keep between 1 and 2"),
        ("*.weight=nm:0:4", "0 entries cannot be kept of every 4", "keep between 1 and 4"),
        ("*.weight=magnitude", "`magnitude` lacks fraction", "magnitude:FRACTION"),
        ("*.weight=magnitude:0.5:bcsr", "`bcsr` lacks block", "bcsr:BLOCK"),
        ("layer1.weight=magnitude:0.5:bcsr:5x5", "does not divide into blocks of 5 x 5", "choose another layout"),
        ("layer1.weight=magnitude:0.5:nm:2:4", "cannot be stored as `nm:2:4`", "choose another layout"),
        ("*.weight", "is not PATTERN=SPARSIFIER", "as in"),
        ("=magnitude:0.5", "is not PATTERN=SPARSIFIER", "as in"),
    ],
)
@pytest.mark.parametrize("command", ["sparsify", "run"])
def test_rules_that_do_not_fit(command: str, rule: str, message: str, hint: str) -> None:
    output = refused(command, GCN, "--sparsify", rule, "-o", "d")
    text, _, hints = output.partition("hint:")
    assert message in text and hint in hints


def test_nothing_that_is_sparse() -> None:
    assert "nothing is said to be sparse" in refused("sparsify", GCN, "-o", "d")


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("weights: [a]\n", ":1:", "`weights` is a mapping"),
        ("wieghts: {}\n", ":1:1", "did you mean `weights`?"),
        ("weights:\n  '*': {sparsifier: magnitud:0.5}\n", ":2:", "did you mean `magnitude`?"),
        ("weights:\n  '*': {sparsifier: nm:2:4, layuot: csr}\n", ":2:", "did you mean `layout`?"),
        ("weights:\n  '*': {sparsifier: nm:2:4, layout: crs}\n", ":2:", "did you mean `csr`?"),
        ("weights:\n  '*': {sparsifier: 3}\n", ":2:", "`sparsifier` of `*` is a text"),
        ("weights: {\n", ":", "s.yaml"),
        ("just a text\n", ":1:1", "a sparsity spec is a mapping"),
    ],
)
def test_specs_that_do_not_fit_are_refused_with_their_place(here: Path, text: str, place: str, message: str) -> None:
    (here / "s.yaml").write_text(text)
    output = refused("run", GCN, "--sparsity", "s.yaml")
    assert message in output and output.startswith(f"s.yaml{place}")


def test_a_spec_that_is_not_there() -> None:
    assert "cannot read the sparsity spec `nowhere.yaml`" in refused("run", GCN, "--sparsity", "nowhere.yaml")


def test_intermediates_that_a_model_does_not_compute(here: Path) -> None:
    (here / "s.yaml").write_text("intermediates:\n  layer9: {external: threshold:0.1}\n")
    for command in ("sparsify", "run"):
        output = refused(command, GCN, "--sparsity", "s.yaml")
        assert "layer9" in output and "hint:" in output


def _cut(directory: Path) -> None:
    path = directory / "weights.npz"
    path.write_bytes(path.read_bytes()[:-40])


def _overwrite(share: float) -> Callable[[Path], object]:
    """Damage the bytes of the weights behind this share of the file."""

    def damage(directory: Path) -> None:
        path = directory / "weights.npz"
        content = bytearray(path.read_bytes())
        start = int(share * len(content))
        content[start : start + 4] = b"\xff\x01\xa5\x5a"
        path.write_bytes(content)

    return damage


def _edit(directory: Path, **changes: Any) -> None:
    path = directory / "sparsity.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "weights cut off": (_cut, "cannot read"),
    **{f"weights damaged at {share}": (_overwrite(share), "cannot read") for share in (0, 0.1, 0.3, 0.5, 0.7)},
    "weights missing": (lambda d: (d / "weights.npz").unlink(), "cannot read"),
    "weights empty": (lambda d: (d / "weights.npz").write_bytes(b""), "cannot read"),
    "manifest missing": (lambda d: (d / "sparsity.json").unlink(), "holds no sparse weights"),
    "manifest cut off": (lambda d: (d / "sparsity.json").write_text('{"schema": 1, "sha'), "is not JSON"),
    "another version": (lambda d: _edit(d, schema=2), "has the version 2, this fuseflow reads 1"),
    "no shapes": (lambda d: _edit(d, shapes=None), "has no shapes of weights"),
    "a shape of another model": (lambda d: _edit(d, shapes={"layer1.weight": [34, 8]}), "in the shape [34, 8], the model in"),
    "a weight of another model": (lambda d: _edit(d, shapes={"layer3.weight": [34, 8]}), "has a weight `layer3.weight`"),
    "a weight without a rule": (lambda d: (d / "spec.yaml").write_text("weights: {layer1.weight: {}}\n"), "has no entry for"),
    "spec missing": (lambda d: (d / "spec.yaml").unlink(), "cannot read the sparsity spec"),
    "spec garbled": (lambda d: (d / "spec.yaml").write_text("weights: 3\n"), "`weights` is a mapping"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("command", ["sparsify", "run"])
def test_directories_that_are_damaged_or_of_another_model(here: Path, written: Path, command: str, fault: str) -> None:
    shutil.copytree(written, here / "d")
    damage, message = FAULTS[fault]
    damage(here / "d")
    assert message in refused(command, GCN, "--sparsity", "d")


def test_a_directory_of_another_size_of_the_model(here: Path, written: Path) -> None:
    output = refused("run", GCN, "-O", "hidden=8", "--sparsity", written)
    assert "in the shape [34, 16], the model in [34, 8]" in output


def test_a_directory_beside_rules(written: Path) -> None:
    output = refused("run", GCN, "--sparsity", written, "--sparsify", HALF)
    assert "`--sparsify` beside the directory" in output and "leave one of them out" in output


def test_a_directory_for_a_model_that_is_sparse_already(written: Path) -> None:
    assert "the model is sparse already" in refused("run", MLP, "--small", "--sparsity", written)


def test_foreign_files_are_not_replaced(here: Path) -> None:
    (here / "d").mkdir()
    (here / "d" / "notes.txt").write_text("mine")
    output = refused("sparsify", GCN, "--sparsify", HALF, "-o", "d")
    assert "not empty and holds no `sparsity.json`" in output and "name a new directory" in output
    assert (here / "d" / "notes.txt").read_text() == "mine"


def test_foreign_files_in_an_earlier_directory_are_not_replaced(here: Path, written: Path) -> None:
    shutil.copytree(written, here / "d")
    (here / "d" / "notes.txt").write_text("mine")
    assert "`notes.txt` is not from an earlier run" in refused("sparsify", GCN, "--sparsify", HALF, "-o", "d")


def test_a_directory_that_cannot_be_written(here: Path) -> None:
    (here / "d").write_text("a file")
    assert "`d` is a file, not a directory" in refused("sparsify", GCN, "--sparsify", HALF, "-o", "d")
    assert "cannot go to standard output" in refused("sparsify", GCN, "--sparsify", HALF, "-o", "-")


def test_json_does_not_go_into_the_directory(here: Path) -> None:
    assert "is in `d`, which is replaced" in refused("sparsify", GCN, "--sparsify", HALF, "-o", "d", "--json", "d/rows.json")


def test_programs_have_no_weights_to_prune(here: Path, written: Path) -> None:
    (here / "p.ein").write_text(PROGRAM)
    assert "`p.ein` is no PyTorch model" in refused("sparsify", "p.ein", "--sparsify", HALF)
    for words in (["--sparsify", HALF], ["--sparsity", written]):
        output = refused("compile", "p.ein", *words)
        assert "takes no `sparsity`" in output and "--format" in output


@dataclass(frozen=True, slots=True)
class PlainLayout(Layout):
    """A layout that PyTorch alone has."""

    name = "plain"

    def pack(self, tensor: Any, mask: Any) -> Any:
        return tensor * mask


@pytest.fixture
def plain() -> Iterator[None]:
    LAYOUTS["plain"] = PlainLayout
    yield
    del LAYOUTS["plain"]


@pytest.mark.usefixtures("plain")
def test_layouts_of_pytorch_alone_are_pruned_but_not_compiled(here: Path) -> None:
    assert document(GCN, "--sparsify", "layer1.weight=magnitude:0.5:plain")["tensors"][0]["layout"] == "plain"
    output = refused("compile", GCN, "--sparsify", "layer1.weight=magnitude:0.5:plain", "-o", "d")
    text, _, hints = output.partition("hint:")
    assert "`layer1.weight` has the layout `plain`, which runs in PyTorch only" in text
    assert "`csr`" in hints and "`plain`" not in hints
