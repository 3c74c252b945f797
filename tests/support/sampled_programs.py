"""Random programs whose outermost index is free, with random patterns of rows, formats, lanes, FIFOs and memories: large enough to be
sampled, and small enough to be run exactly."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from memories import random_memory
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.sim import Machine, load_machine

PROGRAMS = {
    "product": "Y[i, j] = sum(k) A[i, k] * X[k, j]",
    "layer": "T[i, j] = sum(k) A[i, k] * X[k, j]\nU[i, h] = sum(j) T[i, j] * W[j, h]\nY[i, h] = relu(U[i, h] + b[h])",
    "two layers": "T[i, j] = sum(k) A[i, k] * X[k, j]\nU[i, h] = sum(j) T[i, j] * W[j, h]\nY[i, h] = sum(k) A[i, k] * U[k, h]",
    "sampled product": "D[i, k] = sum(j) X[i, j] * X[k, j]\nY[i, k] = A[i, k] * D[i, k]",
    "softmax": "m[i] = max(k) A[i, k]\nE[i, k] = exp(A[i, k] - m[i])\ns[i] = sum(k) E[i, k]\nY[i, k] = E[i, k] / s[i]",
    "attention": "D[i, k] = sum(j) X[i, j] * X[k, j]\nP[i, k] = A[i, k] * D[i, k]\ns[i] = sum(k) P[i, k]\n"
    "Y[i, j] = (sum(k) P[i, k] * X[k, j]) / (s[i] + 1)",
    "join": "Y[i, k] = A[i, k] * B[i, k] + A[i, k]",
    "sum": "s[i] = sum(k) A[i, k] * B[i, k]\nY[i, j] = s[i] * X[i, j]",
}
"""Programs on a square matrix A, another one B, features X, weights W and a bias b."""

DEGREES = ("uniform", "regular", "power law", "sorted", "hub", "empty rows", "blocks", "alternating")


@dataclass(frozen=True)
class SampledProgram:
    """A random program: what it is, and how it is compiled."""

    name: str
    compiled: ff.compiler.Compiled


def degrees(kind: str, rows: int, mean: float, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The number of stored entries of each row."""
    tail = np.minimum(mean * 0.4 * (rng.pareto(1.6, rows) + 1), rows)
    match kind:
        case "uniform":
            counts = rng.binomial(rows, mean / rows, rows)
        case "regular":
            counts = np.full(rows, mean)
        case "power law":
            counts = tail
        case "sorted":
            counts = np.sort(tail)[:: rng.choice((1, -1))]
        case "hub":
            counts = np.full(rows, mean * 0.5)
            counts[rng.integers(rows)] = rows
        case "empty rows":
            counts = np.where(rng.random(rows) < 0.7, 0, mean * 3)
        case "blocks":
            counts = np.where(np.arange(rows) // 16 % 4 == 0, mean * 3, mean * 0.3)
        case "alternating":
            counts = np.where(np.arange(rows) % 2 == 0, mean * 2, 1)
    return np.clip(np.round(counts), 0, rows).astype(np.int64)


def square(kind: str, rows: int, mean: float, rng: np.random.Generator) -> sparse.coo_array:
    """A matrix whose rows have these degrees."""
    counts = degrees(kind, rows, mean, rng)
    columns = np.concatenate([np.sort(rng.choice(rows, n, replace=False)) for n in counts]) if counts.sum() else np.zeros(0, int)
    values = rng.random(len(columns)).astype(np.float32) + 0.1
    return sparse.coo_array((values, (np.repeat(np.arange(rows), counts), columns)), shape=(rows, rows))


def random_machine(rng: random.Random) -> Machine:
    """The machine `rda` with FIFOs of another depth, and with a random memory or one that answers at once."""
    settings = load_machine("rda").model_dump()
    memory = load_machine("ideal").memory if rng.random() < 0.15 else random_memory(rng)
    settings |= {"fifo_depth_start": rng.choice((2, 4, 16, 64)), "memory": memory.model_dump()}
    return Machine.model_validate(settings)


def random_program(seed: int, kind: str | None = None) -> SampledProgram:
    """A random program, with rows of one kind if one is asked for."""
    rng, draw = np.random.default_rng([17, seed]), random.Random(f"sampled program {seed}")
    name, kind = draw.choice(list(PROGRAMS)), kind or draw.choice(DEGREES)
    rows, features, mean = draw.choice((1500, 3000, 6000)), draw.choice((3, 8, 20)), draw.choice((6, 12, 24))
    tensors = {
        "A": square(kind, rows, mean, rng),
        "B": square("uniform", rows, mean, rng),
        "X": rng.random((rows, features), dtype=np.float32) * (rng.random((rows, features)) < draw.choice((0.3, 1.0))),
        "W": rng.random((features, 5), dtype=np.float32),
        "b": rng.random(5, dtype=np.float32),
    }
    body = PROGRAMS[name]
    read = [t for t in tensors if f"{t}[" in body]
    sparse_format = draw.choice(("csr", "csr", "dcsr", "coo"))
    formats = {"A": sparse_format, "B": sparse_format, "X": draw.choice(("dense", "csr"))}
    lines = [f"tensor {t}[{', '.join(map(str, tensors[t].shape))}] {formats.get(t, 'dense')}" for t in read]
    program = parse("\n".join([*lines, body, "output Y"]))
    schedule = ff.Schedule.fuse("full")
    if draw.random() < 0.2:
        schedule = schedule.par(k=draw.choice((2, 4)))
    compiled = ff.compile(program, tensors={t: tensors[t] for t in read}, schedule=schedule, machine=random_machine(draw))
    return SampledProgram(f"{seed} {name}, {kind}, {rows} rows", compiled)
