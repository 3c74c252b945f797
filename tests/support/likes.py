"""Random programs with tensors that share their places: inputs and results like one input, beside others, in one to four statements."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fuseflow.schedule import Schedule

FORMATS = ("csr", "csc", "dcsr", "dcsc", "coo", "csf", "(compressed, dense)", "nm(2:4)", "csr block 2x2", "dcsr block 1x3")
OTHERS = ("csr", "dense", "dcsr", "csc", "dense order (1, 0)")
MACHINES = ("ideal", "rda")


@dataclass(frozen=True)
class LikeCase:
    """A program as text, its arrays, and how it is compiled."""

    text: str
    arrays: dict[str, npt.NDArray[np.float64]]
    schedule: Schedule
    machine: str


def drawn(seed: int) -> LikeCase:
    """Return the case of a seed."""
    return _Drawing(random.Random(seed), np.random.default_rng(seed)).case()


@dataclass
class _Drawing:
    rng: random.Random
    numbers: np.random.Generator

    def case(self) -> LikeCase:
        rng = self.rng
        rows, columns, inner = (rng.choice((1, 2, 3, 5, 8)) for _ in range(3))
        stored = rng.choice(FORMATS)
        blocked = "block" in stored
        others = ("dense", "csr") if blocked else OTHERS
        mask = self.numbers.random((rows, columns)) < rng.choice((0.0, 0.2, 0.5, 1.0))
        if stored == "nm(2:4)":
            mask &= np.arange(columns) % 4 < 2
        shape = f"[{rows}, {columns}]"
        lines = [f"tensor W{shape} {stored}", f"tensor V{shape} like W", f"tensor U{shape} like W {rng.choice(('', 'f64'))}"]
        lines += [f"tensor A{shape} {rng.choice(others)}", f"tensor b[{columns}] dense", "tensor s[] dense"]
        lines += [f"tensor X[{inner}, {rows}] {rng.choice(others)}", f"tensor Y[{inner}, {columns}] {rng.choice(others)}"]
        arrays = {name: self.array((rows, columns), 0.7) * mask for name in ("W", "V", "U")}
        arrays["W"][mask] += 3.0 * (arrays["W"][mask] == 0)
        arrays |= {
            "A": self.array((rows, columns), 0.5),
            "b": self.array((columns,), 0.8),
            "s": np.array(rng.choice((0.5, -2.0))),
        }
        arrays |= {"X": self.array((inner, rows), 0.6), "Y": self.array((inner, columns), 0.6)}
        operands, results, statements = ["W[i, j]", "V[i, j]", "U[i, j]", "A[i, j]"], list[str](), list[str]()
        for count in range(rng.randint(1, 4)):
            name, like = f"r{count}", rng.random() < 0.75
            lines.append(f"tensor {name}{shape}{' like W' * like}")
            statements.append(f"{name}[i, j] = {self.body(operands, blocked)}")
            operands.append(f"{name}[i, j]")
            results.append(name)
        if rng.random() < 0.4:
            statements.append(f"total[i] = sum(j) {rng.choice(operands)} * {rng.choice(operands)}")
            results.append("total")
        outputs = [name for name in results if rng.random() < 0.7] or results[-1:]
        text = "\n".join([*lines, *statements, f"output {', '.join(outputs)}"]) + "\n"
        lanes = ((rng.choice("ij"), 2),) if rng.random() < 0.3 else ()
        schedule = Schedule(fuse_regions=(rng.choice(("none", "full", "full")),), parallel=lanes)
        return LikeCase(text, arrays, schedule, rng.choice(MACHINES))

    def body(self, operands: list[str], blocked: bool) -> str:
        """Return an expression of some operands. A value for a row, or for everything, fills no blocks."""
        rng = self.rng
        first, second = rng.choice(operands), rng.choice(operands)
        kinds = [
            f"0.9 * {first} + {second}",
            f"{first} * {second}",
            f"{first} - s[] * {second} / (sqrt({second} * {second}) + 0.5)",
            f"relu({first}) + exp({second})",
            f"{first} + (sum(k) X[k, i] * Y[k, j])",
            "sum(k) X[k, i] * Y[k, j]",
            f"max({first}, 0.25)",
            f"{first}",
        ]
        kinds += [] if blocked else [f"{first} + b[j]", "b[j]", "2 * s[]"]
        return rng.choice(kinds)

    def array(self, shape: tuple[int, ...], density: float) -> npt.NDArray[np.float64]:
        values = np.round(self.numbers.standard_normal(shape), 2)
        return np.asarray(np.where(self.numbers.random(shape) < density, values, 0.0))
