"""Products A B that the figures after SparTA measure: A is full, B is sparse, both are N x N, and i is in blocks of 32."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from frame import Options
from store import complete

if TYPE_CHECKING:
    from fuseflow.einsum.nodes import Program
    from fuseflow.plan.block_costs import BlockWeights
    from fuseflow.tensors import Tensor


def key_of(*point: object) -> str:
    return "/".join(map(str, point))


def complete_points(
    store: str, points: Iterable[tuple[Any, ...]], measure: Callable[..., Mapping[str, Any]], options: Options
) -> None:
    """Measure the points that have no row, and add one line when each is done."""
    by_key = {key_of(*point): point for point in points}
    complete(store, by_key, lambda key: measure(*by_key[key]), options.only)


def product_text(left: str, left_format: str, right: str, right_format: str, size: int) -> str:
    inputs = f"tensor {left}[{size}, {size}] {left_format}\ntensor {right}[{size}, {size}] {right_format}"
    return f"{inputs}\nY[i, j] = sum(k) {left}[i, k] * {right}[k, j]\noutput Y"


def operands(mask: Any) -> tuple[Any, Any]:
    """A, and B with numbers where the mask is true."""
    import numpy as np

    values = np.random.default_rng(0).standard_normal(mask.shape).astype(np.float32)
    return np.random.default_rng(1).standard_normal(mask.shape).astype(np.float32), np.where(mask, values, 0)


def scattered(size: int, share: float) -> Any:
    """The mask of an operand whose entries stand anywhere."""
    import numpy as np

    return np.random.default_rng(0).random((size, size)) < share


def planned(machine: str, size: int, arrays: Sequence[Any], forms: Iterable[str]) -> tuple[Program, dict[str, Any]]:
    """The product with B in parts of these forms, which are weighed on the machine, and its arrays."""
    from fuseflow.einsum.parse import parse
    from fuseflow.plan.partition import Form, PlannedPart
    from fuseflow.plan.plan import Plan
    from fuseflow.tensors.array_files import pack_declared

    program = parse(product_text("A", "dense block 32x1", "B", "csr", size))
    given: dict[str, Tensor] = {t.name: pack_declared(array, t) for t, array in zip(program.inputs, arrays, strict=True)}
    parts = tuple(PlannedPart(Form.parse(form)) for form in forms)
    divided, tensors = Plan((("B", parts),)).weighed(_weights().on(machine)).apply(program, given)
    return divided, {name: tensor.to_dense() for name, tensor in tensors.items()}


def cycles(machine: str, program: Program, arrays: Mapping[str, Any], lanes: int = 1) -> int:
    """The cycles of a program, whose outputs are compared with those of the interpreter. Lanes split i."""
    import fuseflow as ff

    schedule = ff.Schedule.fuse("full").par(i=lanes).lower(writers="once") if lanes > 1 else None
    result = ff.compile(program, tensors=arrays, schedule=schedule, machine=machine).run()
    assert result.check is not None and result.check.passed, program
    return result.cycles


@cache
def _weights() -> BlockWeights[str]:
    from fuseflow.plan.block_costs import BlockWeights

    return BlockWeights(cycles)
