"""Random programs with random attributes, checked against what they compute: junk where nothing is needed must change no output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import hypothesis
import numpy as np
import numpy.typing as npt
from attribute_programs import random_attributes, random_program
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_programs import cases, view_programs, wide_programs

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.interpret import evaluate_einsum
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.rounding import rounded
from fuseflow.einsum.verify import extents
from fuseflow.errors import ProgramError
from fuseflow.propagation import Analysis, Attribute, Propagation, analyse, propagate
from fuseflow.propagation.labeled import Entries
from fuseflow.tensors import Format, pack
from fuseflow.tensors.array_files import pack_declared

Arrays = dict[str, npt.NDArray[np.float64]]


class Tally(NamedTuple):
    """What an analysis gave: dead elements, dimensions that were cut, statements that went."""

    dead: int
    cuts: int
    statements: int


PROGRAMS = st.one_of(cases(), cases(max_einsums=6), wide_programs(), view_programs())


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


def known_of(analysis: Analysis, name: str) -> npt.NDArray[np.float64]:
    """Return what is known of a tensor as an array, also if its entries are listed."""
    known, shape = analysis.attributes[name], analysis.program.declared[name].shape
    if not isinstance(known, Entries):
        return np.broadcast_to(known, shape)
    array = np.zeros(shape)
    array[tuple(known.crds[:, known.mask])] = np.nan
    return array


def spoiled(array: npt.NDArray[np.float64], name: str, analysis: Analysis, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return a tensor with junk in half of what is unknown and not needed, and the implicit value in what else is dead."""
    unknown = np.isnan(known_of(analysis, name)) & ~analysis.needed_mask(name).whole()
    junk = unknown & (rng.random(array.shape) < 0.5)
    with_fill = np.where(analysis.dead(name) & ~junk, analysis.program.declared[name].fill, array)
    return np.where(junk, rng.choice([-1e3, -1.0, 2.0, 7.0, 1e3], array.shape), with_fill)


def check_case(case: object, seed: int) -> Tally:
    """Check a random program of the generator of whole programs, with random attributes."""
    program, rng = case.program, np.random.default_rng(seed)  # type: ignore[attr-defined]
    arrays = {name: np.asarray(array, np.float64) for name, array in case.arrays.items()}  # type: ignore[attr-defined]
    try:
        infer(program)
    except ProgramError:  # the generator also draws programs that are refused
        return Tally(0, 0, 0)
    return check(program, random_attributes(program, rng), arrays, rng)


def check_drawn(seed: int, count: int) -> Tally:
    """Check so many programs of the generator of whole programs. They depend on the seed alone."""
    tallies = list[Tally]()

    def one(case: object, number: int) -> None:
        tallies.append(check_case(case, number))

    drawn = settings(
        max_examples=count, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    hypothesis.seed(seed)(drawn(given(PROGRAMS, st.integers(0, 1 << 30))(one)))()
    return Tally(*(sum(column) for column in zip(*tallies, strict=True)))


def check_model(seed: int, multilinear: bool) -> Tally:
    """Check a random program of the kind that models are made of. Of a multilinear one, every needed element must change an output."""
    rng = np.random.default_rng(seed)
    program = random_program(rng, multilinear)
    arrays = {tensor.name: rng.normal(size=tensor.shape) for tensor in program.inputs}
    return check(program, random_attributes(program, rng, positive=multilinear), arrays, rng, multilinear)


def check(
    program: Program, attributes: Mapping[str, Attribute], arrays: Arrays, rng: np.random.Generator, precise: bool = False
) -> Tally:
    """Raise `AssertionError` if an analysis is wrong: junk where nothing is needed must change no output, and `known` must be what is
    computed. If it must be `precise`, every needed element must change an output."""
    analysis = analyse(program, attributes)
    known = {name: known_of(analysis, name) for name in analysis.attributes}
    inputs = {name: np.where(np.isnan(known[name]), array, known[name]) for name, array in arrays.items()}
    expected, got = run(analysis.program, inputs, None, rng), run(analysis.program, inputs, analysis, rng)
    for name in program.outputs:
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-9, atol=1e-12, err_msg=f"output {name}")
    for name, values in expected.items():
        fixed = ~np.isnan(known[name])
        np.testing.assert_allclose(values[fixed], known[name][fixed], rtol=1e-9, atol=1e-12, err_msg=f"known {name}")
    if precise:
        check_precision(program, inputs, analysis, expected, rng)
    propagation = check_propagation(program, inputs, analysis, expected, rng)
    dead = sum(int(analysis.dead(name).sum()) for name in analysis.attributes)
    return Tally(dead, len(propagation.cuts.stay), len(program.einsums) - len(propagation.program.einsums))


def check_precision(program: Program, inputs: Arrays, analysis: Analysis, expected: Arrays, rng: np.random.Generator) -> None:
    """Raise `AssertionError` if another number in a needed element of an input changes no output."""
    for name, array in inputs.items():
        for place in np.argwhere(analysis.needed_mask(name).whole()):
            changed = array.copy()
            changed[tuple(place)] += rng.normal() + 1
            got = run(analysis.program, {**inputs, name: changed}, None, rng)
            differs = any(not np.allclose(got[out], expected[out], rtol=1e-9, atol=1e-12) for out in program.outputs)
            assert differs, f"{name}{place.tolist()} is needed and changes nothing"


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
        np.testing.assert_allclose(
            restored, expected[name], rtol=1e-9, atol=1e-12, err_msg=f"output {name} of the smaller program"
        )
    return propagation
