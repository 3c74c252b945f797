"""MLIR texts of the project's dialects for tests: one or more that together hold every operation, and MLIR's own tool as a witness."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import preloads
import programs
from samml_graphs import GRAPHS

from fuseflow.dialects import declaration
from fuseflow.einsum import mlir as einsum_mlir
from fuseflow.einsum.parse import parse
from fuseflow.lower.program import lower
from fuseflow.samml import mlir as samml_mlir
from fuseflow.samml.text import parse as parse_graph
from fuseflow.schedule import Schedule
from fuseflow.table import mlir as table_mlir

PROGRAM = """program every.construct
tensor layer1.weight[4, 8] csr f64 fill -inf
tensor 0.bias[8] (compressed) fill 1e-5
tensor B[4, 4, 8] (dense, compressed(nonunique), singleton) order (2, 0, 1) i32
tensor s[]
tensor untyped[4]
tensor blocked[4, 6] csr block 2x3
tensor inferred[4, 6] block 2x3
tensor H[2, 4, 4] dense f64
H[h, i, d] = layer1.weight[i, h*4 + d] - -1 * (2 - s) @layer1.attn
Y[i, h*4 + d] = -(max(j) (-H[h, i, d] * untyped[j])) / 2.5e-7
r = sum(i, k) max(layer1.weight[i, k], inf) + prod(i) untyped[i]
z[i, k] = blocked[i, k] + inferred[i, k]
q[h, i, d] = keep(1 of 2 over d) H[h, i, d]
output Y
output r
output z
output q
tensor z[4, 6] like blocked
"""


SELECTION = """tensor A[4, 6] csr
T[i, j] = keep(2 over j) A[i, j] * 2
Y[i] = sum(j) T[i, j]
output Y
"""

SHARED = """graph shared
tensor V[4]  (compressed) like W
tensor W[4]  (compressed)
tensor Y[4]  (compressed) like W
output Y
root = root()
W_i = scan(root) W.0 sequential
V_val = load(W_i.ref) V sequential
write_Y_val = write(V_val) Y.vals
"""

LINKED = """graph linked
tensor V[4]  (compressed)
tensor Y[4]  (compressed) like V
output Y
root = root()
V_i = scan(root) V.0 sequential
far = link(V_i.ref)
V_val = load(far) V sequential
write_Y_val = write(V_val) Y.vals
hops far[0] 2
turn V_val 1 of 2
node_hops V_val inner=0 loop=0 port=3
"""


READERS: dict[str, Callable[[str, str], object]] = {
    "einsum": einsum_mlir.from_mlir,
    "table": table_mlir.from_mlir,
    "samml": samml_mlir.from_mlir,
}


@cache
def texts(dialect: str) -> tuple[str, ...]:
    """Modules of a dialect that read back, and hold each of its operations at least once."""
    match dialect:
        case "einsum":
            return (einsum_mlir.to_mlir(parse(PROGRAM, "every.ein")),)
        case "table":
            (selection,) = lower(parse(SELECTION), Schedule.fuse("full"), {})[1]
            return table_mlir.to_mlir(selection.table), table_mlir.to_mlir(programs.table("masked_softmax", "i,j"))
        case _:
            graphs = list(GRAPHS.values())
            first = graphs[0]
            other = next(graph for graph in graphs if preloads.preloadable(graph))
            names_ahead = preloads.preloadable(other)
            inputs = tuple(replace(tensor, resident=tensor.name in first.inputs) for tensor in first.tensors)
            buffered = tuple(replace(tensor, buffer=64 * (tensor.name in first.inputs)) for tensor in first.tensors)
            preloaded = tuple(replace(tensor, preload=2 * (tensor.name in names_ahead)) for tensor in other.tensors)
            placed = tuple(replace(tensor, scratchpad="moved") for tensor in first.tensors)
            pairs = ((first, inputs), (first, buffered), (first, placed), (other, preloaded))
            variants = (replace(graph, tensors=tensors) for graph, tensors in pairs)
            return tuple(samml_mlir.to_mlir(graph) for graph in (parse_graph(SHARED), parse_graph(LINKED), *variants, *graphs))


def loaded(dialects: Sequence[str], text: str, directory: Path) -> str:
    """What MLIR's own tool prints of a module, given the declarations of these dialects. Fails if it refuses the module."""
    declarations, module = directory / "declarations.mlir", directory / "module.mlir"
    declarations.write_text("".join(declaration(d).read_text(encoding="utf-8") for d in dialects), encoding="utf-8")
    module.write_text(text, encoding="utf-8")
    tool = Path(sys.executable).with_name("torch-mlir-opt")
    run = subprocess.run([tool, f"--irdl-file={declarations}", module], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout
