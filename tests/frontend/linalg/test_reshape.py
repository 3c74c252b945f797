"""Reshapes as Einsums that split and merge dimensions: they compute NumPy's reshape."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Program, Split, TensorType
from fuseflow.frontend.linalg.emitter import EinsumEmitter, tensor_value
from fuseflow.frontend.linalg.locations import Origin

groups = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=3)


@given(groups, st.booleans())
def test_einsums_compute_reshape(parts: list[list[int]], expand: bool) -> None:
    longer = tuple(size for part in parts for size in part)
    shorter = tuple(int(np.prod(part)) for part in parts)
    at = np.cumsum([0, *(len(part) for part in parts)])
    reassociation = [list(range(a, b)) for a, b in pairwise(at)]
    source, result = (shorter, longer) if expand else (longer, shorter)
    array = np.arange(float(np.prod(source))).reshape([size for size in source if size != 1])
    emitter = EinsumEmitter()
    name = emitter.declare(TensorType("x", array.shape))
    value = emitter.reshape(tensor_value(name, source), result, reassociation, TensorType("", ()), Origin())
    assert value.shape == result
    wanted = array.reshape([size for size in result if size != 1])
    einsums = emitter.einsums
    if einsums:
        program = Program(tuple(emitter.declared.values()), tuple(einsums), (einsums[-1].name,))
        assert (evaluate(program, {name: array})[einsums[-1].name] == wanted).all()
    assert len(einsums) == abs(wanted.ndim - array.ndim)
    for einsum in einsums:
        (split,) = (i for i in (*einsum.indices, *einsum.accesses[0].indices) if isinstance(i, Split))
        assert split.size > 1
