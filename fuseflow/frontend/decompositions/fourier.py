"""Fourier transforms along one dimension: products with small matrices, one for each factor of the number of elements.

A transform of n = r m elements is m transforms of r elements, products with roots of unity (twiddles), and r transforms of m elements. The
matrices of 2 and of 4 elements hold 1, -1, i and -i alone. Real numbers are transformed as half as many complex ones: a *mirrored* product
adds up elements and the conjugates of their mirror images.

A transform of few elements is one product with its matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import pi, prod, sqrt
from typing import Literal, TypeAlias

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.decompositions.pair_arithmetic import Pair, PairArithmetic, Part
from fuseflow.frontend.positions.selection_operators import product_along
from fuseflow.frontend.positions.selections import described
from fuseflow.frontend.trace.fx_origin import named
from fuseflow.frontend.trace.refusals import refusal

aten = torch.ops.aten
Numbers: TypeAlias = Literal["complex", "real", "half"]
"""The numbers on one side of a transform. `half` are the first n // 2 + 1 of n complex ones, whose mirror images are their conjugates."""

TRANSFORMS: dict[str, tuple[Literal[-1, 1], Numbers, Numbers]] = {
    "fft_fft": (-1, "complex", "complex"),
    "fft_ifft": (1, "complex", "complex"),
    "fft_rfft": (-1, "real", "half"),
    "fft_irfft": (1, "half", "real"),
    "fft_hfft": (-1, "half", "real"),
    "fft_ihfft": (1, "real", "half"),
}
"""For each operator along one dimension: the sign of its exponents, what it takes, and what it gives."""
_MOST_ENTRIES = 1 << 22
_LEAST_ENTRY = 1e-12
"""Relative to the largest entry of a matrix. A smaller entry is a zero that was rounded: n entries lie on a circle, so that other
entries are as small only from n = 10^12 on."""
_SAVING = 3
"""A transform is factored where that takes fewer multiplications by this factor, since it also becomes more statements. Tuned on the layers
of tests/zoo/dynamic_transforms.py, of 8 to 32 elements, and on single transforms of 64 and 128."""


def factors(n: int) -> list[int]:
    """Return the sizes of the small transforms that make one of n elements.

    >>> factors(1000), factors(32), factors(1)
    ([4, 2, 5, 5, 5], [4, 4, 2], [1])
    """
    factors, candidate = list[int](), 4
    while n > 1:
        if n % candidate == 0:
            factors.append(candidate)
            n //= candidate
        elif candidate > 4 and candidate * candidate > n:
            candidate = n
        else:
            candidate = {4: 2, 2: 3, 3: 5}.get(candidate, candidate + 2)
    return factors or [1]


