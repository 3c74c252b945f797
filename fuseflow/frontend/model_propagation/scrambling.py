"""Scrambling: guesses about an operator without a rule, from runs of it on random numbers.

The unknown entries of its operands are filled with random numbers, many times. An entry of a result that is 0 each time, and an entry of an
operand whose derivative is 0 each time, is *probably* dead. It may also be one that shows itself too rarely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.errors import Span
from fuseflow.frontend.model_propagation.dependence_rules import Known, OperatorCall, derivatives
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.refusals import refusal

_SEED = 0
RARE = 0.01
"""The default share of all fillings in `Guess.bound`."""


@dataclass(frozen=True, slots=True)
class Guess:
    """A guess about an operator without a rule. `zeros` entries of its results were 0 in all of the `samples` fillings, and
    `unused` entries of its operands had no derivative in any. They are taken as dead if the guess is `trusted`, and as alive if
    it is not. Both numbers are None where the operator cannot be scrambled."""

    operator: str
    module: str
    span: Span | None
    samples: int
    zeros: int | None
    unused: int | None
    trusted: bool

    def bound(self, share: float = RARE) -> float:
        """Return the probability that an entry was missed which shows itself in this share of all fillings."""
        return (1 - share) ** self.samples

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span else ""
        where = f" at module `{self.module}`" if self.module else ""
        start = f"{place}`{self.operator}`{where} has no rule"
        if self.zeros is None and self.unused is None:
            return f"{start}: all that it reads and computes is called alive"
        verdict = "taken as dead" if self.trusted else "called alive all the same"
        return (
            f"{start}: in {self.samples:,} random fillings, {self.zeros or 0:,} entries of its result and {self.unused or 0:,} of its "
            f"operands are probably dead, and {verdict}. An entry that shows in {RARE:.0%} of all fillings is missed with probability "
            f"{self.bound():.1e}."
        )


@dataclass(slots=True, eq=False)
class Scrambler:
    """Scrambles calls of operators, and counts by node the entries that seem to be dead. With 0 samples, all count as alive."""

    samples: int
    trusted: bool
    _zeros: dict[Node, int | None] = field(default_factory=dict)
    _unused: dict[Node, int | None] = field(default_factory=dict)

    def results(self, call: OperatorCall, operands: Sequence[Known], certain: Sequence[Known]) -> Sequence[Known]:
        """Return the known entries of the results of a call without a rule. `certain` are the entries known without a guess.

        Raise `FrontendError` for an operator that draws random numbers.
        """
        if torch.Tag.nondeterministic_seeded in call.target.tags:
            hint = "call `model.eval()`, give the model the numbers as an input, or register a rule for the operator"
            raise refusal(call.node, f"`{call.target}` draws random numbers, so it cannot be scrambled", hint)
        if all(k.everywhere for k in certain):
            return certain
        shown = self._shown([k.mask for k in certain], lambda: _results(call, operands), operands)
        self._zeros[call.node] = None if shown is None else _hidden(shown)
        if shown is None or not self.trusted:
            return certain
        return [Known(k.mask | ~seen, k.value) for k, seen in zip(certain, shown, strict=True)]

    def needed(
        self, call: OperatorCall, operands: Sequence[Known], seeds: Sequence[Tensor], certain: Sequence[Tensor]
    ) -> Sequence[Tensor]:
        """Return which entries of its operands a call without a rule needs for the entries `seeds` of its results. `certain` are
        the entries that count as needed without a guess. An operand whose derivative is 0 everywhere is called needed as a whole,
        since steps have no slope."""
        nothing = [torch.zeros_like(mask) for mask in certain]
        shown = self._shown(nothing, lambda: _gradients(call, operands, seeds), operands)
        if shown is not None:
            shown = [seen if bool(seen.any()) else mask for seen, mask in zip(shown, certain, strict=True)]
        self._unused[call.node] = None if shown is None else _hidden(shown)
        return certain if shown is None or not self.trusted else shown

    def guesses(self) -> tuple[Guess, ...]:
        """Return a guess about each call, in the order of the model."""
        guesses = []
        for node, zeros in self._zeros.items():
            path, span = fx_origin.module_path(node), fx_origin.source_span(node)
            guesses.append(Guess(str(node.target), path, span, self.samples, zeros, self._unused.get(node), self.trusted))
        return tuple(guesses)

    def _shown(
        self, settled: Sequence[Tensor], sample: Callable[[], Sequence[Tensor]], operands: Sequence[Known]
    ) -> list[Tensor] | None:
        """Return the masks, one for each tensor, that are true where `settled` is or some `sample()` is not 0. None if the
        operator does not run on random numbers."""
        fillable = all(k.everywhere or k.value.is_floating_point() or k.value.is_complex() for k in operands)
        if not self.samples or not fillable:
            return None
        shown = [mask.clone() for mask in settled]
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(_SEED)
            for _ in range(self.samples):
                try:
                    drawn = sample()
                except Exception:  # whatever an operator raises that nobody knows
                    return None
                for mask, tensor in zip(shown, drawn, strict=True):
                    mask.logical_or_(tensor != 0)
                if all(bool(mask.all()) for mask in shown):
                    break
        return shown


def _hidden(shown: Sequence[Tensor]) -> int:
    return sum(int((~mask).sum()) for mask in shown)


def _filled(known: Known) -> Tensor:
    """Return a tensor with its known values, and random numbers for the unknown entries."""
    return known.value if known.everywhere else torch.where(known.mask, known.value, torch.randn_like(known.value))


def _results(call: OperatorCall, operands: Sequence[Known]) -> Sequence[Tensor]:
    with torch.no_grad():
        return call.run([_filled(k) for k in operands])


def _gradients(call: OperatorCall, operands: Sequence[Known], seeds: Sequence[Tensor]) -> list[Tensor]:
    """Return the derivatives of a randomly weighted sum of the results at `seeds`, with respect to each operand. Raise
    RuntimeError if there are none."""
    leaves = [_filled(k).detach() for k in operands]
    leaves = [leaf.requires_grad_(leaf.is_floating_point() or leaf.is_complex()) for leaf in leaves]
    with torch.enable_grad():
        parts = [
            (result * seed * torch.randn_like(result)).sum()
            for result, seed in zip(call.run(leaves), seeds, strict=True)
            if result.requires_grad
        ]
        return derivatives(parts, leaves)
