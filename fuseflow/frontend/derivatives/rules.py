"""All derivative rules."""

from __future__ import annotations

from fuseflow.frontend.derivatives.attention import SOFTMAX_RULES
from fuseflow.frontend.derivatives.extremes import EXTREME_RULES
from fuseflow.frontend.derivatives.normalization import NORM_RULES
from fuseflow.frontend.derivatives.pointwise import POINTWISE_RULES
from fuseflow.frontend.derivatives.rule import Rule

RULES: dict[object, Rule] = EXTREME_RULES | NORM_RULES | POINTWISE_RULES | SOFTMAX_RULES
"""The rule of each operator of a traced graph that has one. A call of another operator is differentiated through its formula."""
