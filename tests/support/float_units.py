"""The units `ff_f32_NAME` in Verilator, on arrays of words, and what they should give: by NumPy, by the simulators, by mpmath."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

import fuseflow
from fuseflow.float32.functions import FUNCTIONS
from fuseflow.float32.words import NAN
from fuseflow.native.kernel_library import library
from fuseflow.native.signatures import ELEMENTWISE
from fuseflow.ops import COMBINERS, OPERATORS, operator
from fuseflow.sim.engine.kernels.elementwise_functions import elementwise

Words = npt.NDArray[np.uint32]
FOLDER = Path(fuseflow.__file__).parent / "hardware" / "sv"
SUBNORMAL, LARGEST, INFINITE = 0x00000001, 0x7F7FFFFF, 0x7F800000

MAIN = """#include "Vtop.h"
#include <cstdio>
#include <cstdint>
int main() {{
  Vtop top;
  uint32_t in[3], out[{count}];
  while (fread(in, 4, 3, stdin) == 3) {{
    top.a = in[0]; top.b = in[1]; top.c = in[2];
    top.eval();
    {outputs}
    fwrite(out, 4, {count}, stdout);
  }}
}}
"""


def sources() -> list[Path]:
    return sorted(FOLDER.glob("ff_f32_*.sv"))


TESTBENCH = """module testbench;
  integer given, results, count;
  reg [31:0] a, b, c;
  wire [31:0] {wires};
  top top(a, b, c, {wires});
  initial begin
    given = $fopen("given.txt", "r");
    results = $fopen("results.txt", "w");
    while ($fscanf(given, "%h %h %h\\n", a, b, c) == 3) begin
      #1 $fdisplay(results, "{format}", {wires});
    end
    $fclose(results);
    $finish;
  end
