"""Models that are made sparse: in every layout of weights and with every kind of rule for intermediates, they run as PyTorch runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from sources import compiled_at
from torch import nn

import fuseflow as ff
import fuseflow.sparsity as sp
from fuseflow.frontend import load_model
from fuseflow.sparsity.layouts.listing import LAYOUTS
from fuseflow.sparsity.sparsifiers.listing import SPARSIFIERS

MODELS = Path(__file__).resolve().parents[2] / "models"
WEIGHTS = {
    "dense": "magnitude:0.5",
    "masked": "magnitude:0.5",
    "coo": "magnitude:0.5",
    "csr": "magnitude:0.9",
    "csc": "magnitude:0.5",
    "bcsr:2x2": "block:0.5:2x2",
    "ell": "topk:2",
    "nm:2:4": "nm:2:4",
    "nmg:1:2:1": "nmg:1:2:1",
}
"""For each layout a rule whose masks fit it."""
INTERMEDIATES = ("threshold:0.05", "random:0.5", "random:0.5:seed=3", "nm:2:4", "topk:2", "magnitude:0.5", "keepall")

Built = tuple[nn.Module, tuple[Any, ...]]


def _bert() -> Built:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48, vocab_size=20, max_position_embeddings=8
    )
    torch.manual_seed(0)
    return transformers.BertModel(config, add_pooling_layer=False).eval(), (torch.randint(0, 20, (1, 3)),)


def _built(name: str, **options: Any) -> Built:
    model = load_model(MODELS / name, options=options)
    assert isinstance(model.module, nn.Module) and isinstance(model.inputs, tuple)
    return model.module, model.inputs


BUILDERS: dict[str, Callable[[], Built]] = {
    "gcn": lambda: _built("gcn.py"),
    "sae": lambda: _built("sae.py", small=True),
    "gpt": lambda: _built("gpt_bigbird.py", small=True, decoders=1),
    "bert": _bert,
}


def matrices(model: nn.Module) -> list[str]:
    """Return the names of the matrices of a model but its embeddings, which PyTorch evaluates before import."""
    return [name for name, p in model.named_parameters() if p.dim() == 2 and "embed" not in name]


def test_every_layout_is_tried() -> None:
    assert {layout.partition(":")[0] for layout in WEIGHTS} == set(LAYOUTS)


def pairs() -> Iterator[object]:
    """Every layout with two of the models, and with the others in a slow run."""
    for n, layout in enumerate(WEIGHTS):
        for m, name in enumerate(BUILDERS):
            yield pytest.param(name, layout, marks=() if (m - n) % len(BUILDERS) < 2 else pytest.mark.slow)


@pytest.mark.parametrize(("model_name", "layout"), list(pairs()))
def test_weights_in_every_layout(model_name: str, layout: str) -> None:
    model, inputs = BUILDERS[model_name]()
    builder = sp.SparsityBuilder()
    for name in matrices(model):
        builder.set_weight(name, sp.parse_sparsifier(WEIGHTS[layout]), out_format=sp.parse_layout(layout))
    sparse = builder.get_sparse_model(model)
    compiled = ff.compile(sparse, inputs)
    check = compiled.run().check
    assert check is not None and check.passed and check.max_rel_error < 1e-4
    dense = layout in ("dense", "masked")
    for name, parameter, weight in sp.sparse_weights(sparse):
        stored = compiled.source.tensors[name]
        assert stored.entries()[1].size == (parameter.numel() if dense else _stored(weight.mask, layout)), name
    assert list(sparse.state_dict()) == list(model.state_dict())


def _stored(mask: torch.Tensor, layout: str) -> int:
    """Return how many entries the compiler stores: those that are kept, and what blocks and groups are filled up with."""
    if layout.startswith("nm:"):
        return mask.shape[0] * -(-mask.shape[1] // 4) * 2
    if layout.startswith("bcsr"):
        return 4 * int(mask.unflatten(0, (-1, 2)).unflatten(2, (-1, 2)).any(dim=3).any(dim=1).sum())
    if layout.startswith("nmg"):
        return mask.shape[1] * -(-mask.shape[0] // 2)
    return int(mask.sum())


@pytest.mark.parametrize("rule", INTERMEDIATES)
@pytest.mark.parametrize(("model_name", "intermediate"), [("gcn", "relu"), ("gpt", "h.*.ffn1")])
def test_intermediates_of_every_kind(model_name: str, intermediate: str, rule: str) -> None:
    model, inputs = BUILDERS[model_name]()
    builder = sp.SparsityBuilder()
    builder.set_interm(intermediate, external_sparsifier=sp.parse_sparsifier(rule))
    sparse = builder.get_sparse_model(model)
    for compiled in compiled_at(sparse, inputs, "none", "full"):
        check = compiled.run().check
        assert check is not None and check.passed and check.max_rel_error < 1e-4, compiled.schedule
    text = str(compiled.emit("einsum"))
    if rule not in ("keepall", "random:0.5", "random:0.5:seed=3"):
        assert "keep(" in text


def test_every_kind_of_intermediate_is_tried() -> None:
    kinds = {SPARSIFIERS[rule.partition(":")[0]].kind for rule in INTERMEDIATES}
    assert kinds == {"streaming", "blocking", "materializing"}


def test_an_entry_that_is_kept_and_zero_is_not_stored() -> None:
    model = nn.Linear(4, 2, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[5.0, 0.0, 1.0, 0.0], [3.0, 4.0, 0.0, 0.0]]))
    builder = sp.SparsityBuilder()
    builder.set_weight("weight", sp.NM(1, 2), out_format=sp.CSR)
    sparse, x = builder.get_sparse_model(model), torch.ones(3, 4)
    compiled = ff.compile(sparse, (x,))
    coordinates, values = compiled.source.tensors["weight"].entries()
    assert coordinates.T.tolist() == [[0, 0], [0, 2], [1, 1]]
    assert values.tolist() == [5.0, 1.0, 4.0]
    assert ff.compile(sparse, (x,), formats={"weight": "csr all"}).inputs()["weight"].values.size == 8
