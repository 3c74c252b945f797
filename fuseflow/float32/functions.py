"""The functions that are computed in integers, each from words to a word. `nearest` is exact, and the others are within 1 ulp.

`FUNCTIONS` has them by the names of the operator table. The circuit `ff_f32_NAME` takes the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from fuseflow.float32.exponentials import exp, sigmoid, tanh
from fuseflow.float32.logarithms import log, power
from fuseflow.float32.narrowing import nearest
from fuseflow.float32.roots import erf, rsqrt
from fuseflow.float32.waves import cos, sin

FUNCTIONS: Mapping[str, Callable[..., int]] = MappingProxyType(
    {
        "cos": cos,
        "erf": erf,
        "exp": exp,
        "log": log,
        "nearest": nearest,
        "pow": power,
        "rsqrt": rsqrt,
        "sigmoid": sigmoid,
        "sin": sin,
        "tanh": tanh,
    }
)