endmodule
"""


def top(names: Sequence[str]) -> str:
    """A module with some units side by side."""
    ports = "".join(f", output [31:0] y{k}" for k in range(len(names)))
    operands = [", ".join("abc"[: operator(name).arity]) for name in names]
    lines = "".join(f"  ff_f32_{name} u{k}({operands[k]}, y{k});\n" for k, name in enumerate(names))
    return f"module top(input [31:0] a, input [31:0] b, input [31:0] c{ports});\n{lines}endmodule\n"


def in_icarus(names: Sequence[str], folder: Path, a: Words, b: Words, c: Words) -> dict[str, Words]:
    """The results of each unit, by its name. Icarus starts soon, and is slow."""
    wires = ", ".join(f"y{k}" for k in range(len(names)))
    (folder / "top.sv").write_text(top(names) + TESTBENCH.format(wires=wires, format=" ".join(["%h"] * len(names))))
    (folder / "given.txt").write_text("".join(f"{x:08x} {y:08x} {z:08x}\n" for x, y, z in zip(a, b, c, strict=True)))
    subprocess.run(
        ["iverilog", "-g2012", "-o", "units", "-s", "testbench", "-y", str(FOLDER), "-Y", ".sv", "top.sv"], cwd=folder, check=True
    )
    subprocess.run(["vvp", "-n", "units"], cwd=folder, check=True, capture_output=True)
    rows = [[int(word, 16) for word in line.split()] for line in (folder / "results.txt").read_text().splitlines()]
    return {name: np.array([row[k] for row in rows], np.uint32) for k, name in enumerate(names)}


def synthesized(name: str) -> tuple[bool, str]:
    """Whether yosys makes gates of a unit, without a loop, and what its cells are."""
    script = f"read_verilog -sv {FOLDER}/ff_f32_*.sv; synth -top ff_f32_{name}; check -assert; tee -o /dev/stdout stat"
    run = subprocess.run(["yosys", "-q", "-p", script], capture_output=True, text=True, check=False)
    return run.returncode == 0, run.stdout + run.stderr


class Units:
    """Some units side by side, built in a folder by Verilator."""

    def __init__(self, names: Sequence[str], folder: Path) -> None:
        self.names, self.folder = tuple(names), folder
        (folder / "top.sv").write_text(top(names))
        outputs = " ".join(f"out[{k}] = top.y{k};" for k in range(len(names)))
        (folder / "main.cpp").write_text(MAIN.format(count=len(names), outputs=outputs))
        arguments = ["--cc", "--exe", "--build", "-O3", "-CFLAGS", "-O1", "--top-module", "top", "-y", str(FOLDER), "-Wno-fatal"]
        subprocess.run(["verilator", *arguments, "top.sv", "main.cpp"], cwd=folder, check=True, capture_output=True)

    def __call__(self, a: Words, b: Words, c: Words) -> dict[str, Words]:
        """The results of each unit, by its name."""
        data = np.ascontiguousarray(np.stack([a, b, c], axis=1)).tobytes()
        run = subprocess.run([str(self.folder / "obj_dir" / "Vtop")], input=data, check=True, capture_output=True)
        table = np.frombuffer(run.stdout, np.uint32).reshape(-1, len(self.names))
        return {name: table[:, k] for k, name in enumerate(self.names)}


# Words ----------------------------------------------------------------------------------------------------------------------


def floats(words: Words) -> npt.NDArray[np.float32]:
    return words.view(np.float32)


def words_of(values: npt.NDArray[Any]) -> Words:
    """The words of numbers; every NaN has the same."""
    with np.errstate(all="ignore"):
        single = values.astype(np.float32)
    return np.where(np.isnan(single), np.uint32(NAN), single.view(np.uint32))


def random_words(rng: np.random.Generator, count: int) -> tuple[Words, Words, Words]:
    """Operands: any words, words of near exponents, numbers close to 1, subnormal ones."""
    a, b, c = (rng.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32) for _ in range(3))
    kind = rng.integers(0, 4, count)
    near = (a & np.uint32(0x7F800000)) + (rng.integers(-30, 31, count) << 23).astype(np.int64).astype(np.uint32)
    b = np.where(kind == 1, near & np.uint32(0x7F800000) | b & np.uint32(0x807FFFFF), b)
    ordinary = [words_of(rng.choice([-1.0, 1.0], count) * 2.0 ** rng.uniform(-30, 9, count)) for _ in range(2)]
    a, b = (np.where(kind == 2, own, word) for own, word in zip(ordinary, (a, b), strict=True))
    a, b = (np.where(kind == 3, word & np.uint32(0x80FFFFFF), word) for word in (a, b))
    return a, b, c


def function_words(name: str, rng: np.random.Generator, count: int) -> tuple[Words, Words]:
    """Finite operands of a function that is within 1 ulp: half of them any words, half where results are neither 0 nor infinite."""
    a = rng.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32)
    b = rng.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32)
    ordinary = rng.choice([-1.0, 1.0], count) * 2.0 ** rng.uniform(-30, 8, count)
    half = rng.random(count) < 0.5
    if name == "pow":
        near_1 = 1 + rng.choice([-1.0, 1.0], count) * 2.0 ** rng.uniform(-23, -1, count)
        base = np.abs(floats(words_of(np.where(rng.random(count) < 0.5, near_1, ordinary))).astype(np.float64))
        with np.errstate(all="ignore"):
            exponent = rng.uniform(-150, 150, count) / np.log2(base)
        return _finite(np.where(half, words_of(base), a & np.uint32(0x7FFFFFFF))), _finite(np.where(half, words_of(exponent), b))
    a = np.where(half, words_of(ordinary), a)
    return _finite(a & np.uint32(0x7FFFFFFF) if name in ("log", "rsqrt") else a), b


def _finite(words: Words) -> Words:
    """The words, with ordinary numbers in the place of infinities and NaN."""
    return np.where(words & np.uint32(INFINITE) == INFINITE, words & np.uint32(0xBFFFFFFF), words)


def edge_words(count: int) -> Words:
    """So many words at and around which something changes: powers of 2, the ends of ranges, whole numbers, halves, ties."""
    middle = [0, SUBNORMAL, 0x007FFFFF, 0x00800000, LARGEST, INFINITE, INFINITE + 1, NAN, 0x7FFFFFFF, 0x4B800000]
    middle += [e << 23 for e in range(256)] + [(e << 23) | 0x400000 for e in range(0, 256, 3)]
    middle += [int(w) for w in words_of(np.arange(1, 17) / 2)] + [int(w) for w in words_of(np.pi * np.arange(1, 33) / 4)]
    around = dict.fromkeys(word + step for word in middle for step in (0, -1, 1) if 0 <= word + step < 1 << 31)
    some = list(around)[: count // 2]
    return np.array([sign | word for word in some for sign in (0, 1 << 31)], np.uint32)


# What they should give ------------------------------------------------------------------------------------------------------


def by_numpy(name: str, a: Words, b: Words) -> Words:
    """The correctly rounded operators by NumPy's floats of 32 bits, with the annihilators of the table."""
    function: Callable[..., Any] = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt}[
        name
    ]
    row = operator(name)
    operands = [floats(a), floats(b)][: row.arity]
    with np.errstate(all="ignore"):
        result = words_of(function(*operands))
    for position, value, fixed in row.annihilators:
        result = np.where(operands[position] == value, words_of(np.array(fixed)), result)
    return result


