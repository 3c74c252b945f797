"""Random programs of two to five stages whose rows have a structure: blocks of many and of few neighbours, sorted, periodic, heavy
tails, some of these one after the other, or none. They are large enough to be sampled, and small enough to be run exactly."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.sim import Machine, load_machine

LAYER = "T[i, f] = sum(k) A[i, k] * X[k, f]\nU[i, h] = sum(f) T[i, f] * W[f, h]"
PROGRAMS = {
    "layer": (2, LAYER, "U"),
    "sampled product": (2, "D[i, k] = sum(f) X[i, f] * X[k, f]\nY[i, k] = A[i, k] * D[i, k]", "Y"),
    "activated layer": (3, f"{LAYER}\nY[i, h] = relu(U[i, h] + b[h])", "Y"),
    "residual layer": (3, f"{LAYER}\nY[i, h] = U[i, h] + R[i, h]", "Y"),
    "mean layer": (
        4,
        "s[i] = sum(k) A[i, k]\nN[i, k] = A[i, k] / (s[i] + 1)\nT[i, f] = sum(k) N[i, k] * X[k, f]\nU[i, h] = sum(f) T[i, f] * W[f, h]",
        "U",
    ),
    "attention": (
        4,
        "D[i, k] = sum(f) X[i, f] * X[k, f]\nP[i, k] = A[i, k] * D[i, k]\ns[i] = sum(k) P[i, k]\n"
        "Y[i, f] = (sum(k) P[i, k] * X[k, f]) / (s[i] + 1)",
        "Y",
    ),
    "perceptron": (4, f"{LAYER}\nV[i, h] = relu(U[i, h] + b[h])\nY[i, g] = sum(h) V[i, h] * Z[h, g]", "Y"),
    "residual perceptron": (
        5,
        f"{LAYER}\nV[i, h] = relu(U[i, h] + b[h])\nS[i, g] = sum(h) V[i, h] * Z[h, g]\nY[i, g] = S[i, g] * R[i, g]",
        "Y",
    ),
}
"""Programs by name: how many stages they have, what they compute, and their output."""

STRUCTURES = ("uniform", "blocks", "sorted", "periodic", "power law", "mixed")
CYCLES = {"ideal": 900_000, "rda": 3_200_000}
"""About so many cycles a program takes on a machine. Replicates are longer where memory takes time."""


@dataclass(frozen=True)
class StructuredProgram:
    """A random program: what it is, and how it is compiled."""

    structure: str
    stages: int
    machine: str
    name: str
    compiled: ff.compiler.Compiled


def degrees(structure: str, rows: int, mean: float, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The number of stored entries of each row."""
    at = np.arange(rows)
    match structure:
        case "uniform":
            counts = rng.poisson(mean, rows) if rng.random() < 0.7 else np.full(rows, mean)
        case "blocks":
            of_kinds = np.array([mean * rng.uniform(1.5, 2.5), rng.uniform(0, 0.5) * mean, mean * rng.uniform(0.5, 1.5)])
            counts = of_kinds[at // _length(rows, rng) % rng.integers(2, 4)]
        case "sorted":
            drawn = rng.lognormal(0, rng.uniform(0.3, 1.2), rows) if rng.random() < 0.5 else rng.random(rows)
            counts = np.sort(mean * drawn / drawn.mean())[:: rng.choice((1, -1))]
        case "periodic":
            period = _length(rows, rng)
            wave = 1 + np.sin(2 * np.pi * at / period) if rng.random() < 0.5 else 2 * rng.random(period)[at % period]
            counts = mean * wave
        case "power law":
            drawn = np.minimum(rng.pareto(rng.uniform(1.3, 2.5), rows) + 1, rows / 8)
            counts = mean * drawn / drawn.mean()
        case "mixed":
            ends = np.sort(rng.choice(np.arange(64, rows - 64), rng.integers(2, 7), replace=False))
            parts = np.diff(ends, prepend=0, append=rows)
            kinds = rng.choice(STRUCTURES[:-1], len(parts))
            means = mean * rng.uniform(0.2, 2, len(parts))
            counts = np.concatenate([degrees(k, int(n), m, rng) for k, n, m in zip(kinds, parts, means, strict=True)])
    return np.clip(np.round(counts), 0, rows // 2).astype(np.int64)


def _length(rows: int, rng: np.random.Generator) -> int:
    """A length of a block or period, all magnitudes of which are equally likely."""
    return int(np.exp(rng.uniform(np.log(2), np.log(max(3, rows / 3)))))


def square(structure: str, rows: int, mean: float, local: bool, rng: np.random.Generator) -> sparse.csr_array:
    """A matrix whose rows have about these degrees, with their entries anywhere, or near the diagonal."""
    counts = degrees(structure, rows, mean, rng)
    owner = np.repeat(np.arange(rows), counts)
    reach = np.minimum(rows, 4 * counts[owner] + 8) if local else rows
    entries = np.unique(owner * rows + (owner + rng.integers(0, reach, len(owner))) % rows)  # what is drawn twice is one entry
    values = rng.random(len(entries)).astype(np.float32) + 0.1
    return sparse.csr_array((values, (entries // rows, entries % rows)), shape=(rows, rows))


def random_machine(name: str, draw: random.Random) -> Machine:
    """The machine `rda`, with its memory or the one of `ideal`, which answers at once. One of four has shallower or deeper FIFOs."""
    settings = load_machine("rda").model_dump()
    if name == "ideal":
        settings["memory"] = load_machine("ideal").memory.model_dump()
    if draw.random() < 0.25:
        settings["fifo_depth_start"] = draw.choice((8, 16, 256))
    return Machine.model_validate(settings)


def structured_program(seed: int, structure: str | None = None) -> StructuredProgram:
    """A random program. Structures take turns, if none is asked for."""
    rng, draw = np.random.default_rng([29, seed]), random.Random(f"structured program {seed}")
    structure, name = structure or STRUCTURES[seed % len(STRUCTURES)], draw.choice(list(PROGRAMS))
    stages, body, output = PROGRAMS[name]
    features, hidden, mean = draw.choice((4, 8, 16, 32, 64)), draw.choice((4, 8, 16)), draw.choice((3, 6, 12, 24))
    row = max(mean * features, features * hidden if "W" in body else 0)
    machine = draw.choice(("ideal", "ideal", "ideal", "rda"))
    rows = int(np.clip(CYCLES[machine] / (row + 10), 600, 60_000))
    shapes = {"X": (rows, features), "W": (features, hidden), "b": (hidden,), "Z": (hidden, 8)}
    shapes["R"] = (rows, 8 if "Z" in body else hidden)
    dense = {t: rng.random(shape, dtype=np.float32) for t, shape in shapes.items() if f"{t}[" in body}
    tensors = {"A": square(structure, rows, mean, draw.random() < 0.3, rng), **dense}
    lines = [f"tensor {t}[{', '.join(map(str, tensors[t].shape))}] {'csr' if t == 'A' else 'dense'}" for t in tensors]
    program = parse("\n".join([*lines, body, f"output {output}"]))
    compiled = ff.compile(program, tensors=tensors, schedule=ff.Schedule.fuse("full"), machine=random_machine(machine, draw))
    return StructuredProgram(structure, stages, machine, f"{name}, {structure}, {rows} rows", compiled)
