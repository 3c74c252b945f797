from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import ATTENTION

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Access, Einsum, Program, Split, accesses, index_names
from fuseflow.einsum.parse import parse
from fuseflow.einsum.reshapes import eliminate_reshapes, regroupings
from fuseflow.einsum.text import show
from fuseflow.einsum.verify import verify


def statements(text: str, **options) -> list[str]:
    lines = show(eliminate_reshapes(parse(text), **options).program).splitlines()
    return [" ".join(line.split()) for line in lines if " = " in line]


def is_view(einsum: Einsum) -> bool:
    """Whether an Einsum only sees a tensor in other parts: its dimensions stay in order, and each is taken apart or put together."""
    body = einsum.body
    if not isinstance(body, Access) or not any(isinstance(i, Split) for i in (*einsum.indices, *body.indices)):
        return False
    return index_names(einsum.indices) == body.names


def agree(program: Program) -> None:
    """Before and after, the outputs are the same; only views have splits."""
    refined = eliminate_reshapes(program)
    verify(refined.program)
    assert refined.program.inputs == program.inputs and refined.program.outputs == program.outputs
    assert parse(show(refined.program)) == refined.program
    for einsum in refined.program.einsums:
        split = any(isinstance(i, Split) for a in (einsum, *accesses(einsum.body)) for i in a.indices)
        assert split == (einsum.name in refined.views) == is_view(einsum)
    rng = np.random.default_rng(0)
    arrays = {t.name: rng.choice([t.fill, -1.0, 0.5, 2.0], size=t.shape) for t in program.inputs}
    before, after = evaluate(program, arrays), evaluate(refined.program, arrays)
    for name in program.outputs:
        np.testing.assert_allclose(after[name], before[name], rtol=1e-9, atol=1e-9)


def test_a_head_split_is_carried_to_all_that_shares_the_dimension() -> None:
    assert statements(ATTENTION) == [
        "W.split[i, h, d] = W[i, h*3 + d]",
        "P[i, h, d] = sum(k) X[i, k] * W.split[k, h, d]",
        "S[h, i, j] = M[i, j] * (sum(d) P[i, h, d] * P[j, h, d])",
        "O[i, h, d] = sum(j) S[h, i, j] * P[j, h, d]",
        "V.split[h, d, i] = V[h*3 + d, i]",
        "Y[i, k] = sum(h, d) O[i, h, d] * V.split[h, d, k]",
    ]
    refined = eliminate_reshapes(parse(ATTENTION))
    assert refined.aliases == {"Q": "P", "C": "O"} and not refined.barriers
    assert infer(refined.program).declared["S"].format.short() == "(dense, dense, compressed)"


def test_a_program_without_reshapes_is_itself() -> None:
    program = parse("tensor A[3]\nB[i] = A[i] * 2\noutput B")
    assert eliminate_reshapes(program).program is program


def test_two_splits_of_one_dimension_have_common_parts() -> None:
    text = """
    tensor X[2, 24]
    A[i, h, d] = X[i, h*4 + d]
    B[i, h, d] = X[i, h*8 + d]
    a[i] = sum(h, d) A[i, h, d]
    b[i] = sum(h, d) B[i, h, d]
    output a, b
    """
    assert statements(text)[-2:] == [
        "a[i] = sum(j, k, d) X.split_2[i, j, k, d]",
        "b[i] = sum(h, j, k) X.split_2[i, h, j, k]",
    ]


def test_splits_without_common_parts_are_views() -> None:
    text = """
    tensor X[2, 24]
    Y[i, j] = relu(X[i, j])
    A[i, h, d] = Y[i, h*4 + d]
    B[i, h, d] = Y[i, h*6 + d]
    a[i] = sum(h, d) A[i, h, d]
    b[i] = sum(h, d) B[i, h, d]
    output a, b
    """
    refined = eliminate_reshapes(parse(text))
    assert refined.barriers == {"B"}
    agree(parse(text))


