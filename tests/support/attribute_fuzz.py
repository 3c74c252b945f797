"""Random programs with random attributes, checked against what they compute: junk where nothing is needed must change no output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import hypothesis
import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_programs import cases, view_programs, wide_programs

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.interpret import evaluate_einsum
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.einsum.rounding import rounded
from fuseflow.einsum.verify import extents
from fuseflow.errors import ProgramError
from fuseflow.propagation import Analysis, Attribute, Propagation, analyse, propagate
from fuseflow.propagation.labeled import Entries
from fuseflow.tensors import Format, pack
from fuseflow.tensors.array_files import pack_declared

FORMATS = ("dense", "csr", "dcsr", "csc")


@dataclass
class Draft:
    """A program that grows statement by statement. `shapes` has the matrices that can be read."""

    rng: np.random.Generator
    multilinear: bool
    declarations: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)

    def size(self) -> int:
        return int(self.rng.integers(1, 5))

    def input(self, shape: tuple[int, ...]) -> str:
        name = f"A{len(self.declarations)}"
        same = [other for other, known in self.shapes.items() if known == shape and other.startswith("A")]
        if same and self.rng.random() < 0.4:
            return str(self.rng.choice(same))
        format = str(self.rng.choice(FORMATS)) if len(shape) == 2 else "dense"
        self.declarations.append(f"tensor {name}{list(shape)} {format} f64")
        self.shapes[name] = shape
        return name

    def any(self) -> str:
        return str(self.rng.choice([name for name, shape in self.shapes.items() if len(shape) == 2]))

    def add(self, shape: tuple[int, ...], body: str, indices: str = "i, j") -> str:
        name = f"T{len(self.statements)}"
        self.statements.append(f"{name}[{indices}] = {body}")
        self.shapes[name] = shape
        self.results.append(name)
        return name

    def grow(self) -> None:
        steps = [self.product, self.product, self.transposed_product, self.sum, self.transpose, self.scaled]
        if not self.multilinear:
            steps += [self.pointwise, self.bias, self.softmax, self.norm, self.maximum, self.gate, self.constant, self.kept]
        steps[self.rng.integers(len(steps))]()

    def product(self) -> None:
        x = self.any()
        n, k = self.shapes[x]
        m = self.size()
        w = self.input((k, m))
        self.add((n, m), f"sum(k) {x}[i, k] * {w}[k, j]")

    def transposed_product(self) -> None:
        x = self.any()
        n, k = self.shapes[x]
        m = self.size()
        w = self.input((m, k))
        self.add((n, m), f"sum(k) {x}[i, k] * {w}[j, k]")

    def sum(self) -> None:
        x = self.any()
        shape = self.shapes[x]
        same = [name for name, other in self.shapes.items() if other == shape]
        self.add(shape, f"{x}[i, j] + {self.rng.choice(same)}[i, j]")

    def scaled(self) -> None:
        x = self.any()
        self.add(self.shapes[x], f"{x}[i, j] * {self.input(self.shapes[x])}[i, j]")

    def transpose(self) -> None:
        x = self.any()
        self.add(self.shapes[x][::-1], f"{x}[j, i]")

    def pointwise(self) -> None:
        x, op = self.any(), self.rng.choice(["relu", "sigmoid", "abs", "cos", "tanh", "neg"])
        self.add(self.shapes[x], f"{op}({x}[i, j])")

    def bias(self) -> None:
        x = self.any()
        self.add(self.shapes[x], f"{x}[i, j] + {self.input(self.shapes[x][1:])}[j]")

    def gate(self) -> None:
        x = self.any()
        same = [name for name, other in self.shapes.items() if other == self.shapes[x]]
        self.add(self.shapes[x], f"{x}[i, j] {self.rng.choice(['-', '/'])} (1 + abs({self.rng.choice(same)}[i, j]))")

    def constant(self) -> None:
        x, number = self.any(), self.rng.choice([-1, 0, 0.5])
        self.add(self.shapes[x], f"{x}[i, j] * {number} + {self.rng.choice([0, 1])}")

    def maximum(self) -> None:
        x = self.any()
        n, m = self.shapes[x]
        top = self.add((n,), f"max(k) {x}[i, k]", "i")
        self.add((n, m), f"{x}[i, j] - {top}[i]")

    def kept(self) -> None:
        x = self.any()
        m = self.shapes[x][1]
        rule = self.rng.choice(["1 over j", "1 of 2 over j", "threshold 0.5", f"{m} over j"])
        self.add(self.shapes[x], f"keep({rule}) {x}[i, j] * {self.input(self.shapes[x])}[i, j]")

    def norm(self) -> None:
        x = self.any()
        n, m = self.shapes[x]
        mean = self.add((n,), f"sum(k) {x}[i, k] * {1 / m}", "i")
        centred = self.add((n, m), f"{x}[i, j] - {mean}[i]")
        spread = self.add((n,), f"sum(k) {centred}[i, k] * {centred}[i, k]", "i")
        self.add((n, m), f"{centred}[i, j] / sqrt({spread}[i] + 0.1)")

    def softmax(self) -> None:
        x = self.any()
        n, m = self.shapes[x]
        allowed = self.input((n, m))
        scores = self.add((n, m), f"where({allowed}[i, j], {x}[i, j], -inf)")
        top = self.add((n,), f"max(k) {scores}[i, k]", "i")
        e = self.add((n, m), f"exp({scores}[i, j] - max({top}[i], -100))")
        total = self.add((n,), f"sum(k) {e}[i, k]", "i")
        self.add((n, m), f"{e}[i, j] / ({total}[i] + 0.01)")


def random_program(rng: np.random.Generator, multilinear: bool) -> Program:
    """Return a random program of up to 8 steps."""
    draft = Draft(rng, multilinear)
    draft.input((draft.size(), draft.size()))
    for _ in range(rng.integers(1, 9)):
        draft.grow()
    count = min(len(draft.results), int(rng.integers(1, 3)))
    outputs = rng.choice(draft.results, count, replace=False)
    return parse("\n".join([*draft.declarations, *draft.statements, f"output {', '.join(outputs)}"]))


def random_attributes(program: Program, rng: np.random.Generator, positive: bool = False) -> dict[str, Attribute]:
    """Return random attributes of inputs: pruned by elements or along a dimension, or partly known. Known numbers may be `positive`, so
    that none takes away what another one adds."""
    given = {}
    for tensor in program.inputs:
        way, share = rng.integers(4), rng.choice([0.2, 0.5, 0.8])
        mask = rng.random(tensor.shape) < share
        if way == 1 and tensor.shape:
            axis = rng.integers(len(tensor.shape))
            line = [size if d == axis else 1 for d, size in enumerate(tensor.shape)]
            mask = np.broadcast_to(rng.random(line) < share, tensor.shape)
        choices = [0.5, 1.0, 2.0] if positive else [-1.0, -0.5, 0.0, 0.5, 1.0, 2.0]
        numbers = rng.choice(choices if tensor.dtype in ("f32", "f64") else [0.0, 1.0, 2.0], tensor.shape)
        values = np.where(rng.random(tensor.shape) < 0.3, numbers, np.nan) if way == 2 else np.nan
        if (
            way < 2 and tensor.shape and tensor.fill == 0 and not positive and rng.random() < 0.3
        ):  # as it is done for large tensors
            given[tensor.name] = Attribute(crds=np.argwhere(mask).T)
        elif way < 3:
            given[tensor.name] = Attribute(values, mask)
    return given


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
