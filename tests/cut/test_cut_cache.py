"""A cut that was chosen before is taken again as long as nothing that it follows from changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.cut import best
from fuseflow.einsum.nodes import Location
from fuseflow.einsum.parse import parse
from fuseflow.sim import load_machine

PROGRAM = parse(
    "tensor A[8, 8] csr\ntensor X[8, 6] dense\ntensor W[6, 4] dense\n"
    "T[i, j] = sum(k) X[i, k] * W[k, j]\nH[i, j] = sum(k) A[i, k] * T[k, j]\nR[i, j] = relu(H[i, j])\noutput R"
)
Searched = Callable[..., bool]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("FUSEFLOW_MODEL_CACHE_MB")
    return tmp_path / "cache" / "cuts"


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> Searched:
    """Return a function that compiles a program, and says whether its cut was looked for."""
    calls = list[object]()
    expected_cuts = best.expected_cuts
    monkeypatch.setattr(best, "expected_cuts", lambda costs: calls.append(costs) or expected_cuts(costs))

    def compiles(tensors: dict[str, np.ndarray], program=PROGRAM, **settings: object) -> bool:
        calls.clear()
        ff.compile(program, tensors=tensors, **settings)
        return bool(calls)

    return compiles


def arrays(seed: int = 0, dtype: type = np.float32) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    dense = {"A": rng.random((8, 8)) * (rng.random((8, 8)) < 0.3), "X": rng.random((8, 6)), "W": rng.random((6, 4))}
    return {name: array.astype(dtype) for name, array in dense.items()}


def test_the_second_compilation_takes_the_cut_of_the_first(cache: Path, searched: Searched, tmp_path: Path) -> None:
    assert searched(arrays()) and not searched(arrays())
    for name in ("first", "second"):
        if name == "first":
            next(cache.iterdir()).unlink()
        ff.compile(PROGRAM, tensors=arrays()).save(tmp_path / name)
    first = {
        path.relative_to(tmp_path / "first"): path.read_bytes() for path in (tmp_path / "first").rglob("*") if path.is_file()
    }
    assert first == {
        path.relative_to(tmp_path / "second"): path.read_bytes() for path in (tmp_path / "second").rglob("*") if path.is_file()
    }


def test_whatever_a_cut_follows_from_makes_it_looked_for_again(
    cache: Path, searched: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert searched(arrays())
    assert searched(arrays(1))
    assert searched(arrays(), machine="ideal")
    assert searched(arrays(), machine=load_machine("rda").model_copy(update={"fifo_depth": 7}))
    assert searched(arrays(), schedule=ff.Schedule().par(i=2))
    einsums = tuple(replace(e, location=Location(f"layer.{e.name}")) for e in PROGRAM.einsums)
    assert searched(arrays(), replace(PROGRAM, einsums=einsums))
    monkeypatch.setattr("fuseflow.cut.cut_cache.package_digest", lambda: "other sources")
    assert searched(arrays())
    assert len(list(cache.iterdir())) == 7


def test_a_cut_that_was_damaged_is_looked_for_again(cache: Path, searched: Searched) -> None:
    assert searched(arrays())
    (entry,) = cache.iterdir()
    entry.write_bytes(entry.read_bytes()[:-1])
    assert searched(arrays()) and not searched(arrays())


def test_no_cut_is_kept_where_caches_are_off(cache: Path, searched: Searched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEFLOW_MODEL_CACHE_MB", "0")
    assert searched(arrays()) and searched(arrays())
    assert not cache.exists()


def test_a_cut_that_somebody_asked_for_is_not_kept(cache: Path, searched: Searched) -> None:
    assert not searched(arrays(), schedule=ff.Schedule.fuse("full"))
    assert not cache.exists()
