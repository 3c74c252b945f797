"""The analysis of which elements a model does not need: the names in `fuseflow.attributes`, for programs and PyTorch models.

>>> import fuseflow as ff
>>> from fuseflow.einsum.parse import parse
>>> program = parse("tensor X[2, 2] dense\\ntensor W[2, 2] dense\\nY[i, j] = sum(k) X[i, k] * W[k, j]\\noutput Y")
>>> ff.attributes.analyse(program, {"W": ff.attributes.pruned([[True, True], [False, False]])}).needed["X"].tolist()
[[True, False], [True, False]]
"""

from typing import TYPE_CHECKING

from fuseflow.deferred_names import deferred_names

if TYPE_CHECKING:
    from fuseflow.frontend.model_propagation import Rule as Rule
    from fuseflow.frontend.model_propagation import analyse_module as analyse_module
    from fuseflow.frontend.model_propagation import register_rule as register_rule
    from fuseflow.frontend.model_propagation import shrink as shrink
    from fuseflow.frontend.model_spec import PropagationSpec as PropagationSpec
    from fuseflow.propagation import Analysis as Analysis
    from fuseflow.propagation import Attribute as Attribute
    from fuseflow.propagation import Propagation as Propagation
    from fuseflow.propagation import analyse as analyse
    from fuseflow.propagation import constant as constant
    from fuseflow.propagation import propagate as propagate
    from fuseflow.propagation import pruned as pruned
    from fuseflow.propagation.tesa import TesaCode as TesaCode
    from fuseflow.propagation.tesa import tesa_code as tesa_code
else:
    __getattr__, __dir__, __all__ = deferred_names(__name__, __file__)
