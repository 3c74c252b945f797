"""Attributes of models that have no Einsum form, such as models with convolutions: which entries are known, and which nothing needs.

A model is exported as a graph of PyTorch operators, and each operator is a black box. A first sweep through the graph runs the operators on
ones and zeros: 1 for an entry that may be there. A second one, backward, takes the needed entries from their derivatives.

>>> import torch
>>> from torch import nn
>>> from fuseflow.frontend.model_propagation import analyse_module
>>> model = nn.Sequential(nn.Linear(4, 3, bias=False), nn.ReLU(), nn.Linear(3, 2, bias=False))
>>> keep = torch.tensor([True, False, True])[:, None].expand(3, 4)  # the second feature is pruned
>>> analysis = analyse_module(model, (torch.ones(1, 4),), {"0.weight": keep})
>>> analysis["2.weight"].dead[0]  # so nothing reads the second column
tensor([False,  True, False])
"""

from typing import TYPE_CHECKING

from fuseflow.deferred_names import deferred_names

if TYPE_CHECKING:
    from fuseflow.frontend.model_propagation.analysis import ModuleAttributes as ModuleAttributes
    from fuseflow.frontend.model_propagation.analysis import TensorAttributes as TensorAttributes
    from fuseflow.frontend.model_propagation.analysis import analyse_module as analyse_module
    from fuseflow.frontend.model_propagation.channel_pruning import shrink as shrink
    from fuseflow.frontend.model_propagation.dependence_rules import Known as Known
    from fuseflow.frontend.model_propagation.dependence_rules import Rule as Rule
    from fuseflow.frontend.model_propagation.operator_rules import register_rule as register_rule
    from fuseflow.frontend.model_propagation.scrambling import Guess as Guess
else:
    __getattr__, __dir__, __all__ = deferred_names(__name__, __file__)
