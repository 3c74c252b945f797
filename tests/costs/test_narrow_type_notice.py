"""Narrow types that make nothing faster are told so, and those that do are not: cycles of runs are the witness."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import fuseflow as ff
from fuseflow.cli.main import main
from fuseflow.einsum.parse import parse
from fuseflow.errors import NarrowTypesWarning
from fuseflow.run.compiled import Compiled

PRODUCT = "tensor A[64, 64] {layout} {type}\ntensor B[64, 64] {layout} {type}\nC[i, j] = sum(k) A[i, k] * B[k, j]\noutput C"
SAID = "narrow types save bytes and no cycles of units here (`A`, `B`)"


def compiled(layout: str, type: str, machine: str = "ideal", **schedule: int) -> Compiled:
    numbers = (np.arange(64 * 64).reshape(64, 64) % 3).astype(float)
    program = parse(PRODUCT.format(layout=layout, type=type))
    return ff.compile(program, tensors={"A": numbers, "B": numbers}, machine=machine, schedule=ff.Schedule(**schedule))


@pytest.mark.parametrize("type", ["i4", "i8", "u8", "i16", "f16", "bf16"])
@pytest.mark.parametrize("layout", ["csr", "dense", "csr block 4x4", "dense block 32x32", "csr block 16x16"])
def test_it_is_said_exactly_where_no_cycles_are_saved(layout: str, type: str) -> None:
    narrow = compiled(layout, type)
    saves = narrow.run(check=False).cycles < compiled(layout, "f32").run(check=False).cycles
    assert any(SAID in notice for notice in narrow.notices) != saves


def test_wide_types_and_machines_without_lanes() -> None:
    assert not any("narrow" in notice for notice in compiled("csr", "f32").notices)
    settings = {"lanes.4": 1, "lanes.8": 1, "lanes.16": 1}
    machine = ff.load_machine("ideal", settings)
    numbers = np.ones((64, 64))
    program = parse(PRODUCT.format(layout="dense block 32x32", type="i8"))
    same = ff.compile(program, tensors={"A": numbers, "B": numbers}, machine=machine)
    assert any(SAID in notice for notice in same.notices)


@pytest.mark.parametrize("layout", ["csr", "dense block 32x32"])
def test_the_search_for_narrower_types_says_so_first(layout: str, recwarn: pytest.WarningsRecorder) -> None:
    whole = compiled(layout, "f32")
    narrow = ff.quantize(whole, tolerance=1.0, constants=("A", "B"))
    saves = ff.compile(narrow.program, tensors=narrow.tensors, machine="ideal").run(check=False).cycles < 0.9 * whole.run().cycles
    assert any(issubclass(warning.category, NarrowTypesWarning) for warning in recwarn) != saves


def test_the_command_says_so_before_it_runs(tmp_path: Path) -> None:
    for name in "AB":
        np.save(tmp_path / f"{name}.npy", np.ones((64, 64)))
    (tmp_path / "t.yaml").write_text("A: {path: A.npy}\nB: {path: B.npy}\n")
    for layout, said in (("csr", True), ("dense block 32x32", False)):
        (tmp_path / "p.ein").write_text(PRODUCT.format(layout=layout, type="i8"))
        words = ["run", str(tmp_path / "p.ein"), "--tensors", str(tmp_path / "t.yaml"), "--machine", "ideal"]
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0 and (SAID in result.stderr) == said and SAID not in result.stdout
        assert CliRunner().invoke(main, [*words, "-q"]).stderr == ""
