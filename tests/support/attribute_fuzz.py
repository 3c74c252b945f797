"""Random programs with random attributes, checked against what they compute: junk where nothing is needed must change no output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from random_programs import cases, view_programs, wide_programs

from fuseflow.attributes import Analysis, Attribute, Propagation, analyse, propagate
from fuseflow.einsum.interpret import evaluate_einsum
from fuseflow.einsum.narrowing import rounded
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.verify import extents
from fuseflow.tensors import Format, pack
from fuseflow.tensors.array_files import pack_declared

Arrays = dict[str, npt.NDArray[np.float64]]

PROGRAMS = st.one_of(cases(), cases(max_einsums=6), wide_programs(), view_programs())


def attributes(program: Program, arrays: Arrays, rng: np.random.Generator) -> dict[str, Attribute]:
    """Return random attributes of inputs: pruned by elements or along an axis, or partly known."""
    given = {}
    for tensor in program.inputs:
        way, share = rng.integers(4), rng.choice([0.2, 0.5, 0.8])
        mask = rng.random(tensor.shape) < share
        if way == 1 and tensor.shape:
            axis = rng.integers(len(tensor.shape))
            line = [size if d == axis else 1 for d, size in enumerate(tensor.shape)]
            mask = np.broadcast_to(rng.random(line) < share, tensor.shape)
        values = np.where(rng.random(tensor.shape) < 0.3, arrays[tensor.name], np.nan) if way == 2 else np.nan
        if way < 3:
            given[tensor.name] = Attribute(values, mask)
    return given


def run(
    program: Program, inputs: Mapping[str, npt.NDArray[np.float64]], analysis: Analysis | None, rng: np.random.Generator
) -> Arrays:
    """Return all tensors of a program. With an analysis, what is dead is replaced by the implicit value, or by junk where it is unknown."""
    sizes, arrays = extents(program), dict[str, npt.NDArray[np.float64]]()
    for name, array in inputs.items():
        arrays[name] = array if analysis is None else spoiled(array, name, analysis, rng)
    for einsum in program.einsums:
        result = evaluate_einsum(
            rounded(einsum, analysis.program.declared if analysis else program.declared), arrays, sizes[einsum.name]
        )
        spoil = analysis is not None and einsum.name not in program.outputs
        arrays[einsum.name] = spoiled(result, einsum.name, analysis, rng) if spoil and analysis else result
    return arrays


def spoiled(array: npt.NDArray[np.float64], name: str, analysis: Analysis, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return a tensor with junk in half of what is unknown and not needed, and the implicit value in what else is dead."""
    unknown = np.isnan(analysis.known[name]) & ~analysis.needed[name]
    junk = unknown & (rng.random(array.shape) < 0.5)
    with_fill = np.where(analysis.dead(name) & ~junk, analysis.program.declared[name].fill, array)
    return np.where(junk, rng.choice([-1e3, -1.0, 2.0, 7.0, 1e3], array.shape), with_fill)


def check(case: object, seed: int) -> Analysis:
    """Raise `AssertionError` if an analysis of a random program is wrong."""
    program, rng = case.program, np.random.default_rng(seed)  # type: ignore[attr-defined]
    arrays = {name: np.asarray(array, np.float64) for name, array in case.arrays.items()}  # type: ignore[attr-defined]
    given = attributes(program, arrays, rng)
    analysis = analyse(program, given)
    known = {name: analysis.known[name] for name in arrays}
    inputs = {name: np.where(np.isnan(known[name]), array, known[name]) for name, array in arrays.items()}
    expected, got = run(analysis.program, inputs, None, rng), run(analysis.program, inputs, analysis, rng)
    for name in program.outputs:
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-9, atol=1e-12, err_msg=f"output {name}")
    for name, values in expected.items():
        fixed = ~np.isnan(analysis.known[name])
        np.testing.assert_allclose(values[fixed], analysis.known[name][fixed], rtol=1e-9, atol=1e-12, err_msg=f"known {name}")
    check_propagation(program, inputs, analysis, expected, rng)
    return analysis


def check_propagation(
    program: Program, inputs: Arrays, analysis: Analysis, expected: Arrays, rng: np.random.Generator
) -> Propagation:
    """Raise `AssertionError` if a program without what it does not need has other outputs."""
    stored = {tensor.name: pack_declared(inputs[tensor.name], tensor) for tensor in analysis.program.inputs}
    propagation = propagate(program, stored, analysis)
    left = {name: np.asarray(tensor.to_dense(), np.float64) for name, tensor in propagation.tensors.items()}
    got = run(propagation.program, left, None, rng)
    dense = {name: pack(got[name], Format.dense(got[name].ndim)) for name in program.outputs}
    for name in program.outputs:
        fill = analysis.program.declared[name].fill
        restored = propagation.restored({name: replace(dense[name], fill=fill)})[name].to_dense()
        np.testing.assert_allclose(restored, expected[name], rtol=1e-9, atol=1e-12, err_msg=f"output {name} of the smaller program")
    return propagation
