"""A product is computed in the statement that masks it, to the same values, and only where nothing else needs it."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.compiler import compile
from fuseflow.einsum.parse import parse
from fuseflow.einsum.sampling_products import sampled_products
from fuseflow.einsum.text import show_einsum
from fuseflow.schedule import Schedule
from fuseflow.tensors import Format, pack

INPUTS = "tensor P[4, 5] csr\ntensor A[4, 3]\ntensor B[5, 3]\n"
PRODUCT = "T[i, j] = sum(k) A[i, k] * B[j, k]\n"


def sampled(text: str) -> list[str]:
    return [show_einsum(einsum) for einsum in sampled_products(parse(INPUTS + text), ["P"]).einsums]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("G[i, j] = P[i, j] * T[i, j]", "G[i, j] = P[i, j] * (sum(k) A[i, k] * B[j, k])"),
        ("G[j, i] = P[i, j] * T[i, j]", "G[j, i] = P[i, j] * (sum(k) A[i, k] * B[j, k])"),
        ("G[i, k] = where(P[i, k], T[i, k], -inf)", "G[i, k] = where(P[i, k], (sum(j) A[i, j] * B[k, j]), -inf)"),
        ("S[j, i] = 2 * T[i, j]\nG[i, j] = P[i, j] * S[j, i]", "G[i, j] = P[i, j] * (2 * (sum(k) A[i, k] * B[j, k]))"),
        ("K[i, j] = keep(2 over j) P[i, j]\nG[i, j] = K[i, j] * T[i, j]", "G[i, j] = K[i, j] * (sum(k) A[i, k] * B[j, k])"),
    ],
)
def test_a_masked_product_is_sampled(text: str, expected: str) -> None:
    *others, last = sampled(f"{PRODUCT}{text}\noutput G")
    assert last.replace("(sum", "sum").replace(")", "") == expected.replace("(sum", "sum").replace(")", "")
    assert not any(other.startswith(("T[", "S[")) for other in others)


@pytest.mark.parametrize(
    "text",
    [
        "G[i, j] = P[i, j] + T[i, j]\noutput G",  # it is needed everywhere
        "G[i, j] = P[i, j] * T[i, j]\noutput G\noutput T",
        "G[i, j] = P[i, j] * T[i, j]\nH[i] = sum(j) T[i, j]\noutput G\noutput H",
        "G[i, j] = P[i, j] * T[i, j] * T[i, j]\noutput G",
        "G[i] = sum(j) P[i, j] * T[i, j]\noutput G",
    ],
)
def test_a_product_that_is_needed_elsewhere_stays(text: str) -> None:
    assert sampled(PRODUCT + text)[0] == PRODUCT.strip()


def test_a_sparse_tensor_that_is_no_mask_samples_nothing() -> None:
    program = parse(INPUTS + PRODUCT + "G[i, j] = P[i, j] * T[i, j]\noutput G")
    assert sampled_products(program, []) is program


def test_the_values_are_the_same_and_the_work_is_that_of_the_mask() -> None:
    draw = np.random.default_rng(0)
    arrays = {
        name: draw.standard_normal(shape).astype(np.float32) for name, shape in {"P": (4, 5), "A": (4, 3), "B": (5, 3)}.items()
    }
    arrays["P"] *= draw.random((4, 5)) < 0.3
    tensors = {name: pack(array, Format.parse("csr" if name == "P" else "dense", 2)) for name, array in arrays.items()}
    program = parse(INPUTS + PRODUCT + "G[i, j] = P[i, j] * T[i, j]\noutput G")
    flops = []
    for version in (program, sampled_products(program, ["P"])):
        result = compile(version, tensors=tensors, schedule=Schedule.fuse("none")).run()
        assert result.check.passed
        flops.append(result.stats["flops"])
    stored = np.count_nonzero(arrays["P"])
    assert flops[1] <= 7 * stored < flops[0]
