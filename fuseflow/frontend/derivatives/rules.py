"""All derivative rules."""

from __future__ import annotations

from fuseflow.frontend.derivatives.attention import ATTENTION_RULES
from fuseflow.frontend.derivatives.extremes import EXTREME_RULES
from fuseflow.frontend.derivatives.kept import KEEP_RULES
from fuseflow.frontend.derivatives.losses import LOSS_RULES
from fuseflow.frontend.derivatives.normalization import NORMALIZATION_RULES
from fuseflow.frontend.derivatives.norms import NORM_RULES
from fuseflow.frontend.derivatives.pointwise import POINTWISE_RULES
from fuseflow.frontend.derivatives.products import PRODUCT_RULES
from fuseflow.frontend.derivatives.rule import Rule
from fuseflow.frontend.derivatives.softmax import SOFTMAX_RULES
from fuseflow.frontend.derivatives.tables import TABLE_RULES

RULES: dict[object, Rule] = {
    **ATTENTION_RULES,
    **EXTREME_RULES,
    **KEEP_RULES,
    **LOSS_RULES,
    **NORMALIZATION_RULES,
    **NORM_RULES,
    **POINTWISE_RULES,
    **PRODUCT_RULES,
    **SOFTMAX_RULES,
    **TABLE_RULES,
}
"""The rule of each operator of a traced graph that has one. A call of another operator is differentiated through its formula."""
