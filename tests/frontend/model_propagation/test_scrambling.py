"""Operators without a rule: they are named with their line, called alive, and scrambled; and rules that users register."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
import torch
from lifted import Example, Examples, analysed
from torch import Tensor, nn

from fuseflow.errors import FrontendError
from fuseflow.frontend.model_propagation import ModuleAttributes, analyse_module, register_rule
from fuseflow.frontend.model_propagation.dependence_rules import RULES
from fuseflow.frontend.model_propagation.scrambling import Scrambler

X = torch.ones(3, 4)


@torch.library.custom_op("lifting_tests::first_half", mutates_args=())
def first_half(x: Tensor) -> Tensor:
    """The left columns, squared, and zeros beside them."""
    result = x * x
    result[:, x.shape[1] // 2 :] = 0
    return result


@first_half.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def _gradient(context: torch.autograd.function.FunctionCtx, seed: Tensor) -> Tensor:
    (x,) = context.saved_tensors
    slope = 2 * x * seed
    slope[:, x.shape[1] // 2 :] = 0
    return slope


first_half.register_autograd(_gradient, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))


@torch.library.custom_op("lifting_tests::steps", mutates_args=())
def steps(x: Tensor) -> Tensor:
    """The signs, whose derivative is 0."""
    return x.sign()


@steps.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


steps.register_autograd(lambda context, seed: torch.zeros_like(seed))


class Model(nn.Module):
    def __init__(self, operator: object = first_half) -> None:
        super().__init__()
        self.before, self.after = nn.Linear(4, 4, bias=False), nn.Linear(4, 2, bias=False)
        self.operator = operator

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.operator(self.before(x)))  # the line of the operator


@pytest.fixture
def rules() -> Iterator[None]:
    before = dict(RULES)
    yield
    RULES.clear()
    RULES.update(before)


class Sorted(nn.Module):
    def forward(self, x: Tensor, places: Tensor) -> Tensor:
        return torch.searchsorted(places, places) + x[:, 0]


@cache
def examples() -> Examples:
    """Models with an operator that has no rule, of which guesses are trusted, and one with an operator that is decomposed."""
    return Examples(
        {
            "halved": Example(Model(), (X,)),
            "halved zeros": Example(Model(), (X,), {"before.weight": torch.zeros(4, 4, dtype=torch.bool)}),
            "steps": Example(Model(steps), (X,)),
            "sorted": Example(Sorted(), (X, torch.tensor([0, 1, 2]))),
            "mish": Example(nn.Sequential(nn.Linear(4, 4), nn.Mish()), (X,)),
        },
        Scrambler(64, trusted=True),
    )


def again(samples: int, trusted: bool) -> ModuleAttributes:
    """What another analysis says of the same graph."""
    return analysed(examples().lifted.graph, {}, Scrambler(samples, trusted))


def test_a_guess_is_told_and_not_trusted():
    analysis = again(samples=64, trusted=False)
    guess = analysis.guesses[0]
    assert analysis["models.0.before.weight"].row.dead == analysis["models.0.after.weight"].row.dead == 0
    assert (guess.zeros, guess.unused, guess.samples, guess.trusted) == (6, 6, 64, False)
    assert guess.bound(0.5) == pytest.approx(0.5**64) and guess.bound() == pytest.approx(0.99**64)
    assert guess.span is not None and guess.span.file.endswith("test_scrambling.py")
    assert guess.span.line == Model.forward.__code__.co_firstlineno + 1
    text = "`lifting_tests.first_half.default` at module `models.0` has no rule: in 64 random fillings, 6 entries of its result"
    assert text in str(guess) and text in str(analysis)
    assert "called alive all the same" in str(guess) and "probability 5.3e-01" in str(guess)


def test_a_guess_is_trusted_if_the_user_says_so():
    analysis = analyse_module(Model(), (X,), {}, samples=32, trust_scrambling=True)
    assert [tensor.row.dead for tensor in examples().attributes("halved").values() if tensor.kind == "parameter"] == [8, 4]
    assert analysis.total().dead == 12 and [(guess.samples, guess.trusted) for guess in analysis.guesses] == [(32, True)]


def test_without_samples_everything_is_alive():
    analysis = again(samples=0, trusted=True)
    assert analysis["models.0.before.weight"].row.dead == analysis["models.0.after.weight"].row.dead == 0
    assert "all that it reads and computes is called alive" in str(analysis.guesses[0])


def test_steps_are_not_called_superfluous():
    attributes = examples().attributes("steps")
    assert attributes.total().dead == 0 and attributes.guesses[0].zeros == 0


def test_what_an_operator_without_a_rule_computes_of_zeros_is_known():
    attributes = examples().attributes("halved zeros")
    assert attributes.total().dead == attributes.total().size and attributes.guesses == ()


def test_integers_cannot_be_scrambled():
    (guess,) = examples().attributes("sorted").guesses
    assert guess.zeros is None and guess.operator == "aten.searchsorted.Tensor"


def test_the_same_guess_each_time():
    first = again(samples=2, trusted=False).guesses
    state = torch.get_rng_state()
    assert again(samples=2, trusted=False).guesses == first
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.usefixtures("rules")
def test_a_user_registers_a_rule():
    @register_rule("lifting_tests.first_half")
    def halved(x: Tensor) -> Tensor:
        return torch.cat([x[:, :2], torch.zeros_like(x[:, 2:])], 1)

    analysis = again(samples=0, trusted=False)
    assert "lifting_tests.first_half.default" not in [guess.operator for guess in analysis.guesses]
    assert [analysis[f"models.0.{name}.weight"].row.dead for name in ("before", "after")] == [8, 4]


@pytest.mark.usefixtures("rules")
def test_an_operator_with_a_rule_stays_whole():
    assert "1.mish" not in examples().attributes("mish")
    register_rule("aten.mish")(lambda x: x * 0)
    analysis = analyse_module(examples()["mish"].model, (X,), {})
    assert "1.mish" in analysis and analysis["0.weight"].row.dead == 16


@pytest.mark.usefixtures("rules")
def test_a_rule_that_fails():
    register_rule("lifting_tests.first_half")(lambda x, y: x)
    with pytest.raises(FrontendError, match=r"the rule for `lifting_tests.first_half.default` fails: TypeError") as caught:
        again(samples=0, trusted=False)
    assert caught.value.span is not None


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("aten.reluu", "there is no operator `aten.reluu`", "did you mean `aten.relu`?"),
        ("relu", "there is no operator `relu`", "write it as `aten.relu`"),
        ("aten.mean.dimm", "there is no operator `aten.mean.dimm`", ""),
    ],
)
def test_a_rule_for_no_operator(name: str, message: str, hint: str):
    with pytest.raises(FrontendError) as caught:
        register_rule(name)
    assert message in caught.value.message and hint in caught.value.hint


def test_a_rule_with_an_argument_that_is_not_there():
    with pytest.raises(FrontendError) as caught:
        register_rule("aten.mm", factors=("self", "mat3"))(lambda x, y: x)
    assert "has no argument `mat3`" in caught.value.message and "`mat2`" in caught.value.hint
