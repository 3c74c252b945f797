"""The tables of polynomials of `fuseflow/float32/curves.py`, and of the modules of SystemVerilog that evaluate the same polynomials.

    python tools/float32_curves.py            write the tables into the package
    python tools/float32_curves.py --check    exit with 1 if those in the package differ

A curve is cut into pieces of equal width, and each piece is a polynomial that meets the function at the Chebyshev nodes of the piece.
mpmath computes the function with 60 digits. Coefficients are rounded to integers, in units of 2**-UNITS.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpmath import mp, mpf

PACKAGE = Path(__file__).parent.parent / "fuseflow"
mp.dps = 60


@dataclass(frozen=True)
class Curve:
    """A function in pieces. Piece i, at a place t from 0 to 1 in it, has the value `at(i, t)`."""

    name: str
    pieces: int
    degree: int
    units: int
    at: Callable[[int, Any], Any]
    what: str

    @property
    def size(self) -> str:
        return f"{self.pieces} piece{'s' if self.pieces > 1 else ''} of degree {self.degree}"

    def rows(self) -> Iterator[list[int]]:
        """The coefficients of each piece, the constant first."""
        for i in range(self.pieces):
            yield [round(c * 2**self.units) for c in self._interpolated(i)]

    def coefficients(self) -> list[int]:
        """Those of piece 0, then those of piece 1, and so on."""
        return [value for row in self.rows() for value in row]

    def _interpolated(self, piece: int) -> list[Any]:
        count = self.degree + 1
        nodes = [(1 + mp.cos(mp.pi * (2 * k + 1) / (2 * count))) / 2 for k in range(count)]
        matrix = mp.matrix([[node**k for k in range(count)] for node in nodes])
        return list(mp.lu_solve(matrix, mp.matrix([self.at(piece, node) for node in nodes])))


def _log2_ratio(piece: int, t: Any) -> Any:
    """log2(1 + g) / g. The first 8 pieces are g from 0 to 0.5, the others -0.25 to 0."""
    g = (piece + t) / 16 if piece < 8 else (piece + t) / 32 - mpf(1) / 2
    return mp.log(1 + g, 2) / g if g else 1 / mp.log(2)


def _over(function: Callable[[Any], Any], limit: Any) -> Callable[[Any], Any]:
    return lambda x: function(x) / x if x else limit


_erf_ratio = _over(mp.erf, 2 / mp.sqrt(mp.pi))
_tanh_ratio = _over(mp.tanh, mpf(1))
_sine_ratio = _over(lambda a: mp.sin(mp.pi / 2 * a), mp.pi / 2)

CURVES = (
    Curve("EXP2", 8, 4, 31, lambda i, t: mpf(2) ** ((i + t) / 8), "2**x, x from 0 to 1"),
    Curve("LOG2", 16, 6, 38, _log2_ratio, "log2(1 + g) / g, g from 0 to 0.5 and from -0.25 to 0"),
    Curve("TANH", 1, 4, 31, lambda i, t: _tanh_ratio(mp.sqrt(t / 16)), "tanh(x) / x, x**2 from 0 to 1/16"),
    Curve("ERF", 16, 7, 31, lambda i, t: _erf_ratio((i + t) / 4), "erf(x) / x, x from 0 to 4"),
    Curve(
        "RSQRT",
        16,
        6,
        31,
        lambda i, t: 1 / mp.sqrt((1 + (i % 8 + t) / 8) * (1 + i // 8)),
        "1 / sqrt(x), x from 1 to 2 and from 2 to 4",
    ),
    Curve("SINE", 1, 5, 31, lambda i, t: _sine_ratio(mp.sqrt(t / 4)), "sin(pi/2 a) / a, a**2 from 0 to 1/4"),
    Curve("COSINE", 1, 5, 31, lambda i, t: mp.cos(mp.pi / 2 * mp.sqrt(t / 4)), "cos(pi/2 a), a**2 from 0 to 1/4"),
)

HEADER = '''"""The polynomials of the functions that are not rational, as `tools/float32_curves.py` wrote them.

A table holds the coefficients of its pieces one after the other, the constant of each piece first.
"""

'''


def python_text() -> str:
    blocks = []
    for curve in CURVES:
        rows = [f"    {', '.join(map(str, row))}," for row in curve.rows()]
        what = f'"""{curve.what}: {curve.size}, in units of 2**-{curve.units}."""'
        blocks += [f"{curve.name} = (", *rows, ")  # fmt: skip", what]
    return HEADER + "\n".join(blocks) + "\n"


def verilog_text(curve: Curve) -> str:
    """The module of a curve: the coefficients of a piece, and Horner's rule at a place in it, which is in units of 2**-T."""
    orders = range(curve.degree + 1)
    ports = "#(parameter T = 29) (input [T-1:0] t, output signed [43:0] y)"
    if curve.pieces == 1:
        table = [f"  wire signed [43:0] c{k} = {_signed(value)};" for k, value in enumerate(curve.coefficients())]
    else:
        ports = ports.replace("(input", f"(input [{(curve.pieces - 1).bit_length() - 1}:0] piece, input")
        table = [f"  reg signed [43:0] {', '.join(f'c{k}' for k in orders)};", "  always @*", "    case (piece)"]
        table += [f"      {label}: begin {row} end" for label, row in _rows(curve)]
        table += ["    endcase"]
    steps = [f"  wire signed [43:0] h{curve.degree} = c{curve.degree};"]
    for k in reversed(range(curve.degree)):
        steps += [
            f"  wire signed [T+44:0] p{k} = h{k + 1} * $signed({{1'b0, t}});",
            f"  wire signed [43:0] h{k} = c{k} + p{k}[T+43:T];",
            f"  wire unused{k} = &{{1'b0, p{k}[T+44], p{k}[T-1:0]}};",
        ]
    return "\n".join(
        (
            "// Copyright and licence: Apache-2.0, as the package. Written by tools/float32_curves.py.",
            f"// {curve.what}: {curve.size}, in units of 2**-{curve.units}.",
            f"module ff_f32_curve_{curve.name.lower()} {ports};",
            *table,
            *steps,
            "  assign y = h0;",
            "endmodule\n",
        )
    )


def _rows(curve: Curve) -> Iterator[tuple[str, str]]:
    """The label of each piece in a `case`, and the assignments of its coefficients."""
    for i, row in enumerate(curve.rows()):
        label = f"{(curve.pieces - 1).bit_length()}'d{i}" if i + 1 < curve.pieces else "default"
        yield label, " ".join(f"c{k} = {_signed(value)};" for k, value in enumerate(row))


def _signed(value: int) -> str:
    return f"-44'sd{-value}" if value < 0 else f"44'sd{value}"


def files() -> dict[Path, str]:
    result = {PACKAGE / "float32" / "curves.py": python_text()}
    for curve in CURVES:
        result[PACKAGE / "hardware" / "sv" / f"ff_f32_curve_{curve.name.lower()}.sv"] = verilog_text(curve)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    for path, text in files().items():
        if check and (not path.is_file() or path.read_text(encoding="utf-8") != text):
            sys.exit(f"{path.relative_to(PACKAGE.parent)} differs: run tools/float32_curves.py")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
