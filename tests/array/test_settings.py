"""Array files: what ships with the package, a user's own, and mistakes, each with its line and the nearest right name."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseflow.array.footprint import footprint_names, footprint_of
from fuseflow.array.grid import Grid
from fuseflow.array.settings import array_names, load_array, read_array
from fuseflow.errors import ArrayError, FileError

OWN = """\
array:
  grid: {columns: 6, rows: 4}
  tiles: {pattern: PPM, kinds: {P: PE, M: MEM}}
  ports: {kind: IO, side: [north, west]}
  footprint: simple
"""


def test_arrays_of_the_package() -> None:
    assert array_names() == ("onyx", "plasticine")
    assert footprint_names() == ("onyx", "simple")
    onyx, plasticine = map(load_array, array_names())
    assert onyx.available == {"PE": 384, "MEM": 128, "IO": 32}
    assert plasticine.available == {"MEM": 64, "PE": 64, "IO": 16}
    assert onyx.assumed == ("load.drain",)
    kinds = Grid.of(onyx).kinds()
    assert [kinds[x, 1] for x in range(4)] == ["PE", "PE", "PE", "MEM"] and kinds[31, 0] == "IO"
    kinds = Grid.of(plasticine).kinds()
    assert all(kinds[x, y] == ("MEM" if (x + y) % 2 else "PE") for x in range(1, 17) for y in range(8))
    assert {kinds[x, y] for x in (0, 17) for y in range(8)} == {"IO"}


def test_an_array_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(OWN)
    array = load_array(tmp_path / "mine.yaml")
    assert array.name == "mine"
    assert array.available == {"PE": 16, "MEM": 8, "IO": 10}
    grid = Grid.of(array)
    assert (grid.columns, grid.rows) == (7, 5)
    assert {kind: len(sites) for kind, sites in grid.sites.items()} == array.available
    assert len(grid.kinds()) == 34


def test_a_footprint_of_ones_own() -> None:
    text = OWN.replace("footprint: simple", "footprint: {memory: {MEM: 1, port: 1}, drop: {PE: inputs - 1}}")
    assert read_array(text).rows.kinds == ("MEM", "PE")
    assert set(footprint_of("simple").rows) == set(footprint_of("onyx").rows)


@pytest.mark.parametrize(
    ("old", "new", "line", "said", "hint"),
    [
        ("columns: 6", "columns: 0", 2, "columns", ""),
        ("columns: 6", "columns: 257", 2, "columns", ""),
        ("columns: 6", "colums: 6", 2, "colums", "columns"),
        ("pattern: PPM", "pattern: PPMPPMP", 3, "larger than the grid", ""),
        ("pattern: PPM", "pattern: PPX", 3, "the letter 'X'", ""),
        ("pattern: PPM", "rows: [PPM, PP]", 3, "rows of equal length", ""),
        ("pattern: PPM", "rows: [P], pattern: P", 3, "either a `pattern`", ""),
        ("side: [north, west]", "side: up", 4, "side", ""),
        ("  ports: {kind: IO, side: [north, west]}\n", "", 1, "ports", ""),
        ("footprint: simple", "footprint: simpel", 5, "no footprint `simpel`", "simple"),
        ("footprint: simple", "footprint: {rpeat: {PE: 1}}", 5, "`rpeat`", "repeat"),
        ("footprint: simple", "footprint: {repeat: {PE: orders}}", 5, "no number of tiles", "order"),
        ("footprint: simple", "footprint: {repeat: {PEE: 1}}", 5, "the kind `PEE`", "PE"),
        ("footprint: simple", "footprint: simple\n  tracks: 0", 6, "tracks", ""),
        ("footprint: simple", "footprint: simple\n  delays_ps: {PE: -1}", 6, "delays_ps", ""),
        ("footprint: simple", "footprint: simple\n  delays_ps: {PX: 1}", 6, "`PX`", ""),
        ("footprint: simple", "footprint: simple\n  hop: {slots: 1}", 6, "hop", ""),
        ("footprint: simple", "footprint: simple\n  resident: 3", 6, "resident", ""),
        ("footprint: simple", "footprint: simple\n  memory: {kind: RAM}", 6, "`RAM`", ""),
        ("footprint: simple", "footprint: simple\n  assumed: [trakcs]", 6, "`trakcs`", "tracks"),
        ("kind: IO", "kind: PE", 4, "one of tiles, too", "IO"),
        ("array:", "arary:", 1, "no key `array`", ""),
    ],
)
def test_mistakes(old: str, new: str, line: int, said: str, hint: str) -> None:
    assert old in OWN
    with pytest.raises(ArrayError) as refused:
        read_array(OWN.replace(old, new), "own.yaml")
    assert said in refused.value.message and hint in refused.value.hint
    assert refused.value.span is not None and refused.value.span.line == line


def test_names_of_arrays_and_files() -> None:
    with pytest.raises(ArrayError, match="no array `onix`") as refused:
        load_array("onix")
    assert "onyx" in refused.value.hint
    with pytest.raises(FileError):
        load_array("missing.yaml")
