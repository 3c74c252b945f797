"""Masks of n:m:g: against golden masks and energies, and against what the public STen made of the same tensors."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from fuseflow.keep_rules import Largest, kept
from fuseflow.sparsity.grouped.grouping import Method, grouped_mask
from fuseflow.sparsity.numpy_arrays import energy

DATA = Path(__file__).parents[2] / "data" / "sparsity"
CASES = json.loads((DATA / "nmg_cases.json").read_text())
ENERGIES = json.loads((DATA / "energies.json").read_text())["rows"]
STEN = json.loads((DATA / "sten_conversions.json").read_text())
METHODS: list[Method] = ["greedy", "exact"]


def bits(mask: npt.NDArray[np.bool_]) -> str:
    return np.packbits(mask).tobytes().hex()


def mask_for(array: npt.NDArray[Any], case: dict[str, Any], method: Method) -> npt.NDArray[np.bool_]:
    return grouped_mask(array, case["n"], case["m"], case["g"], case["sparse_dim"], case["group_dim"], method)


@pytest.fixture(scope="module")
def arrays() -> dict[str, npt.NDArray[np.float32]]:
    with np.load(DATA / "nmg_arrays.npz") as file:
        return dict(file)


@pytest.mark.parametrize("name", sorted({case["array"] for case in CASES}))
def test_golden_masks_and_energies(name: str, arrays: dict[str, npt.NDArray[np.float32]]) -> None:
    array, cases = arrays[name], [case for case in CASES if case["array"] == name]
    assert len(cases) == 12
    for case in cases:
        greedy, exact = mask_for(array, case, "greedy"), mask_for(array, case, "exact")
        n_of_m = kept(Largest(case["n"], every=case["m"]), array, [case["sparse_dim"]])
        assert bits(greedy) == case["greedy_mask"] and bits(n_of_m) == case["nm_mask"]
        assert energy(array, greedy) == pytest.approx(case["greedy_energy"], abs=1e-6)
        assert energy(array, exact) == pytest.approx(case["exact_energy"], abs=1e-6)
        assert energy(array, n_of_m) == pytest.approx(case["nm_energy"], abs=1e-6)
        assert energy(array, greedy) <= energy(array, exact) + 1e-12 <= energy(array, n_of_m) + 2e-12


@pytest.mark.parametrize("row", ENERGIES, ids=lambda row: f"{row['n']}:{row['m']}")
def test_energies_of_random_weights(row: dict[str, Any]) -> None:
    array = torch.randn(192, 768, generator=torch.Generator().manual_seed(0)).numpy()
    n, m = row["n"], row["m"]
    share = {"unstructured": energy(array, kept(Largest(round(array.size * n / m)), array, [0, 1]))}
    share["nm"] = energy(array, kept(Largest(n, every=m), array, [0]))
    for g, method in itertools.product((1, 4, 16), METHODS):
        mask = grouped_mask(array, n, m, g, 0, 1, method)
        share[f"{method} {g}"] = energy(array, mask)
        assert share[f"{method} {g}"] == pytest.approx(row[f"g{g}"][method], abs=5e-4)
        assert mask.mean() == pytest.approx(row[f"g{g}"]["kept"], abs=1e-5)
    for side in (4, 8, 32):
        share[f"block{side}"] = energy(array, blocks_kept(array, side, n / m))
    for name in ("unstructured", "nm", "block4", "block8", "block32"):
        assert share[name] == pytest.approx(row[name], abs=5e-4)
    for method in METHODS:
        chain = ["unstructured", "nm", f"{method} 16", f"{method} 4", f"{method} 1", "block4", "block8", "block32"]
        assert all(share[more] > share[less] for more, less in itertools.pairwise(chain))
    assert all(share[f"exact {g}"] > share[f"greedy {g}"] for g in (1, 4, 16))


def blocks_kept(array: npt.NDArray[np.float32], side: int, share: float) -> npt.NDArray[np.bool_]:
    height, width = (extent // side for extent in array.shape)
    sums = np.abs(array).reshape(height, side, width, side).sum((1, 3))
    return np.kron(kept(Largest(round(sums.size * share)), sums, [0, 1]), np.ones((side, side), dtype=bool))


def tensors_of_sten() -> list[npt.NDArray[np.float32]]:
    """Draw the tensors of STen's own test of conversions: shapes in its order, each in six layouts."""
    generator = torch.Generator().manual_seed(123)
    drawn = []
    for sizes, layout in itertools.product(itertools.product((17, 5, 1), repeat=2), itertools.permutations(range(3))):
        drawn.append(torch.rand((3, *sizes), generator=generator).permute(layout).numpy())
    return drawn


@pytest.mark.parametrize("shape", range(9), ids=lambda k: "3x{}x{}".format(*list(itertools.product((17, 5, 1), repeat=2))[k]))
def test_the_conversions_of_sten(shape: int) -> None:
    layouts = slice(6 * shape, 6 * shape + 6)
    for array, case in zip(tensors_of_sten()[layouts], STEN["own_test"][layouts], strict=True):
        assert list(array.shape) == case["shape"]
        assert bits(mask_for(array, {"n": 5, "m": 12, "g": 2, **case}, "greedy")) == case["mask"]


@pytest.mark.parametrize("case", STEN["more"], ids=lambda c: f"{c['n']}:{c['m']}:{c['g']}-{c['dtype']}-{c['kind']}")
def test_other_masks_of_sten(case: dict[str, Any]) -> None:
    rng = np.random.default_rng(case["seed"])
    numbers = rng.standard_normal(case["shape"]) if case["kind"] == "normal" else rng.integers(-3, 4, case["shape"])
    assert bits(mask_for(numbers.astype(case["dtype"]), case, "greedy")) == case["mask"]


@pytest.mark.parametrize("method", METHODS)
def test_filling_up_raises_no_energy(method: Method) -> None:
    array = np.random.default_rng(0).standard_normal((9, 7))
    filled = np.pad(array, [(0, 3), (0, 17)])
    mask, of_filled = grouped_mask(array, 2, 4, 2, 0, 1, method), grouped_mask(filled, 2, 4, 2, 0, 1, method)
    assert np.array_equal(mask, of_filled[:9, :7])
    assert energy(array, mask) == pytest.approx(energy(filled, of_filled), abs=1e-12)
    assert mask.mean() > of_filled.mean() == 0.5


@pytest.mark.parametrize("method", METHODS)
def test_dimensions_may_be_counted_from_the_end_and_tensors_be_views(method: Method) -> None:
    array = np.random.default_rng(1).standard_normal((3, 12, 5)).astype(np.float32)
    mask = grouped_mask(array, 1, 3, 2, 2, 1, method)
    assert np.array_equal(mask, grouped_mask(array, 1, 3, 2, -1, -2, method))
    assert np.array_equal(mask, grouped_mask(np.asfortranarray(array), 1, 3, 2, 2, 1, method))
    assert np.array_equal(mask, grouped_mask(array.transpose(2, 0, 1), 1, 3, 2, 0, 2, method).transpose(1, 2, 0))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0), (0, 5, 3)])
def test_nothing_is_kept_of_tensors_without_elements(method: Method, shape: tuple[int, ...]) -> None:
    assert grouped_mask(np.empty(shape), 2, 4, 1, method=method).shape == shape


def test_all_of_m_keep_everything() -> None:
    assert grouped_mask(np.zeros((5, 3)), 3, 3, 2).all()
