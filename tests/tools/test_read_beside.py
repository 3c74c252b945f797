"""Random files of sparse matrices are read as other readers read them, and what is planted in our reader is found."""

from __future__ import annotations

import random
import sys
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from fuseflow.tensors import mtx_files, sparse_files

SPEC = spec_from_file_location("read_beside", Path(__file__).parents[2] / "tools" / "read_beside.py")
assert SPEC is not None and SPEC.loader is not None
read_beside = sys.modules["read_beside"] = module_from_spec(SPEC)  # data classes look their module up
SPEC.loader.exec_module(read_beside)


def became(folder: Path, kind: str, files: int) -> Counter[str]:
    tally = Counter[str]()
    for number in range(files):
        chance = random.Random(f"0 {number}")
        tally[read_beside.compare(read_beside.KINDS[kind](chance), folder, chance)[0]] += 1
    return tally


@pytest.mark.parametrize("kind", read_beside.KINDS)
def test_files_give_the_same_numbers_or_are_refused(tmp_path: Path, kind: str) -> None:
    tally = became(tmp_path, kind, 300)
    assert tally["fault"] == 0
    assert min(tally["same"], tally["refused"]) > 60


@pytest.mark.parametrize(
    ("kind", "module", "name", "planted"),
    [
        ("mtx", mtx_files, "_FORTRAN_EXPONENT", bytes.maketrans(b"dD", b"  ")),
        ("mtx", mtx_files, "row_lines", lambda text: list(range(text.count(b"\n") + 1))),
        ("mtx", mtx_files, "_LEAST", {"integer": 0, "unsigned-integer": 0}),
        ("npz", sparse_files, "_require_zero_fill", lambda archive, path: None),
        ("npz", sparse_files, "_numbers", lambda archive, rank: np.abs(archive["data"].astype(np.int64))),
    ],
)
def test_what_is_planted_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, module: object, name: str, planted: object
) -> None:
    monkeypatch.setattr(module, name, planted)
    assert became(tmp_path, kind, 150)["fault"] > 0
