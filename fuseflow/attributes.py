"""What a model does not need: the names that users of `fuseflow.attributes` have, for programs and for PyTorch models.

>>> import fuseflow as ff
>>> from fuseflow.einsum.parse import parse
>>> program = parse("tensor X[2, 2] dense\\ntensor W[2, 2] dense\\nY[i, j] = sum(k) X[i, k] * W[k, j]\\noutput Y")
>>> ff.attributes.analyse(program, {"W": ff.attributes.pruned([[True, True], [False, False]])}).needed["X"].tolist()
[[True, False], [True, False]]
"""

from typing import TYPE_CHECKING

from fuseflow.deferred_names import deferred_names
from fuseflow.propagation import Analysis, Attribute, Propagation, analyse, constant, propagate, pruned
from fuseflow.propagation.tesa import TesaCode, tesa_code

if TYPE_CHECKING:
    from fuseflow.frontend.lifting import Rule, analyse_module, register_rule, shrink
    from fuseflow.frontend.model_spec import PropagationSpec

__all__ = [
    "Analysis",
    "Attribute",
    "Propagation",
    "PropagationSpec",
    "Rule",
    "TesaCode",
    "analyse",
    "analyse_module",
    "constant",
    "propagate",
    "pruned",
    "register_rule",
    "shrink",
    "tesa_code",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = deferred_names(__name__, __file__, __all__)
