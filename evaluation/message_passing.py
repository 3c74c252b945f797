"""Convolutions of PyTorch Geometric on Cora, given an `edge_index` or the same graph as a sparse matrix: cycles, and what is written.

    python evaluation/message_passing.py --data-dir DIR           # the table
    python evaluation/message_passing.py --data-dir DIR --write   # the table in docs/measured/models.md

Features are stored `csr`. Fails if a result is not that of PyTorch, or if the two graphs differ in a cycle or a byte.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from claims import between_marks, markdown
from real_model_list import cora
from store import ROOT

sys.path.insert(0, str(ROOT))

import torch
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.einsum.verify import shapes

HIDDEN, HEADS = 8, 8


def convolutions() -> dict[str, Callable[[int], nn.Module]]:
    """The convolutions, each of a number of features to `HIDDEN` of them, for each head where there are heads."""
    import torch_geometric.nn as pyg

    return {
        "GCNConv": lambda features: pyg.GCNConv(features, HIDDEN, normalize=False),
        "SAGEConv, mean": lambda features: pyg.SAGEConv(features, HIDDEN),
        "GINConv": lambda features: pyg.GINConv(nn.Linear(features, HIDDEN)),
        f"GATConv, {HEADS} heads": lambda features: pyg.GATConv(features, HIDDEN, heads=HEADS),
    }


@dataclass(frozen=True, slots=True)
class Run:
    """What a run of a convolution showed: the bytes that were moved, the bytes of values of the largest result that was written, and how
    many results have two dimensions of nodes."""

    regions: int
    cycles: int
    moved: int
    largest: int
    of_edges: int
    error: float


def graphs(name: str, edges: Tensor, nodes: int) -> tuple[tuple[Tensor, ...], tuple[Tensor]]:
    """The arguments of a convolution that are its graph: edges, and a matrix. `GCNConv` gets normalized weights, as the numbers of a matrix
    are data that it would normalize in the program."""
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    weighted = gcn_norm(edges, None, nodes) if name == "GCNConv" else (edges,)
    source, target = weighted[0]
    numbers = weighted[1] if len(weighted) > 1 else torch.ones(edges.shape[1])
    return weighted, (torch.zeros(nodes, nodes).index_put((target, source), numbers).to_sparse_csr(),)


def run(model: nn.Module, x: Tensor, graph: tuple[Tensor, ...], granularity: str) -> Run:
    compiled = ff.compile(model, (x, *graph), formats={"x": "csr"}, schedule=ff.Schedule.fuse(granularity))
    result = compiled.run()
    if result.check is None or not result.check.passed:
        raise click.ClickException(f"a result is not that of PyTorch: {result.check}")
    totals: dict[str, Any] = result.stats["bytes"]["by_tensor"]
    written = {name: arrays["val"]["write"] for name, arrays in totals.items() if arrays.get("val", {}).get("write")}
    moved = sum(bytes for arrays in totals.values() for ways in arrays.values() for bytes in ways.values())
    sizes = shapes(compiled.program)
    of_edges = sum(sizes[name].count(x.shape[0]) > 1 for name in written)
    return Run(len(compiled.regions), result.cycles, moved, max(written.values()), of_edges, result.check.max_rel_error)


def table(x: Tensor, edges: Tensor) -> str:
    """Markdown: a line for each convolution, unfused and fused."""
    heads = (
        "convolution", "fuse", "regions", "cycles, `edge_index`", "cycles, matrix", "bytes moved, `edge_index`", "bytes moved, matrix",
        "largest result, bytes", "results per edge", "error",
    )  # fmt: skip
    lines = []
    for name, build in convolutions().items():
        for granularity in ("none", "full"):
            torch.manual_seed(0)
            model = build(x.shape[1]).eval()
            ours, theirs = (run(model, x, graph, granularity) for graph in graphs(name, edges, x.shape[0]))
            if (ours.cycles, ours.moved) != (theirs.cycles, theirs.moved):
                raise click.ClickException(f"{name}, {granularity}: {ours} of an edge_index, {theirs} of a matrix")
            cycles, moved = (ours.cycles, theirs.cycles), (ours.moved, theirs.moved)
            numbers = (ours.regions, *cycles, *moved, ours.largest, ours.of_edges)
            lines.append([name, granularity, *(f"{number:,}" for number in numbers), f"{ours.error:.0e}"])
    return markdown(heads, lines, 2)


@click.command(help=__doc__.partition("\n")[0])
@click.option(
    "--data-dir", type=click.Path(path_type=Path, exists=True, file_okay=False), required=True, help="With files of Cora."
)
@click.option("--write", is_flag=True, help="Write the table into docs/measured/models.md.")
def main(data_dir: Path, write: bool) -> None:
    made = table(*cora(data_dir))
    if write:
        page = ROOT / "docs" / "measured" / "models.md"
        page.write_text(
            between_marks(page.read_text(encoding="utf-8"), "message passing", "message_passing", made), encoding="utf-8"
        )
    click.echo(made, nl=False)


if __name__ == "__main__":
    main()
