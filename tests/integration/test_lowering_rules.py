"""Programs that a wrong compiler gets wrong: each stands for a rule of lowering, in every order and at several densities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError
from fuseflow.fusion import fuse
from fuseflow.fusion.order_candidates import candidate_orders
from fuseflow.fusion.region import verify_region
from fuseflow.fusion.region_program import as_program
from fuseflow.samml.graph import Graph
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine, simulate
from fuseflow.table import build_table, emit
from fuseflow.tensors import Tensor, from_coordinates

TRAPS = {
    "one payload, two branches, hidden by a mask": """
        tensor x[5] csf f64
        tensor q[5] csf f64
        tensor M[5] csf f64
        Y[i] = where(M[i] == 0, -inf, x[i] * q[i] + x[i])
        output Y
    """,
    "two branches that hide the payload from each other": """
        tensor x[5] csf f64
        tensor q[5] csf f64
        tensor r[5] csf f64
        Y[i] = x[i] * q[i] + x[i] * r[i]
        output Y
    """,
    "an absent maximum is -inf, not 0, also where it comes out of an accumulator": """
        tensor D[4, 3] f64
        tensor M[4, 3] (compressed, compressed) order (1, 0) f64
        tensor a[4] csf f64
        S[i, j] = where(M[i, j] == 0, -inf, D[i, j])
        m[i] = max(j) S[i, j]
        Y[i] = max(m[i], a[i])
        output Y
    """,
    "a producer reduced outside a loop that it lacks": """
        tensor A[4, 3] csr f64
        tensor X[3, 5] csc f64
        tensor W[5, 2] f64
        T[i, j] = sum(k) X[i, k] * W[k, j]
        Y[i, j] = sum(k) A[i, k] * T[k, j]
        output Y
    """,
    "an absent maximum is -inf, not 0": """
        tensor D[4, 3] f64
        tensor M[4, 3] csf f64
        tensor a[4] csf f64
        S[i, j] = where(M[i, j] == 0, -inf, D[i, j])
        m[i] = max(j) S[i, j]
        Y[i] = max(m[i], a[i])
        output Y
    """,
    "a dense result holds its implicit value where nothing is written": """
        tensor D[4, 3] f64
        tensor M[4, 3] (compressed, compressed) order (1, 0) f64
        tensor m[4] dense f64 fill -inf
        S[i, j] = where(M[i, j] == 0, -inf, D[i, j])
        m[i] = max(j) S[i, j]
        output m
    """,
    "a product joined at an outer level": """
        tensor A[4, 3] csc f64
        tensor X[3, 5] csr f64
        tensor B[4, 5] csf f64
        T[i, j] = sum(k) A[i, k] * X[k, j]
        Y[i, j] = T[i, j] + B[i, j]
        output Y
    """,
    "an absent entry counts in a maximum": """
        tensor A[4, 5] csf f64
        tensor b[4] csf f64
        m[i] = max(j) A[i, j]
        Y[i] = m[i] * b[i]
        output Y
    """,
    "an absent entry counts after exp": """
        tensor A[4, 5] csr f64
        s[i] = sum(j) exp(A[i, j])
        Y[i] = log(s[i])
        output Y
    """,
    "a reduction index that must not be captured": """
        tensor A[4, 4] f64
        s[i, j] = sum(k) A[i, k] * A[j, k]
        Y[i, j] = A[i, j] + s[i, j]
        output Y
    """,
    "an operand that is also a result": """
        tensor A[4, 3] csf f64
        tensor X[3, 5] csf f64
        T[i, j] = sum(k) A[i, k] * X[k, j]
        s[i] = sum(j) T[i, j]
        Y[i, j] = T[i, j] / (s[i] * s[i] + 1)
        output T
        output Y
    """,
    "softmax over rows": """
        tensor A[4, 3] csf f64
        tensor X[3, 5] csf f64
        T[i, j] = sum(k) A[i, k] * X[k, j]
        m[i] = max(j) T[i, j]
        E[i, j] = exp(T[i, j] - m[i])
        Y[i, j] = E[i, j] / (sum(k) E[i, k])
        output Y
    """,
    "softmax over columns of a dense matrix": """
        tensor A[4, 3] f64
        m[j] = max(i) A[i, j]
        E[i, j] = exp(A[i, j] - m[j])
        Y[i, j] = E[i, j] / (sum(k) E[k, j])
        output Y
    """,
    "layer norm": """
        tensor X[4, 3] csf f64
        u[i] = (sum(j) X[i, j]) / 3
        z[i, j] = X[i, j] - u[i]
        v[i] = sum(j) z[i, j] * z[i, j]
        Y[i, j] = z[i, j] * rsqrt(v[i] / 3 + 0.1)
        output Y
    """,
    "a bias over rows that are not there": """
        tensor A[4, 3] csf f64
        tensor X[3, 5] csf f64
        tensor b[5] f64
        T[i, j] = sum(k) A[i, k] * X[k, j]
        Y[i, j] = relu(T[i, j] + b[j])
        output Y
    """,
    "a diamond": """
        tensor A[4, 3] csf f64
        tensor X[3, 5] csf f64
        tensor B[4, 5] csf f64
        T[i, j] = sum(k) A[i, k] * X[k, j]
        P[i, j] = relu(T[i, j])
        Q[i, j] = T[i, j] * B[i, j]
        Y[i, j] = P[i, j] - Q[i, j]
        output Y
    """,
    "powers of one matrix": """
        tensor A[4, 4] csr f64
        tensor X[4, 5] csf f64
        T[i, j] = sum(k) A[i, k] * X[k, j]
        Y[i, j] = sum(k) A[i, k] * T[k, j]
        output Y
    """,
    "three factors": """
        tensor B[3, 4, 2] csf f64
        tensor C[4, 5] csf f64
        tensor D[2, 5] csf f64
        Y[i, j] = sum(k, l) B[i, k, l] * C[k, j] * D[l, j]
        output Y
    """,
    "zero divided by zero": """
        tensor A[4, 5] csf f64
        tensor B[4, 5] csf f64
        Y[i, j] = A[i, j] / B[i, j]
        output Y
    """,
    "columns summed, then broadcast over them": """
        tensor A[4, 5] f64
        s[j] = sum(i) A[i, j]
        Y[i, j] = A[i, j] - s[j]
        output Y
    """,
    "a scalar": """
        tensor A[4, 5] csr f64
        tensor B[4, 5] coo f64
        s[] = sum(i, j) A[i, j] * B[i, j]
        Y[i, j] = A[i, j] * s[]
        output Y
    """,
    "coordinates of COO repeat": """
        tensor A[4, 5] coo f64
        tensor B[4, 5] csf f64
        tensor C[4] csf f64
        Y[i, j] = (A[i, j] + B[i, j]) * C[i]
        output Y
    """,
    "a reduction merged with the index of one result, then of another": """
        tensor A[3, 4] csf f64
        tensor b[4] csf f64
        T[i, k] = b[k] * (sum(j) A[i, j] * b[j])
        U[k] = b[k]
        output T
        output U
    """,
    "one reduction twice in a body": """
        tensor A[3, 4] csf f64
        tensor b[4] csf f64
        Y[i] = sum(j) b[j] / (1 + (sum(k) A[i, k] * b[k]) * (sum(k) A[i, k] * b[k]))
        output Y
    """,
    "two different reductions in one body": """
        tensor A[3, 4] csf f64
        tensor B[3, 4, 2] csf f64
        tensor c[4] csf f64
        Y[i, j] = c[j] * (sum(k) A[i, k] * c[k]) + c[j] * (sum(k, l) B[i, k, l] * c[k])
        output Y
    """,
    "a reduction spread along an index that it lacks": """
        tensor A[4, 3] csr f64
        tensor X[3, 5] csr f64
        tensor Y[4, 2, 5] f64
        tensor Z[3, 4] csr f64
        Y[i, l, j] = sum(k) A[i, k] * X[k, j]
        Z[k, i] = sum(j) A[i, j]
        output Y
        output Z
    """,
    "spread along an index, reduced over it again, and a result with the same values": """
        tensor A[4, 3] csf f64
        tensor T[4, 2] csr f64
        tensor Z[3] f64
        T[i, l] = sum(j) A[i, j]
        Y[i] = sum(l) T[i, l] * T[i, l]
        s[] = sum(i, l) T[i, l]
        Z[j] = s[]
        output Y
        output s
        output Z
    """,
    "a dense level below a row that is not there": """
        tensor A[4, 3] (compressed, dense) f64
        tensor B[4, 3] csf f64
        Y[i, j] = A[i, j] + B[i, j]
        output Y
    """,
    "rows where the left operand is stored, written above compressed columns": """
        tensor A[4, 5] csf f64 fill -inf
        tensor B[4, 5] csf f64
        tensor Y[4, 5] csr f64
        Y[i, j] = A[i, j] - B[i, j]
        output Y
    """,
    "a product of nothing is 1 where it is summed": """
        tensor A[4, 3, 5] csf f64 fill 1
        P[i, j] = prod(k) A[i, k, j]
        Y[i] = sum(j) P[i, j]
        output Y
    """,
    "a full row above compressed columns": """
        tensor A[4, 3] csc f64
        tensor X[3, 5] csr f64
        tensor Y[4, 5] csr f64
        Y[i, j] = sum(k) A[i, k] * X[k, j]
        output Y
    """,
}


INPUTS = ((0, 0.0), (1, 0.3), (3, 0.5), (5, 0.7), (7, 1.0))
"""Seeds and densities of inputs. With these, the programs show as many planted faults as with three more."""


def random_inputs(program: Program, density: float, seed: int) -> dict[str, Tensor]:
    """Nonzero numbers of both signs; at densities below 1 the first or the last row is empty."""
    rng = np.random.default_rng(seed)
    found = {}
    for t in program.inputs:
        stored = rng.random(t.shape) < density
        if density < 1 and t.shape[0] > 1:
            stored[rng.choice([0, -1])] = False
        values = rng.choice([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], t.shape)[stored]
        assert t.format is not None
        found[t.name] = from_coordinates(t.shape, np.array(np.nonzero(stored)), values, t.format, t.fill)
    return found


@pytest.mark.parametrize("name", TRAPS)
def test_every_order_at_every_density(name: str):
    program, machine = infer(parse(TRAPS[name])), load_machine("ideal")
    stored = {t.name: t for t in program.inputs}
    inputs = [random_inputs(program, density, seed) for seed, density in INPUTS]
    dense = [{n: t.to_dense() for n, t in tensors.items()} for tensors in inputs]
    wanted = [evaluate(program, arrays) for arrays in dense]
    ran = list[tuple[Graph, Program]]()
    for merge in ("early", "late", "never"):
        region = fuse(program, "trap", [e.name for e in program.einsums], program.outputs, stored, merge=merge)
        verify_region(region)
        for order in candidate_orders(region.constraints, region.indices, 8):
            ordered = replace(region, order=order)
            verify_region(ordered)
            try:
                graph = emit(build_table(ordered))
            except FusionError:
                continue  # an enclosed loop: another order exists
            verify(graph)
            fused = as_program(ordered)
            if (graph, fused) in ran:
                continue  # views that are merged early are merged late, too
            ran.append((graph, fused))
            for tensors, arrays, want in zip(inputs, dense, wanted, strict=True):
                got = simulate(graph, tensors, machine, check=True).outputs
                meant = evaluate(fused, arrays)
                for output in program.outputs:
                    np.testing.assert_allclose(meant[output], want[output], rtol=1e-9, atol=1e-12, err_msg=f"{order}")
                    np.testing.assert_allclose(got[output].to_dense(), want[output], rtol=1e-9, atol=1e-12, err_msg=f"{order}")
    assert ran