def _multiplications(n: int) -> int:
    """Return how many multiplications the small transforms and the twiddles of n complex numbers take."""
    sizes = factors(n)
    return sum(n // r * (2 * r * r if r in (1, 2, 4) else 4 * r * r) for r in sizes) + 4 * n * (len(sizes) - 1)


@dataclass(frozen=True)
class FourierTransform:
    """A transform by the operator `name` along dimension `dim`, to or from `n` numbers. Its calls are added by `at`."""

    at: PairArithmetic
    name: str
    n: int
    dim: int
    norm: str | None

    def of(self, x: Pair) -> Pair:
        """Return the parts of the results of the numbers with the parts `x`. Numbers that are missing are 0. Raise `FrontendError` if
        a matrix would be too large."""
        n, half = self.n, self.n // 2
        _, given, result = TRANSFORMS[self.name]
        x = self._cut(x, half + 1 if given == "half" else n)
        rows = half + 1 if result == "half" else n
        paired = n % 2 == 0 and (given == "half" or x[1] is None)
        mirrored = 8 * (half if given == "half" else rows)
        by_matrix = self._extent(x) * rows * sum(part is not None for part in x) * (1 if result == "real" else 2)
        if _SAVING * (_multiplications(half) + mirrored if paired else _multiplications(n)) > by_matrix:
            return self._by_matrix(x)
        if not paired:
            whole = self._complex(self._completed(x) if given == "half" else x, n)
            return (whole[0], None) if result == "real" else self._cut(whole, rows)
        if given == "half":
            return self._complex(self._folded(x), half, gives_turns=True)
        return self._unfolded(self._complex(x, half, takes_turns=True), rows)

    def _by_matrix(self, x: Pair) -> Pair:
        """Return the product with the matrix of the transform, which is what PyTorch computes of the rows of the identity."""
        operator, extent = getattr(aten, self.name).default, self._extent(x)
        self._check_size(extent * self.n)
        identity = torch.eye(extent, dtype=torch.float64)
        units = (identity,) if TRANSFORMS[self.name][1] == "real" else (identity + 0j, identity * 1j)
        return self._applied(x, self.dim, *[operator(unit, self.n, 1, self.norm).t() for unit in units])

    # The transform of complex numbers ---------------------------------------------------------------------------------

    def _complex(self, x: Pair, n: int, *, takes_turns: bool = False, gives_turns: bool = False) -> Pair:
        """Return the transform of n complex numbers, times the factor that the norm asks for. Each step transforms one digit of the
        places, the first digit first. The places of the results have these digits in reverse. The real and the imaginary parts of the
        numbers that are taken or given may take turns, in one real tensor."""
        shape, sizes = self._shape(x), factors(n)
        outside, inside = shape[: self.dim], shape[self.dim + 1 :]
        turns = 2 if takes_turns else 1
        done, left = prod(outside), n // sizes[0]
        given = -(-self._extent(x) // (turns * left))
        x = self._reshaped(self._padded(x, turns * given * left), (done, given, left, turns, prod(inside)))
        x = self._each(x, lambda part: self.at.call(aten.permute.default, part, [0, 1, 3, 2, 4]))
        for step, r in enumerate(sizes):
            self._check_size(r * r)
            scale = 1.0 if step else self._scale
            roots = self._roots(r, r, given) * (scale if left == 1 else 1.0)
            matrices = [roots, 1j * roots]
            if turns == 2:
                matrices = [torch.stack(matrices, -1).flatten(1)]
            if gives_turns and left == 1:
                matrices = [torch.stack((matrix.real, matrix.imag), 1).flatten(0, 1) for matrix in matrices]
            x = self._applied(self._reshaped(x, (done, turns * given, left * prod(inside))), 1, *matrices)
            turns = 1
            if left > 1:
                twiddles = self._roots(r * left, r, left).unsqueeze(-1) * scale
                x = self._turned(self._reshaped(x, (done, r, left, prod(inside))), twiddles)
                given = sizes[step + 1]
                done, left = done * r, left // given
        turns = 2 if gives_turns else 1
        first, last = self.dim, self.dim + len(sizes)
        order = [*range(first), *range(first, last)[::-1], *range(last, last + 1 + len(inside))]
        digits = self._reshaped(x, (*outside, *sizes, turns, *inside))
        x = self._each(digits, lambda part: self.at.call(aten.permute.default, part, order))
        return self._reshaped(x, (*outside, turns * n, *inside))

    def _roots(self, n: int, rows: int, columns: int) -> Tensor:
        """Return the n-th root of unity to the power of the product of row and column."""
        powers = torch.outer(torch.arange(rows), torch.arange(columns)) % n
        angles = powers.double() * (TRANSFORMS[self.name][0] * 2 * pi / n)
        return torch.polar(torch.ones_like(angles), angles)

    @property
    def _scale(self) -> float:
        """The factor of all results, by the norm."""
        unscaled = "forward" if TRANSFORMS[self.name][0] == 1 else "backward"
        norm = self.norm or "backward"
        return 1.0 if norm == unscaled else 1 / sqrt(self.n) if norm == "ortho" else 1 / self.n

    # Real numbers -----------------------------------------------------------------------------------------------------

    def _unfolded(self, x: Pair, rows: int) -> Pair:
        """Return the transform of n real numbers from that of half as many complex ones, whose parts take turns in them."""
        k, half, roots = torch.arange(rows), self.n // 2, 1j * self._roots(self.n, rows, 2)[:, 1]
        return self._mirrored(x, ((1 - roots) / 2, k % half), ((1 + roots) / 2, -k % half))

    def _folded(self, x: Pair) -> Pair:
        """Return complex numbers in whose transform the results for the first half `x` of n numbers take turns."""
        k, half, roots = torch.arange(self.n // 2), self.n // 2, 1j * self._roots(self.n, self.n // 2, 2)[:, 1]
        return self._mirrored(x, (1 + roots, k), (1 - roots, half - k))

    def _completed(self, x: Pair) -> Pair:
        """Return all n numbers from the first half of them."""
        k = torch.arange(self.n)
        first = (k <= self.n // 2).to(torch.complex128)
        return self._mirrored(x, (first, k), (1 - first, self.n - k))

    def _mirrored(self, x: Pair, own: tuple[Tensor, Tensor], mirror: tuple[Tensor, Tensor]) -> Pair:
        """Return, for each row, the weighted sum of a number and of the conjugate of another one, which are at the given places. In the
        first half of n numbers, the first one and the middle one count as real."""
        extent = self._extent(x)
        shape = len(own[1]), extent

        def matrix(weights: Tensor, mirror_weights: Tensor, imaginary: bool) -> Tensor:
            places = torch.stack((torch.arange(shape[0]).repeat(2), torch.cat((own[1], mirror[1]))))
            kept = places[1] < extent
            if imaginary and TRANSFORMS[self.name][1] == "half":
                kept &= (places[1] != 0) & (2 * places[1] != self.n)
            return torch.sparse_coo_tensor(places[:, kept], torch.cat((weights, mirror_weights))[kept], shape)

        return self._applied(x, self.dim, matrix(own[0], mirror[0], False), matrix(1j * own[0], -1j * mirror[0], True))

    # Parts ------------------------------------------------------------------------------------------------------------

    def _applied(self, x: Pair, dim: int, *matrices: Tensor) -> Pair:
        """Return the sum of the products of the real and of the imaginary part along a dimension with a complex matrix for each."""
        sums: list[Part] = [None, None]
        for part, matrix in zip(x, matrices, strict=False):
            entries = matrix.to_sparse().coalesce()
            values = entries.values()
            if isinstance(part, Node) and len(values):
                for side, weights in enumerate((values.real, values.imag) if values.is_complex() else (values,)):
                    stored = weights.abs() > _LEAST_ENTRY * values.abs().max()
                    if stored.any():
                        rows, columns = entries.indices()[:, stored]
                        shape = (matrix.shape[0], matrix.shape[1])
                        weights = weights[stored].to(described(part).dtype)
                        node = self.at.selections.matrix(rows, columns, weights, shape, self._name)
                        sums[side] = self.at.add(sums[side], self.at.call(product_along, node, part, dim))
        return sums[0], sums[1]

    def _turned(self, x: Pair, twiddles: Tensor) -> Pair:
        """Return the product with complex numbers, which are broadcast."""
        dtype = described(next(part for part in x if isinstance(part, Node))).dtype
        sides = (twiddles.real, twiddles.imag)
        real, imaginary = (self.at.selections.argument(self._name, side.to(dtype).contiguous()) for side in sides)
        return self.at.product((real, imaginary), x)

    @property
    def _name(self) -> str:
        return named(self.at.node, "transform")

    def _each(self, x: Pair, function: Callable[[Node], Node]) -> Pair:
        real, imaginary = (function(part) if isinstance(part, Node) else None for part in x)
        return real, imaginary

    def _shape(self, x: Pair) -> tuple[int, ...]:
        return tuple(described(next(part for part in x if isinstance(part, Node))).shape)

    def _extent(self, x: Pair) -> int:
        return self._shape(x)[self.dim]

    def _reshaped(self, x: Pair, shape: Sequence[int]) -> Pair:
        return self._each(x, lambda part: self.at.call(aten.reshape.default, part, list(shape)))

    def _cut(self, x: Pair, count: int) -> Pair:
        """Return the first numbers, at most `count`."""
        if self._extent(x) <= count:
            return x
        return self._each(x, lambda part: self.at.call(aten.slice.Tensor, part, self.dim, 0, count))

    def _padded(self, x: Pair, count: int) -> Pair:
        """Return the numbers with zeros behind them, `count` in all."""
        missing = count - self._extent(x)
        if not missing:
            return x
        amounts = [0, 0] * (len(self._shape(x)) - 1 - self.dim) + [0, missing]
        return self._each(x, lambda part: self.at.call(aten.constant_pad_nd.default, part, amounts))

    def _check_size(self, entries: int) -> None:
        if entries > _MOST_ENTRIES:
            message = f"`{self.at.node.target}` of {self.n} elements would be a product with a matrix of {entries} entries"
            hint = "transform it outside the model, and pass the result as an argument, or pad it to a length without large prime factors"
            raise refusal(self.at.node, message, hint)
