"""What a model does not need: the names that users of `fuseflow.attributes` have, for programs and for PyTorch models.

>>> import fuseflow as ff
>>> from fuseflow.einsum.parse import parse
>>> program = parse("tensor X[2, 2] dense\\ntensor W[2, 2] dense\\nY[i, j] = sum(k) X[i, k] * W[k, j]\\noutput Y")
>>> ff.attributes.analyse(program, {"W": ff.attributes.pruned([[True, True], [False, False]])}).needed["X"].tolist()
[[True, False], [True, False]]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_MODULES = {
    "PropagationSpec": "fuseflow.frontend.model_spec",
    **dict.fromkeys(("Rule", "analyse_module", "register_rule", "shrink"), "fuseflow.frontend.lifting"),
}
"""The modules of names that load PyTorch, which are imported when a name is first used."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=None)
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
