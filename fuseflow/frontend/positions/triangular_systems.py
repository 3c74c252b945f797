"""Triangular systems, solved by the inverse of a triangular matrix.

The inverse is made in levels: from the inverses of its blocks of k rows along the diagonal follow those of 2 k rows, by

    inverse([A, 0], [C, B])  =  [inverse(A), 0], [-inverse(B) C inverse(A), inverse(B)]

So a system of n rows has about log2(n) levels of two products. Which elements of a level are 0 is known, and no product visits them.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.linear_operators import diagonal_of, masked
from fuseflow.frontend.positions.selections import Call, Handler, described


def _solve_triangular(
    call: Call, matrix: Node, known: Node, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Node | None:
    """Return the X of `matrix @ X = known`, or of `X @ matrix = known` if not `left`. Only one triangle of the matrix is read."""
    size, dtype = described(matrix).shape[-1], described(matrix).dtype
    if not dtype.is_floating_point:
        return None
    if not left:
        matrix, known, upper = call.computed(_transposed, matrix), call.computed(_transposed, known), not upper
    if not unitriangular:
        divisor = call.computed(torch.unsqueeze, diagonal_of(call, matrix, 0, -2, -1), -1)
        matrix, known = (call.computed(torch.div, operand, divisor) for operand in (matrix, known))
    places = torch.arange(size)
    inverse: Node | None = None
    for level in range((size - 1).bit_length()):
        block = places >> level
        below = (block[:, None] % 2 == 1) & (block[:, None] == block + 1)
        corners = call.computed(masked, call.mask(below.t() if upper else below, "corners"), matrix)
        if inverse is None:
            inverse = call.matrix(places, places, torch.ones(size, dtype=dtype), (size, size), "identity")
        else:
            corners = call.computed(torch.matmul, call.computed(torch.matmul, inverse, corners), inverse)
        inverse = call.computed(torch.sub, inverse, corners)
    solution = known if inverse is None else call.computed(torch.matmul, inverse, known)
    return solution if left else call.computed(_transposed, solution)


def _transposed(matrix: Tensor) -> Tensor:
    return matrix.transpose(-2, -1)


TRIANGULAR: dict[str, Handler] = {"linalg_solve_triangular": _solve_triangular}
"""The replacement of each operator, by its name."""
