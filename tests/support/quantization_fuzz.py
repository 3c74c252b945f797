"""Random programs in narrower types, checked against PyTorch's fake quantization of what their products read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from random_programs import Case

import fuseflow as ff
from fuseflow.einsum.interpret import evaluate_einsum
from fuseflow.einsum.nodes import Access, Apply, Expr, Keep, Program, Reduce
from fuseflow.einsum.rounding import rounded
from fuseflow.einsum.verify import extents
from fuseflow.errors import FuseFlowError
from fuseflow.plan.quantization import Scale
from fuseflow.tensors.dtypes import DTYPES

Arrays = Mapping[str, npt.NDArray[np.float64]]
SCHEDULES = (ff.Schedule(), ff.Schedule.fuse("full"), ff.Schedule.fuse("none"))


def check_case(case: Case, number: int) -> int:
    """Narrow a program, run it, compare it with PyTorch, and return how many of its tensors are integers. `number` varies how."""
    try:
        whole = ff.compile(case.program, tensors=case.arrays, schedule=SCHEDULES[number % 3], machine="ideal")
        tolerance = 1e-2 if number % 2 else float("inf")
        narrow = ff.quantize(whole, tolerance, constants=[t.name for t in case.program.inputs][:: 1 + number % 3])
    except FuseFlowError:  # it cannot be compiled so, or computes infinities
        return 0
    result = ff.compile(narrow.program, tensors=narrow.tensors, schedule=SCHEDULES[number % 3], machine="ideal").run()
    assert result.check is not None and result.check.passed
    tensors = {name: tensor.to_dense().astype(np.float64) for name, tensor in whole.source.tensors.items()}
    for name, expected in fake_quantized(whole.source.program, tensors, narrow.scales).items():
        size = np.abs(expected[np.isfinite(expected)]).max(initial=1)
        np.testing.assert_allclose(result.tensors[name].to_dense(), expected, rtol=1e-5, atol=1e-5 * size)
    return len(narrow.scales)


def fake_quantized(program: Program, tensors: Arrays, scales: Mapping[str, Scale]) -> Arrays:
    """Return the outputs of a program whose products read numbers that PyTorch rounded to the integers of these scales."""
    arrays, sizes = dict(tensors), extents(program)
    for einsum in program.einsums:
        einsum = rounded(einsum, program.declared)
        arrays |= {_fake(name): _rounded(arrays[name], scales[name]) for name in einsum.operands if name in scales}
        arrays[einsum.name] = evaluate_einsum(replace(einsum, body=_faked(einsum.body, scales)), arrays, sizes[einsum.name])
    return {name: arrays[name] for name in program.outputs}


def _fake(name: str) -> str:
    return f"{name} as PyTorch rounds it"


def _rounded(array: npt.NDArray[np.float64], scale: Scale) -> npt.NDArray[np.float64]:
    """PyTorch returns floats of 32 bits. So its integers are scaled again."""
    least, greatest = DTYPES[scale.dtype].range
    fake = torch.fake_quantize_per_tensor_affine(torch.tensor(array), scale.step, 0, int(least), int(greatest))
    return np.rint(fake.numpy() / scale.step) * scale.step


def _faked(node: Expr, scales: Mapping[str, Scale], inside: bool = False) -> Expr:
    """Return an expression whose products read the tensors that PyTorch rounded."""
    match node:
        case Access() if inside and node.tensor in scales:
            return replace(node, tensor=_fake(node.tensor))
        case Apply():
            return replace(node, args=tuple(_faked(arg, scales, inside and node.op == "mul") for arg in node.args))
        case Reduce():
            product = node.op == "sum" and sum(isinstance(factor, Access) for factor in _factors(node.body)) > 1
            return replace(node, body=_faked(node.body, scales, product))
        case Keep():
            return replace(node, body=_faked(node.body, scales))
        case _:
            return node


def _factors(node: Expr) -> Iterator[Expr]:
    if isinstance(node, Apply) and node.op == "mul":
        for arg in node.args:
            yield from _factors(arg)
    else:
        yield node
