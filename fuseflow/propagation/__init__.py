"""The analysis of which elements of the tensors of a program are known, and which are needed.

>>> from fuseflow.propagation import analyse, pruned
>>> from fuseflow.einsum.parse import parse
>>> program = parse("tensor X[2, 2] dense\\ntensor W[2, 2] dense\\nY[i, j] = sum(k) X[i, k] * W[k, j]\\noutput Y")
>>> analysis = analyse(program, {"W": pruned([[True, True], [False, False]])})
>>> analysis.needed["X"].tolist()
[[True, False], [True, False]]
"""

from fuseflow.propagation.analysis import Analysis, analyse
from fuseflow.propagation.attribute import Attribute, constant, pruned
from fuseflow.propagation.dead_code import Propagation, propagate

__all__ = ["Analysis", "Attribute", "Propagation", "analyse", "constant", "propagate", "pruned"]
