"""Whether the gradients of a model of the zoo are those of PyTorch: of the squared distance of its floats from a wave, for all of its
parameters."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import gradient_checks
import zoo_table
from zoo_registry import Model
from zoo_verdict import Row, failure

TABLE = Path(__file__).with_name("gradients.jsonl")
WORDS = ("right", "none", "refused", "limit", "wrong", "crash")
"""What the table may say of a model."""


def row(model: Model) -> Row:
    """The row of a model in the table of gradients. Its verdict is `right`, `wrong`, `refused` or `crash`, or `none` if PyTorch has no
    gradient: no parameter that the sum depends on, or an operator without one. A model that takes too much has `limit`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict, reason = _verdict(model)
    return {"name": model.name, "family": model.family, "gradients": verdict} | ({"reason": reason} if reason else {})


def _verdict(model: Model) -> tuple[str, str]:
    module, args, keywords = model.bring()
    if not any(parameter.requires_grad for parameter in module.parameters()):
        return "none", "no parameter"
    try:
        expected = gradient_checks.gradients_of_pytorch(module, args, keywords)
    except Exception as error:
        return "none", failure(error)[1]
    if not expected:
        return "none", "no parameter that the sum depends on"
    try:
        computed = gradient_checks.compiled_gradients(*model.bring())
    except Exception as error:
        return failure(error)[:2]
    wrong = gradient_checks.difference(computed, expected)
    return ("wrong", wrong) if wrong else ("right", "")


def counts(rows: Iterable[Row]) -> list[list[str]]:
    """How many models of each family there are, and how many of each verdict: a heading and a line for each family
    that has models."""
    return zoo_table.counts(rows, WORDS, lambda row: row["gradients"])


def summary(rows: Iterable[Row]) -> str:
    """How many rows have which verdict, and the reasons of refusals, the most frequent first."""
    rows = list(rows)
    verdicts = Counter(row["gradients"] for row in rows)
    shown = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    reasons = Counter(f"{row['gradients']}: {row['reason']}" for row in rows if "reason" in row and row["gradients"] != "none")
    return "\n".join([*(f"{count:4}  {reason}" for reason, count in reasons.most_common()), f"{len(rows)} models: {shown}"])
