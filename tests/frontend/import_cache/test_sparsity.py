"""The cache of imported models and sparsity: what is sparse is part of the request, by its content and not by its path."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseflow.errors import FileError
from fuseflow.frontend.import_cache.request import request_digest
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import as_sparsity, load, load_module, sparsified
from fuseflow.sparsity.saved import save_sparsity
from fuseflow.sparsity.spec import SparseSpec, parse_sparsify

MODEL = """\
import torch
from torch import nn

def build():
    print("imported")
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)), (torch.ones(3, 8),)
"""
HALF = parse_sparsify("*.weight=magnitude:0.5:csr")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("FUSEFLOW_MODEL_CACHE_MB")
    return tmp_path / "cache" / "models"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path / "model.py"


@pytest.fixture
def imports(model: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., bool]:
    """`imports(sparsity=...)` loads the model and returns whether it was imported, and not recalled."""

    def load_model(**arguments: Any) -> bool:
        capfd.readouterr()
        load(ModelSpec(model, **arguments))
        return "imported" in capfd.readouterr().out

    return load_model


def save(model: Path, spec: SparseSpec, directory: Path, seed: int = 0) -> Path:
    asked = ModelSpec(model, sparsity=spec, seed=seed)
    with sparsified(load_module(asked).module, asked, owned=True) as module:
        save_sparsity(module, directory)
    return directory


def test_the_same_rule_hits(imports: Callable[..., bool]) -> None:
    assert imports(sparsity=HALF) and not imports(sparsity=HALF)
    assert not imports(sparsity=parse_sparsify("*.weight=magnitude:0.5")), "a layout that is not named is the same one"


def test_a_recalled_model_is_what_the_import_was(model: Path) -> None:
    first, second = (load(ModelSpec(model, sparsity=HALF)) for _ in range(2))
    assert str(first.program) == str(second.program) and first.mlir == second.mlir
    for name, tensor in first.tensors.items():
        assert tensor.format == second.tensors[name].format
        np.testing.assert_array_equal(tensor.values, second.tensors[name].values)
        np.testing.assert_array_equal(tensor.coordinates(), second.tensors[name].coordinates())
    np.testing.assert_array_equal(*(next(iter(s.expected.values())) for s in (first, second)))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "other",
    [
        None,
        parse_sparsify("*.weight=magnitude:0.25:csr"),
        parse_sparsify("*.weight=magnitude:0.5:coo"),
        parse_sparsify("0.weight=magnitude:0.5:csr"),
        parse_sparsify("*.weight=magnitude:0.5:model"),
        HALF + SparseSpec.from_yaml("intermediates: {'1': {external: 'topk:3'}}"),
    ],
)
def test_another_rule_misses(imports: Callable[..., bool], other: SparseSpec | None) -> None:
    assert imports(sparsity=HALF)
    assert imports(sparsity=other)
    assert not imports(sparsity=HALF)


def test_another_seed_misses(imports: Callable[..., bool]) -> None:
    rule = parse_sparsify("*.weight=random:0.5:csr")
    assert imports(sparsity=rule, seed=1) and imports(sparsity=rule, seed=2) and not imports(sparsity=rule, seed=1)


def test_a_dense_model_is_recalled_whether_its_spec_is_empty_or_none(imports: Callable[..., bool]) -> None:
    assert imports() and not imports(sparsity=SparseSpec())


def test_a_file_counts_by_its_content(imports: Callable[..., bool], tmp_path: Path) -> None:
    for name in ("one.yaml", "two.yaml"):
        (tmp_path / name).write_text(HALF.to_yaml())
    assert imports(sparsity=as_sparsity(tmp_path / "one.yaml"))
    assert not imports(sparsity=as_sparsity(tmp_path / "two.yaml")) and not imports(sparsity=HALF)
    (tmp_path / "one.yaml").write_text(HALF.to_yaml().replace("0.5", "0.75"))
    assert imports(sparsity=as_sparsity(tmp_path / "one.yaml"))


def test_a_directory_counts_by_its_content(imports: Callable[..., bool], model: Path, tmp_path: Path) -> None:
    one = save(model, HALF, tmp_path / "one")
    shutil.copytree(one, tmp_path / "two")
    assert imports(sparsity=one)
    assert not imports(sparsity=one) and not imports(sparsity=tmp_path / "two")
    save(model, HALF, one, seed=1)
    assert imports(sparsity=one), "other weights under the same rules"


@pytest.mark.parametrize("name", ["spec.yaml", "weights.npz", "sparsity.json"])
def test_every_file_of_a_directory_counts(model: Path, tmp_path: Path, name: str) -> None:
    directory = save(model, HALF, tmp_path / "d")
    asked = ModelSpec(model, sparsity=directory)
    before = request_digest(asked)
    assert before == request_digest(asked)
    with (directory / name).open("ab") as file:
        file.write(b"\n")
    assert request_digest(asked) != before


def test_a_directory_that_is_damaged_is_read_and_refused(imports: Callable[..., bool], model: Path, tmp_path: Path) -> None:
    directory = save(model, HALF, tmp_path / "d")
    assert imports(sparsity=directory)
    (directory / "weights.npz").write_bytes(b"")
    with pytest.raises(FileError, match="cannot read"):
        imports(sparsity=directory)