def test_outputs_and_inputs_keep_their_shapes() -> None:
    text = "tensor X[2, 6]\nY[i, j] = relu(X[i, j])\nZ[h, i, d] = Y[i, h*3 + d]\noutput Y, Z"
    assert statements(text) == [
        "X.split[i, h, d] = X[i, h*3 + d]",
        "Y.split[i, h, d] = relu(X.split[i, h, d])",
        "Z[h, i, d] = Y.split[i, h, d]",
        "Y[i, h*3 + d] = Y.split[i, h, d]",
    ]
    assert eliminate_reshapes(parse(text)).statements == {"Y": "Y.split"}


@pytest.mark.parametrize("format", ["csr", "(compressed, dense) order (1, 0)"])
def test_a_compressed_level_stays_whole(format) -> None:
    text = f"tensor X[2, 6] {format}\nY[i, j] = X[i, j] * 2\nZ[h, i, d] = Y[i, h*3 + d]\nA[h] = sum(i, d) Z[h, i, d]\noutput A"
    assert eliminate_reshapes(parse(text)).barriers == {"Z"}
    agree(parse(text))


def test_a_dense_level_of_a_sparse_tensor_comes_apart() -> None:
    text = "tensor X[6, 2] csr\nY[j, i] = X[j, i] * 2\nZ[h, i, d] = Y[h*3 + d, i]\nA[h] = sum(i, d) Z[h, i, d]\noutput A"
    refined = eliminate_reshapes(parse(text))
    assert not refined.barriers and refined.aliases == {"Z": "Y"}


def test_what_is_kept_stays_whole() -> None:
    assert "P[i, e] = sum(k) X[i, k] * W[k, e]" in statements(ATTENTION, kept=["P"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(data=st.data())
def test_random_programs_agree(programs, data) -> None:
    agree(data.draw(programs))


@st.composite
def reshapings(draw) -> Program:
    """A tensor reshaped again and again, what it becomes multiplied with others of these shapes."""
    lines, shapes, size = [], {}, draw(st.sampled_from([12, 16, 24, 36]))
    names = "abcdefgh"
    for n in range(draw(st.integers(1, 3))):
        lines.append(f"tensor X{n}[{size}]")
        shapes[f"X{n}"] = (size,)
    for n in range(draw(st.integers(1, 7))):
        source = draw(st.sampled_from(list(shapes)))
        shape = shapes[source]
        cuts = [(d, k) for d, extent in enumerate(shape) for k in range(2, extent) if extent % k == 0]
        left, right, after = list(names[: len(shape)]), list(names[: len(shape)]), list(shape)
        if cuts and (len(shape) == 1 or draw(st.booleans())):
            at, inner = draw(st.sampled_from(cuts))
            left[at : at + 1], right[at] = [left[at], "z"], f"{left[at]}*{inner} + z"
            after[at : at + 1] = [shape[at] // inner, inner]
        elif len(shape) > 1:
            at = draw(st.integers(0, len(shape) - 2))
            left[at : at + 2] = [f"{left[at]}*{shape[at + 1]} + {left[at + 1]}"]
            after[at : at + 2] = [shape[at] * shape[at + 1]]
        if draw(st.booleans()):
            swapped = draw(st.permutations(range(len(after))))
            left, after = [left[p] for p in swapped], [after[p] for p in swapped]
        name, body = f"T{n}", f"{source}[{', '.join(right)}]"
        others = [o for o, s in shapes.items() if s == tuple(after) and not any("*" in v for v in left)]
        if others and draw(st.booleans()):
            body += f" * {draw(st.sampled_from(others))}[{', '.join(left)}]"
        lines.append(f"{name}[{', '.join(left)}] = {body}")
        shapes[name] = tuple(after)
    intermediates = [name for name in shapes if name.startswith("T")]
    outputs = draw(st.lists(st.sampled_from(intermediates), unique=True, min_size=1))
    return parse("\n".join([*lines, f"output {', '.join(outputs)}"]))


@settings(max_examples=150, deadline=None)
@given(reshapings())
def test_random_reshapes_agree(program) -> None:
    agree(program)


@settings(max_examples=150, deadline=None)
@given(reshapings())
def test_regroupings_are_known_before_a_program_is_rewritten(program) -> None:
    assert regroupings(program) == eliminate_reshapes(program).regroupings