def by_simulator(name: str, a: Words, b: Words, c: Words) -> Words:
    """What the simulators compute in `f32`, by the compiled kernels."""
    with np.errstate(all="ignore"):
        x, y, z = (np.ascontiguousarray(floats(word).astype(np.float64)) for word in (a, b, c))
    out = np.zeros_like(x)
    kernel = library().compiled(elementwise(name, "f32"), ELEMENTWISE)
    kernel(out.ctypes.data, len(out), x.ctypes.data, 1, y.ctypes.data, 1, z.ctypes.data, 1)
    return words_of(out)


IN_64_BITS: dict[str, Callable[..., Any]] = {
    "cos": np.cos,
    "erf": special.erf,
    "exp": np.exp,
    "log": np.log,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sin": np.sin,
    "tanh": np.tanh,
}


@cache
def exact_functions() -> dict[str, Callable[..., Any]]:
    from mpmath import mp

    return {
        "cos": mp.cos,
        "erf": mp.erf,
        "exp": mp.exp,
        "log": mp.log,
        "pow": mp.power,
        "rsqrt": lambda x: 1 / mp.sqrt(x),
        "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
        "sin": mp.sin,
        "tanh": mp.tanh,
    }


def ulps(name: str, operands: Sequence[float], result: float) -> float:
    """How far the result of a function is from the exact one, in units of the last place of a 32-bit float there.

    An infinite result counts as 2**128. What is exactly 0, infinite or no number must be that.
    """
    from mpmath import isnan, mp, mpf

    with mp.workprec(120):
        exact = exact_functions()[name](*map(mpf, operands))
        if isnan(exact) or exact in (0, mp.inf, -mp.inf):
            return 0.0 if (result != result if isnan(exact) else mpf(result) == exact) else float("inf")
        given = mpf(2) ** 128 * (1 if result > 0 else -1) if result in (float("inf"), float("-inf")) else mpf(result)
        if abs(exact) >= mpf(2) ** 128:
            return 0.0 if given == mpf(2) ** 128 * (1 if exact > 0 else -1) else float("inf")
        exponent = max(mp.mag(exact) - 1, -126)
        return float(abs(given - exact) / mpf(2) ** (exponent - 23))


def ulps_in_64_bits(name: str, a: Words) -> npt.NDArray[np.float64]:
    """How far the results of a function of one operand are from those in 64 bits, each in units of the last place of a 32-bit float there.
    An infinite result counts as 2**128, and what is no number must be none."""
    with np.errstate(all="ignore"):
        exact = np.asarray(IN_64_BITS[name](floats(a).astype(np.float64)))
        given = floats(by_simulator(name, a, a, a)).astype(np.float64)
        top = 2.0**128
        unit = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 1, -126) - 23)
        errors = np.abs(np.clip(given, -top, top) - np.clip(exact, -top, top)) / unit
    same = (np.isnan(exact) & np.isnan(given)) | (given == exact)
    return np.where(same, 0.0, np.where(np.isnan(errors), np.inf, errors))


UNITS = (*OPERATORS, *COMBINERS)
"""Every operator has a unit."""
ROUNDED = ("add", "sub", "mul", "div", "sqrt")
WITHIN_1_ULP = tuple(name for name in FUNCTIONS if not name.startswith("nearest"))
