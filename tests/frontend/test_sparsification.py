"""Models that are made sparse on their way in: by a spec, a file or a directory, and what becomes of the model of the user."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fuseflow as ff
import fuseflow.sparsity as sp
from fuseflow.einsum.parse import parse
from fuseflow.errors import FileError, FrontendError, FuseFlowError, SparsityError, UsageError
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import as_sparsity, sparsified
from fuseflow.sparsity.model_sparsity import sparsity_of
from fuseflow.sparsity.saved import save_sparsity
from fuseflow.sparsity.spec import SparseSpec, parse_sparsify

X = torch.linspace(-1, 1, 24).reshape(3, 8)
HALF, NM = parse_sparsify("*.weight=magnitude:0.5:csr"), parse_sparsify("*.weight=nm:2:4")


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))


def formats(compiled: ff.Compiled) -> dict[str, str]:
    return {t.name: t.format.short() for t in compiled.program.inputs if t.name.endswith("weight")}


def test_what_says_what_is_sparse(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(HALF.to_yaml())
    assert as_sparsity(None) is None and as_sparsity(HALF) is HALF
    assert as_sparsity(str(tmp_path / "spec.yaml")) == as_sparsity(tmp_path / "spec.yaml") == HALF
    assert as_sparsity(str(tmp_path)) == tmp_path
    with pytest.raises(FileError, match="cannot read the sparsity spec"):
        as_sparsity(tmp_path / "nowhere")


@pytest.mark.parametrize("sparsity", [None, SparseSpec()])
def test_without_a_rule_the_model_is_the_same(sparsity: SparseSpec | None) -> None:
    model = mlp()
    with sparsified(model, ModelSpec(model, sparsity=sparsity), owned=False) as same:
        assert same is model and sparsity_of(same) is None


def test_the_model_of_the_user_stays_as_it_is() -> None:
    model = mlp()
    before = copy.deepcopy(model.state_dict())
    compiled = ff.compile(model, (X,), sparsity=HALF)
    assert formats(compiled) == {"0.weight": "csr", "2.weight": "csr"}
    assert sparsity_of(model) is None
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


def test_a_model_that_is_owned_is_not_copied() -> None:
    model = mlp()
    with sparsified(model, ModelSpec(model, sparsity=HALF), owned=True) as same:
        assert same is model and sparsity_of(model) is not None


@pytest.mark.parametrize(
    "rule", ["*.weight=magnitude:0.5:csr", "*.weight=nm:2:4", "0.weight=topk:3:ell", "*.weight=block:0.5:2x2"]
)
def test_a_sparse_model_runs_as_in_pytorch(rule: str) -> None:
    compiled = ff.compile(mlp(), (X,), sparsity=parse_sparsify(rule))
    assert compiled.run(engine="reference").check.passed


def test_a_spec_and_a_model_that_is_sparse_are_the_same_program() -> None:
    builder = sp.SparsityBuilder()
    builder.set_weight("*.weight", initial_sparsifier=sp.Magnitude(0.5), out_format=sp.CSR)
    inside, outside = ff.compile(builder.get_sparse_model(mlp()), (X,)), ff.compile(mlp(), (X,), sparsity=HALF)
    assert str(inside.program) == str(outside.program)
    for name, tensor in inside.source.tensors.items():
        np.testing.assert_array_equal(tensor.to_dense(), outside.source.tensors[name].to_dense())


def test_a_spec_joins_the_rules_of_a_sparse_model() -> None:
    builder = sp.SparsityBuilder()
    builder.set_weight("0.weight", initial_sparsifier=sp.Magnitude(0.5), out_format=sp.CSR)
    builder.set_interm("1", external_sparsifier=sp.Threshold(0.1))
    model = builder.get_sparse_model(mlp())
    compiled = ff.compile(model, (X,), sparsity=parse_sparsify("2.weight=nm:2:4"))
    assert formats(compiled) == {"0.weight": "csr", "2.weight": "nm(2:4)"}
    assert "keep(threshold 0.1)" in ff.einsum.text.show(compiled.program)
    assert set(sparsity_of(model).weights) == {"0.weight"}, "the model of the user has its own rules only"


def test_a_weight_with_a_rule_does_not_get_another() -> None:
    builder = sp.SparsityBuilder()
    builder.set_weight("0.weight", initial_sparsifier=sp.Magnitude(0.5), out_format=sp.CSR)
    model = builder.get_sparse_model(mlp())
    with pytest.raises(SparsityError, match=r"`0\.weight` has a rule already"):
        ff.compile(model, (X,), sparsity=NM)
    assert formats(ff.compile(model, (X,))) == {"0.weight": "csr", "2.weight": "dense"}


def test_a_directory_for_a_sparse_model_is_refused(tmp_path: Path) -> None:
    with sparsified(mlp(), ModelSpec(mlp(), sparsity=HALF), owned=True) as model:
        save_sparsity(model, tmp_path / "d")
        with pytest.raises(SparsityError, match="sparse already"):
            ff.compile(model, (X,), sparsity=tmp_path / "d")


def test_a_directory_gives_weights_to_the_dense_model(tmp_path: Path) -> None:
    with sparsified(mlp(), ModelSpec(mlp(), sparsity=HALF), owned=True) as model:
        save_sparsity(model, tmp_path / "d")
        expected = model[0].weight.detach().numpy()
    torch.manual_seed(9)
    other = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    stored = ff.compile(other, (X,), sparsity=str(tmp_path / "d")).source.tensors["0.weight"]
    np.testing.assert_array_equal(stored.to_dense(), expected)
    assert stored.format.short() == "csr" and stored.values.size == 32


def test_a_format_of_the_user_counts_more_than_a_layout() -> None:
    compiled = ff.compile(mlp(), (X,), sparsity=HALF, formats={"0.weight": "coo"})
    assert formats(compiled) == {"0.weight": "coo", "2.weight": "csr"}


def test_random_rules_follow_the_seed_alone() -> None:
    def kept(seed: int) -> np.ndarray[Any, Any]:
        torch.rand(seed + 3)  # numbers that were drawn before do not count
        spec = parse_sparsify("0.weight=random:0.5:csr")
        return ff.compile(mlp(), (X,), sparsity=spec, seed=seed).source.tensors["0.weight"].coordinates()

    np.testing.assert_array_equal(kept(1), kept(1))
    assert not np.array_equal(kept(1), kept(2))


def test_the_random_numbers_of_the_user_go_on_as_before() -> None:
    torch.manual_seed(5)
    model = nn.Linear(8, 8)
    expected = torch.get_rng_state()
    with sparsified(model, ModelSpec(model, sparsity=parse_sparsify("weight=random:0.5")), owned=False):
        torch.rand(3)
    assert torch.equal(torch.get_rng_state(), expected)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (parse_sparsify("9.weight=nm:2:4"), "no weight is called `9.weight`"),
        (parse_sparsify("0.bias=nm:2:4:csr"), "cannot be stored as `csr`"),
        (SparseSpec.from_yaml("intermediates: {nowhere: {external: 'topk:3'}}"), "no intermediate called `nowhere`"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(spec: SparseSpec, message: str) -> None:
    model = mlp()
    with pytest.raises(SparsityError, match=message):
        ff.compile(model, (X,), sparsity=spec)
    assert sparsity_of(model) is None and ff.compile(model, (X,)).program is not None


@pytest.mark.parametrize(
    ("model", "kind"),
    [(lambda x: x @ x.T, "function"), (torch.export.export(nn.Linear(8, 8), (X,)), "ExportedProgram")],
)
def test_what_has_no_weights_with_names_is_refused(model: Any, kind: str) -> None:
    with pytest.raises(FrontendError, match=f"a {kind} cannot be made sparse"):
        ff.compile(model, (X,), sparsity=HALF)


def test_a_program_is_refused(tmp_path: Path) -> None:
    text = "tensor A[3, 4] csc\ntensor x[4] dense\ny[i] = sum(k) A[i, k] * x[k]\noutput y\n"
    (tmp_path / "p.ein").write_text(text)
    for model in (tmp_path / "p.ein", parse(text)):
        with pytest.raises(UsageError, match="takes no `sparsity`") as caught:
            ff.compile(model, sparsity=HALF)
        assert "`--format`" in str(caught.value.hint)


@pytest.mark.parametrize("wrong", [3, {"*.weight": "nm:2:4"}])
def test_a_value_that_is_no_spec(wrong: Any) -> None:
    with pytest.raises(FuseFlowError, match="does not say what is sparse"):
        ff.compile(mlp(), (X,), sparsity=wrong)


def test_a_model_in_training_mode_is_copied_with_its_mode() -> None:
    model = mlp().train()
    with sparsified(model, ModelSpec(model, sparsity=HALF), owned=False) as sparse:
        assert sparse.training and sparse is not model


def test_tied_weights_have_one_rule_under_either_name() -> None:
    model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.ReLU(), nn.Linear(8, 8, bias=False))
    model[2].weight = model[0].weight
    for name in ("0.weight", "2.weight", "*.weight"):
        assert formats(ff.compile(model, (X,), sparsity=parse_sparsify(f"{name}=nm:2:4"))) == {"0.weight": "nm(2:4)"}
