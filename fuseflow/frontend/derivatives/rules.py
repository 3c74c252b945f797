"""All derivative rules."""

from __future__ import annotations

from fuseflow.frontend.derivatives.attention import ATTENTION_RULES
from fuseflow.frontend.derivatives.extremes import EXTREME_RULES
from fuseflow.frontend.derivatives.rule import Rule
from fuseflow.frontend.derivatives.softmax import SOFTMAX_RULES

RULES: dict[object, Rule] = {**SOFTMAX_RULES, **ATTENTION_RULES, **EXTREME_RULES}
"""The rule of each operator of a traced graph that has one. A call of another operator is differentiated through its formula."""
