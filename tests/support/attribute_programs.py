"""Random programs of the kind that models are made of, with random attributes of their tensors.

They have fan-out, shared and transposed weights, biases, norms, softmax with masks, maxima, and results that nobody reads. Multilinear ones
have products and sums alone, so that an element is needed exactly if it changes an output.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.propagation import Attribute

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
