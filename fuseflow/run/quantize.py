"""Programs in narrower types, calibrated on the tensors of a compiled program."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from numbers import Real

from fuseflow.costs.narrow_type_notice import WHY, gains
from fuseflow.errors import NarrowTypesWarning, PlanError, did_you_mean
from fuseflow.plan.quantization import NARROWER, TYPES, Metric, Quantization, choose_types
from fuseflow.run.compiled import Compiled


def quantize(
    compiled: Compiled,
    tolerance: float = 1e-3,
    metric: Metric | None = None,
    constants: Collection[str] = (),
    types: Sequence[str] = NARROWER,
) -> Quantization:
    """Choose narrower types for the factors of the products of a compiled program, calibrated on the tensors that it was compiled with.

    In order of the program, the `types` are tried for each factor in their order, and kept while the mean squared error of every output, in
    parts of its mean square, and the loss of the `metric` are at most the `tolerance`. `constants` are inputs that are stored in the
    narrower type, beside the weights of a PyTorch model; other tensors are rounded where they are computed or read. A type is `i16`, `i8`
    or `i4`, with one scale for a tensor, or, for dense constants whose last dimension their blocks divide, `mx` or `nvfp4`: blocks of
    small floats that share a scale.

    Where no operator of the program would take fewer cycles, a `NarrowTypesWarning` says so first. Raise `PlanError` for a tolerance that
    is no number of at least 0, for another type, for a constant that is no input, and for numbers or a metric that are not finite.

    >>> import numpy as np, fuseflow as ff
    >>> text = "tensor x[16, 16]\\ntensor W[16, 16]\\ny[i, j] = sum(k) x[i, k] * W[k, j]\\noutput y"
    >>> blocks = ff.Schedule().block("x", 16, 16).block("W", 16, 16)
    >>> program = ff.compile(text, (np.eye(16), np.ones((16, 16))), schedule=blocks)
    >>> narrow = ff.quantize(program, tolerance=1e-3, constants=["W"])
    >>> ff.compile(narrow.program, tensors=narrow.tensors).run().check.passed
    True
    """
    if not isinstance(tolerance, Real) or not tolerance >= 0:
        raise PlanError(f"a tolerance of {tolerance!r}", hint="0 or more, such as 0.001")
    if isinstance(constants, str):
        raise PlanError(f"`constants` is the text `{constants}`", hint=f'a list of names: `constants=["{constants}"]`')
    for name in types:
        if name not in TYPES:
            raise PlanError(f"`{name}` is no type of factors", hint=did_you_mean(name, TYPES))
    source = compiled.source
    names = [tensor.name for tensor in source.program.inputs]
    for name in names:
        if name not in source.tensors:
            raise PlanError(f"the input `{name}` has no data", hint="types are calibrated on real numbers")
    for name in constants:
        if name not in names:
            raise PlanError(f"the program has no input `{name}`", hint=did_you_mean(name, names))
    if not any(gains(region.graph, compiled.machine, bits=4) for region in compiled.regions):
        message = (
            f"narrower types will save bytes and no cycles of units: {WHY}; compile with blocks, such as 32x32, to gain cycles"
        )
        warnings.warn(message, NarrowTypesWarning, stacklevel=2)
    every = frozenset((*source.constants, *constants))
    return choose_types(source.program, source.tensors, every, tolerance, metric, tuple(types))
