"""Intermediates that a sparse model makes: the rule of each is a `keep` of the program, and the numbers are those of PyTorch."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fuseflow as ff
import fuseflow.sparsity as sp
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model
from fuseflow.frontend.imported_program import Source
from fuseflow.frontend.trace.model_call import model_call
from fuseflow.frontend.trace.sparsified_tensors import keep, mark_kept, masked, with_keeps
from fuseflow.frontend.trace.tracing import trace
from fuseflow.keep_rules import Largest, Threshold
from fuseflow.sparsity.sparsifiers.listing import parse_sparsifier
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5))


def sparse(external: str = "keepall", inline: str = "keepall", name: str = "1", model: nn.Module | None = None) -> nn.Module:
    builder = sp.SparsityBuilder()
    builder.set_interm(name, inline_sparsifier=parse_sparsifier(inline), external_sparsifier=parse_sparsifier(external))
    return builder.get_sparse_model(model or mlp())


def keeps(imported: Source) -> list[str]:
    """The rules of the program in order, as its text says them."""
    return re.findall(r"= (keep\(.*?\))", show(imported.program))


def require_numbers(model: nn.Module, x: Tensor = X) -> None:
    """Require that the compiled program computes what the sparse model does in PyTorch."""
    compiled = ff.compile(model, (x,))
    (computed,) = compiled.interpret().values()
    np.testing.assert_allclose(computed, model(x).detach().numpy().squeeze(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("threshold:0.1", "keep(threshold 0.1)"),
        ("topk:3", "keep(3 over j)"),
        ("nm:2:4", "keep(2 of 4 over j)"),
        ("nm:1:2:dim=0", "keep(1 of 2 over i)"),
        ("magnitude:0.5", "keep(16 over i, j)"),
    ],
)
def test_a_rule_is_a_keep_of_the_program(rule: str, text: str) -> None:
    model = sparse(rule)
    imported = import_model(model, (X,))
    assert keeps(imported) == [text]
    assert not any("keep" in name for name in imported.tensors), "no tensor stands for the rule any more"
    require_numbers(model)


def test_both_sparsifiers_apply_in_their_order() -> None:
    model = sparse("topk:2", "threshold:0.2")
    assert keeps(import_model(model, (X,))) == ["keep(threshold 0.2)", "keep(2 over j)"]
    require_numbers(model)


def test_every_intermediate_has_a_rule_of_its_own() -> None:
    builder = sp.SparsityBuilder()
    builder.set_interm("0", external_sparsifier=sp.Threshold(0.3))
    builder.set_interm("1", external_sparsifier=sp.TopK(3))
    model = builder.get_sparse_model(mlp())
    assert keeps(import_model(model, (X,))) == ["keep(threshold 0.3)", "keep(3 over j)"]
    require_numbers(model)


def test_a_rule_that_keeps_all_leaves_no_trace() -> None:
    assert show(import_model(sparse(), (X,)).program) == show(import_model(mlp(), (X,)).program)


@pytest.mark.parametrize(
    ("rule", "text"),
    [("topk:3", "keep(3 over i)"), ("magnitude:0.5", "keep(4 over i)"), ("threshold:0.1", "keep(threshold 0.1)")],
)
def test_a_batch_of_one_loses_its_dimension(rule: str, text: str) -> None:
    model = sparse(rule)
    assert keeps(import_model(model, (X[:1],))) == [text]
    require_numbers(model, X[:1])


def test_of_one_entry_the_largest_is_kept_without_a_rule() -> None:
    model = sparse("topk:1", name="0", model=nn.Sequential(nn.Linear(6, 1), nn.Linear(1, 5)))
    assert keeps(import_model(model, (X,))) == []
    require_numbers(model)


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.act, self.second = nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        kept = self.act(self.first(x))
        return self.second(kept) + kept


def test_all_that_reads_an_intermediate_reads_what_is_kept() -> None:
    torch.manual_seed(1)
    model = sparse("topk:2", name="act", model=Shared())
    assert keeps(import_model(model, (X,))) == ["keep(2 over j)"]
    require_numbers(model)


def test_an_intermediate_that_is_an_output() -> None:
    model = sparse("topk:2", name="2")
    (output,) = import_model(model, (X,)).program.outputs
    assert "keep" in output
    require_numbers(model)


def test_a_random_rule_is_a_mask_that_is_drawn_once() -> None:
    torch.manual_seed(3)
    imported = import_model(sparse("random:0.5:seed=1"), (X,))
    (mask,) = (
        tensor for name, tensor in imported.tensors.items() if name not in ("input", "0.weight", "0.bias", "2.weight", "2.bias")
    )
    assert mask.format.short() == "coo" and set(mask.values.tolist()) == {1.0}
    assert mask.shape == (4, 8) and 0 < mask.values.size < 32
    require_numbers(sparse("random:0.5:seed=1"))


@pytest.mark.parametrize("rule", ["block:0.5:2x2", "filter:0.5", "movement:0.5"])
def test_rules_that_the_compiler_does_not_have(rule: str) -> None:
    with pytest.raises(FrontendError, match="of a computed tensor has no form in the compiler at module `1`") as caught:
        import_model(sparse(rule), (X,))
    assert "`threshold`, `nm`, `topk`, `magnitude`" in str(caught.value.hint) and rule in caught.value.message


def traced(model: nn.Module):
    return trace(model_call(model, (X,), None))


def test_marks_are_products_with_fresh_arguments() -> None:
    found = traced(sparse("topk:2", "threshold:0.2"))
    before = len(found.arguments)
    kept = mark_kept(found, {})
    assert kept.rules == {"keep0": KeepRule(Threshold(pytest.approx(0.2)), ()), "keep1": KeepRule(Largest(2), (1,))}
    assert len(found.arguments) == before + 2 and not kept.refusals and not kept.patterns
    targets = [node.target for node in found.graph_module.graph.nodes]
    assert targets.count(keep) == 2 and not any("fuseflow" in str(target) for target in targets)
    for name in kept.rules:
        marker = found.tensors[name]
        assert marker.shape == (4, 8) and bool((marker == 1).all())
        assert marker.untyped_storage().nbytes() == marker.element_size(), "a marker takes no memory"


def test_drawn_masks_are_patterns() -> None:
    found = traced(sparse("random:0.5:seed=1"))
    kept = mark_kept(found, {})
    ((name, pattern),) = kept.patterns.items()
    assert str(pattern.layout) == "coo" and torch.equal(pattern.mask, found.tensors[name] != 0) and not kept.rules
    assert masked in [node.target for node in found.graph_module.graph.nodes]


PRODUCTS = """\
tensor keep0[3, 4] dense
tensor x[3, 4] dense
tensor w[3, 4] dense
y[i, j] = {0}
z[i, j] = y[i, j] * w[i, j]
output z
"""


@pytest.mark.parametrize("product", ["keep0[i, j] * x[i, j]", "x[i, j] * keep0[i, j]"])
def test_a_product_with_a_mark_is_a_keep_whatever_stands_first(product: str) -> None:
    program = with_keeps(parse(PRODUCTS.format(product)), {"keep0": KeepRule(Largest(2), (1,))})
    assert show(program) == show(parse(PRODUCTS.format("keep(2 over j) x[i, j]").partition("\n")[2]))


def test_a_program_without_marks_is_the_same() -> None:
    program = parse(PRODUCTS.format("x[i, j] * keep0[i, j]"))
    assert with_keeps(program, {}) is program


@pytest.mark.parametrize("change", [lambda m: m, lambda m: m.half(), lambda m: m.bfloat16()])
def test_thresholds_in_narrow_types(change: Callable[[nn.Module], nn.Module]) -> None:
    model = change(sparse("threshold:0.1"))
    x = X.to(next(model.parameters()).dtype)
    assert keeps(import_model(model, (x,))) == ["keep(threshold 0.1)"]
