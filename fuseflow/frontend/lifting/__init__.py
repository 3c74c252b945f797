"""Attributes of models that have no Einsum form, such as those with convolutions: which entries are known, and which nothing needs.

A model is exported as a graph of PyTorch operators, and each operator is a black box. A first sweep through the graph runs the operators on
ones and zeros, which say what may be there. A second one, backward, asks their derivatives what is needed.

>>> import torch
>>> from torch import nn
>>> model = nn.Sequential(nn.Linear(4, 3, bias=False), nn.ReLU(), nn.Linear(3, 2, bias=False))
>>> keep = torch.tensor([True, False, True])[:, None].expand(3, 4)  # the second feature is pruned
>>> analysis = analyse_module(model, (torch.ones(1, 4),), {"0.weight": keep})
>>> analysis["2.weight"].dead[0]  # so nothing reads the second column
tensor([False,  True, False])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuseflow.frontend.lifting.analysis import analyse_module
    from fuseflow.frontend.lifting.known import Known
    from fuseflow.frontend.lifting.result import ModuleAttributes, TensorAttributes
    from fuseflow.frontend.lifting.rules import Rule, register_rule
    from fuseflow.frontend.lifting.scrambling import Guess
    from fuseflow.frontend.lifting.shrinking import shrink

__all__ = ["Guess", "Known", "ModuleAttributes", "Rule", "TensorAttributes", "analyse_module", "register_rule", "shrink"]

_MODULES = {
    "Guess": "scrambling",
    "Known": "known",
    "ModuleAttributes": "result",
    "Rule": "rules",
    "TensorAttributes": "result",
    "analyse_module": "analysis",
    "register_rule": "operator_rules",
    "shrink": "shrinking",
}
"""The module of each name of the package. It is imported when the name is first used, because PyTorch takes seconds to load. That of
`register_rule` is the one which fills the table, so that the rules of a user come after those of PyTorch's own operators."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=None)
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
