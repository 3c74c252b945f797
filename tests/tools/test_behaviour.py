"""The record of what a tree computes: what is masked in it, what is not, and that a difference is named."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from pathlib import Path

import behaviour as tool
import numpy as np
from click.testing import CliRunner

TOOLS = Path(__file__).parents[2] / "tools"


def test_times_versions_and_places_are_masked_and_nothing_else(tmp_path: Path) -> None:
    text = f'{{\n "cycles": 12,\n "versions": {{\n  "numpy": "2.4"\n }},\n "seconds": {{"run": 1.5}}, "file": "{tmp_path}/a"}}'
    masked = '{\n "cycles": 12,\n "versions": {\n  "numpy": "0"\n },\n "seconds": {"run": 0}, "file": "OUT/a"}'
    assert tool.masked(text.encode(), tmp_path).decode() == masked
    assert tool.masked(b'"seconds": 0.25, "cycles": 3', tmp_path) == b'"seconds": 0, "cycles": 3'


def test_a_digest_is_of_values_and_not_of_names() -> None:
    @dataclass
    class Before:
        written: dict[int, object]
        memory: object = None

    @dataclass
    class After:
        stored: dict[int, object]

    assert tool.digest_of(Before({1: array("d", [0.5])})) == tool.digest_of(After({1: np.array([0.5])}))
    values = ({1: np.array([0.0])}, {1: np.array([-0.0])}, {1: np.array([0])}, {2: np.array([0.0])}, {1: np.array([[0.0]])})
    assert len({tool.digest_of(After(value)) for value in values}) == len(values)


def test_differences_and_missing_keys_are_named(tmp_path: Path) -> None:
    before, after = tmp_path / "before.txt", tmp_path / "after.txt"
    before.write_text("a\tcycles=3 nodes=x\nb\t7\n")
    after.write_text("a\tcycles=4 nodes=x\nc\t7\n")
    result = CliRunner().invoke(tool.main, ["--compare", str(before), str(after)])
    assert result.exit_code == 1
    for line in ("1 lines differ in cycles", f"missing in {before}, as c", f"missing in {after}, as b", "1 keys are in both"):
        assert line in result.output
    after.write_text("a\tcycles=3 nodes=x\nb\t6")  # the last line is being written
    other = tmp_path / "other.txt"
    other.write_text("c\t1\n")
    exits = [
        CliRunner().invoke(tool.main, ["--compare", str(before), *words]).exit_code
        for words in ([str(before)], [str(after)], [str(after), "--common"], [str(other), "--common"])
    ]
    assert exits == [0, 1, 0, 1]


def test_programs_and_graphs_are_recorded_one_by_one() -> None:
    programs, graphs = dict(tool.of_programs(0, 3)), dict(tool.of_graphs(0, 2))
    assert {key.split()[0] for key in programs} == {f"programs/00000/{n:03}" for n in range(3)}
    assert {key.split()[0] for key in graphs} == {f"graphs/{n:07}" for n in range(2)}
    assert all("differences=0" in value for key, value in graphs.items() if key.endswith("result"))
    assert programs == dict(tool.of_programs(0, 3)), "the same seed, the same lines"
