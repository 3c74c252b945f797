"""Random files of sparse matrices and of programs are read as other readers read them, and what is planted in our reader is found."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import read_beside
import torch

from fuseflow.frontend.exported_file import reader
from fuseflow.tensors import mtx_files, npy_files

FILES = {"mtx": 300, "npz": 300, "pt2": 40}


@pytest.fixture(autouse=True)
def few_exports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_beside, "EXPORTS", 6)


def became(folder: Path, kind: str, files: int | range) -> Counter[str]:
    tally = Counter[str]()
    for number in range(files) if isinstance(files, int) else files:
        chance = random.Random(f"0 {number}")
        tally[read_beside.compare(read_beside.KINDS[kind](chance), folder, chance)[0]] += 1
    return tally


@pytest.mark.parametrize("kind", read_beside.KINDS)
def test_files_give_the_same_numbers_or_are_refused(tmp_path: Path, kind: str) -> None:
    tally = became(tmp_path, kind, FILES[kind])
    assert tally["fault"] == 0
    assert min(tally["same"], tally["refused"]) > FILES[kind] / 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", read_beside.KINDS)
def test_many_files(tmp_path: Path, kind: str, draws: Callable[[int], range]) -> None:
    assert became(tmp_path, kind, draws(7000))["fault"] == 0


@pytest.mark.parametrize(
    ("kind", "module", "name", "planted"),
    [
        ("mtx", mtx_files, "_FORTRAN_EXPONENT", bytes.maketrans(b"dD", b"  ")),
        ("mtx", mtx_files, "row_lines", lambda text: list(range(text.count(b"\n") + 1))),
        ("mtx", mtx_files, "_LEAST", {"integer": 0, "unsigned-integer": 0}),
        ("npz", npy_files, "_require_zero_fill", lambda archive, path: None),
        ("npz", npy_files, "_numbers", lambda archive, rank: np.abs(archive["data"].astype(np.int64))),
        ("pt2", reader, "_integer", lambda size: abs(int(size["as_int"] or 0))),
        ("pt2", reader, "_DTYPES", {**reader._DTYPES, 1: torch.int8, 12: torch.int8, 6: torch.bfloat16, 9: torch.float32}),
    ],
)
def test_what_is_planted_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, module: object, name: str, planted: object
) -> None:
    monkeypatch.setattr(module, name, planted)
    assert became(tmp_path, kind, FILES[kind] // 2)["fault"] > 0
