"""Sources without what their outputs do not need: models in both forms, other layouts, the cache, and runs against PyTorch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import fuseflow as ff
from fuseflow.errors import AttributesError
from fuseflow.frontend.imported_program import Source
from fuseflow.frontend.model_propagation import analyse_module
from fuseflow.frontend.model_spec import ModelSpec, PropagationSpec
from fuseflow.frontend.sources import load, load_module, sparsified
from fuseflow.propagation.attribute_table import AttributeRow
from fuseflow.sparsity.spec import parse_sparsify

MODELS = Path(__file__).parents[2] / "models"
PLAIN = PropagationSpec()


def spec_of(model: str, rule: str, **options: str) -> ModelSpec:
    return ModelSpec(MODELS / model, options=options, sparsity=parse_sparsify(rule) if rule else None)


def rows_of(source: Source) -> dict[str, AttributeRow]:
    """The rows of a source that was made simpler."""
    assert source.simplified is not None
    return {row.name: row for row in source.simplified.rows if row.kind == "constant"}


CASES = [
    ("gcn.py", "*.weight=magnitude:0.9", {}),
    ("gcn.py", "*.weight=magnitude:0.9:masked", {}),
    ("gcn.py", "layer1.weight=filter:0.5", {}),
    ("graphsage.py", "layer*.neighbours=magnitude:0.9", {}),
    ("sparse_mlp.py", "", {}),
    ("sae.py", "*.weight=filter:0.5", {"small": "true"}),
    ("bert.py", "layer.*.weight=magnitude:0.95:coo", {"small": "true"}),
    ("gpt_bigbird.py", "h.*.weight=magnitude:0.95:csr", {"small": "true"}),
]


@pytest.mark.parametrize(("model", "rule", "options"), CASES)
def test_programs_and_graphs_need_the_same_weights(model: str, rule: str, options: dict[str, str]) -> None:
    spec = spec_of(model, rule, **options)
    rows = rows_of(load(replace(spec, propagate=PLAIN)))
    loaded = load_module(spec)
    with sparsified(loaded.module, spec, owned=True) as sparse:
        graph = {row.name: row for row in analyse_module(sparse, loaded.inputs).rows if row.kind == "constant"}
    assert set(graph) <= set(rows) and len(graph) >= 3
    for name, row in graph.items():
        assert (row.dead, row.needed) == (rows[name].dead, rows[name].needed), name
    assert sum(row.dead for row in graph.values()) > 0


class Residual(nn.Module):
    """Layers around which the input goes, with a norm whose shifts are not 0."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.out = nn.Linear(8, 16), nn.Linear(16, 8), nn.Linear(8, 4)
        self.norm = nn.BatchNorm1d(16)
        for tensor in (self.norm.bias, self.norm.running_mean):
            nn.init.normal_(tensor)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(x + self.down(torch.relu(self.norm(self.up(x)))))


class Attention(nn.Module):
    """Attention whose mask is a constant of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.query(x) @ self.key(x).T + torch.full((6, 6), -torch.inf).triu(1)
        return self.out(scores.softmax(-1) @ self.value(x))


def built(model: type[nn.Module], dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(0)
    return model().to(dtype).eval()


@pytest.mark.parametrize(("dtype", "most"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize(
    ("model", "rule", "name", "shape"),
    [
        (Residual, "down.weight=magnitude:0.9:csr", "up.weight", (11, 8)),
        (Attention, "out.weight=filter:0.5:csr", "value.weight", (8, 8)),
        (Attention, "out.weight=magnitude:0.95:csr", "value.weight", (2, 8)),
    ],
)
def test_outputs_stay(
    model: type[nn.Module], rule: str, name: str, shape: tuple[int, ...], dtype: torch.dtype, most: float
) -> None:
    """The numbers of the source that was made simpler are those of PyTorch."""
    module, x = built(model, dtype), torch.randn(6, 8, dtype=dtype, generator=torch.Generator().manual_seed(1))
    program = ff.compile(module, (x,), sparsity=parse_sparsify(rule), propagate=PropagationSpec(constants=True))
    result = program.run()
    assert result.check is not None and result.check.passed and result.check.max_rel_error <= most
    assert program.source.program.declared[name].shape == shape


def test_a_kept_entry_that_is_zero_is_no_pruned_one() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    with torch.no_grad():
        module[1].weight[:, 1] = 0
    whole, known = (ff.compile(module, (torch.ones(3, 4),), propagate=p).source for p in (PLAIN, PropagationSpec(constants=True)))
    assert whole.program.declared["0.weight"].shape == (4, 4)
    assert known.program.declared["0.weight"].shape == (3, 4)


def test_a_spec_that_is_read_from_the_cache_knows_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEFLOW_MODEL_CACHE_MB", "64")
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(tmp_path))
    spec = replace(spec_of("gcn.py", "*.weight=magnitude:0.9:masked"), propagate=PLAIN)
    first, second = load(spec), load(spec)
    assert {name: row.now for name, row in rows_of(first).items()} == {name: row.now for name, row in rows_of(second).items()}
    assert first.masks.keys() == second.masks.keys() == {"layer1.weight", "layer2.weight"}
    assert all(np.array_equal(mask, second.masks[name]) for name, mask in first.masks.items())


def test_a_pattern_that_names_no_input_is_refused() -> None:
    with pytest.raises(AttributesError, match="no input is called `adjj`") as error:
        load(replace(spec_of("gcn.py", ""), propagate=PropagationSpec(fixed=("adjj",))))
    assert "did you mean `adj`?" in error.value.hint
