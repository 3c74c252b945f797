"""Processor seconds and memory of the analysis of programs, and of leaving out what is not needed.

    python tools/bench/attributes.py

A product of 512 x 768 with 768 x 3072; a GCN on a graph with the nodes and edges of Collab, whose adjacency is known; and the weights of 12
decoders of GPT-3 small with 90 % of their entries pruned. The last one is imported first, which is not counted.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import click
import numpy as np
from scipy import sparse

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.propagation import Analysis, analyse, propagate
from fuseflow.propagation.initial import attributes_of
from fuseflow.tensors import Format, Tensor, pack

ROOT = Path(__file__).resolve().parents[2]
RNG = np.random.default_rng(0)
NODES, EDGES = 235_868, 2_358_104


def product() -> tuple[Program, Mapping[str, Tensor], list[str]]:
    text = "tensor X[512, 768] csr\ntensor W[768, 3072] csr\nY[i, j] = sum(k) X[i, k] * W[k, j]\noutput Y"
    return parse(text), {"X": _pruned(512, 768), "W": _pruned(768, 3072)}, ["X", "W"]


def gcn() -> tuple[Program, Mapping[str, Tensor], list[str]]:
    places = RNG.integers(0, NODES, (2, EDGES))
    graph = sparse.coo_array((np.ones(EDGES, np.float32), tuple(places)), shape=(NODES, NODES)).tocsr()
    program = parse(f"""
        tensor A[{NODES}, {NODES}] csr
        tensor X[{NODES}, 128] dense
        tensor W1[128, 64] csr
        tensor b1[64] dense
        tensor W2[64, 3] csr
        T[i, j] = sum(k) X[i, k] * W1[k, j]
        U[i, j] = sum(k) A[i, k] * T[k, j]
        R[i, j] = relu(U[i, j] + b1[j])
        V[i, j] = sum(k) R[i, k] * W2[k, j]
        Y[i, j] = sum(k) A[i, k] * V[k, j]
        output Y""")
    tensors = {
        "A": pack(graph, Format.parse("csr", 2)),
        "X": pack(np.ones((NODES, 128), np.float32), Format.dense(2)),
        "W1": _pruned(128, 64),
        "b1": pack(np.ones(64, np.float32), Format.dense(1)),
        "W2": _pruned(64, 3),
    }
    return program, tensors, ["A", "W1", "W2"]


def gpt() -> tuple[Program, Mapping[str, Tensor], list[str]]:
    from fuseflow.frontend.model_spec import ModelSpec
    from fuseflow.frontend.sources import load
    from fuseflow.sparsity.spec import parse_sparsify

    spec = ModelSpec(ROOT / "models" / "gpt_bigbird.py", sparsity=parse_sparsify("h.*.weight=magnitude:0.9:csr"))
    source = load(spec)
    return source.program, source.tensors, list(source.constants)


def _pruned(rows: int, columns: int) -> Tensor:
    return pack((RNG.random((rows, columns)) < 0.1).astype(np.float32), Format.parse("csr", 2))


CASES: dict[str, Callable[[], tuple[Program, Mapping[str, Tensor], list[str]]]] = {"product": product, "gcn": gcn, "gpt": gpt}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([*CASES]))
def main(names: tuple[str, ...]) -> None:
    for name in names or CASES:
        program, tensors, fixed = CASES[name]()
        before, start = _megabytes(), time.process_time()
        analysis: Analysis = analyse(program, attributes_of(program, tensors, fixed))
        analysed = time.process_time()
        propagate(program, tensors, analysis)
        seconds = analysed - start, time.process_time() - analysed
        click.echo(f"{name}: analysis {seconds[0]:.2f} s, use {seconds[1]:.2f} s, {before} MB before, {_megabytes()} MB at most")


def _megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
