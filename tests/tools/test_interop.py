"""The tool that runs our regions in the public simulator. A small program stands for that simulator here."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import interop as tool
from click.testing import CliRunner, Result

ROOT = Path(__file__).parents[2]

STANDS_IN = """#!{python}
import pathlib, sys
graph, folder = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[4])
assert sys.argv[1::2] == ["--proto", "--data"] and graph.read_bytes() and list(folder.glob("tensor_*_mode_vals"))
{does}
"""


def run(tmp_path: Path, does: str | None) -> tuple[Result, list[dict[str, object]]]:
    """What the tool says of the partially fused SAE in public primitives, with a simulator that does this."""
    arguments = ["--only", "sae/partial/public", "--json", str(tmp_path / "rows.json")]
    if does is not None:
        simulator = tmp_path / "comal"
        simulator.write_text(STANDS_IN.format(python=sys.executable, does=does), encoding="utf-8")
        simulator.chmod(simulator.stat().st_mode | stat.S_IXUSR)
        arguments += ["--comal", str(simulator)]
    result = CliRunner().invoke(tool.main, arguments)
    return result, json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))


def test_without_the_simulator_it_says_what_it_skips(tmp_path: Path) -> None:
    result, rows = run(tmp_path, None)
    assert result.exit_code == 0 and "skipped: no public simulator was run; `--comal PATH` names one" in result.output
    assert len(rows) == 2 and all(row["public_cycles"] is None and not row["warnings"] for row in rows)


def test_other_cycles_are_told_and_end_with_1(tmp_path: Path) -> None:
    result, rows = run(tmp_path, "print('Elapsed Cycles: 7')")
    assert result.exit_code == 1
    for row in rows:
        assert f"sae/partial/public/{row['name']}: 7 cycles there, {row['cycles']} here" in result.output


def test_equal_cycles_end_with_0(tmp_path: Path) -> None:
    _, rows = run(tmp_path, None)
    cycles = {str(row["name"]): row["cycles"] for row in rows}
    does = f"cycles = {cycles!r}\nprint('Elapsed Cycles:', next(n for name, n in cycles.items() if name.encode() in graph.read_bytes()))"
    result, rows = run(tmp_path, does)
    assert result.exit_code == 0, result.output
    assert all(row["public_cycles"] == row["cycles"] for row in rows)


def test_a_simulator_that_fails_is_quoted(tmp_path: Path) -> None:
    result, rows = run(tmp_path, "sys.exit('Should not reach this case')")
    assert result.exit_code == 1 and "Should not reach this case" in result.output
    assert all(row["failure"] == "Should not reach this case" for row in rows)


def test_an_unknown_point_is_refused() -> None:
    result = CliRunner().invoke(tool.main, ["--only", "gnc/*"])
    assert result.exit_code == 2 and "no family, granularity and form is `gnc/*`" in result.output
