"""Data sets by name: `karate`, `cora:nodes=300`, `random:nodes=1000,degree=8,features=64`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fuseflow.errors import DataError, did_you_mean
from fuseflow.frontend.graphs import Graph, normalized
from fuseflow.frontend.karate import karate
from fuseflow.frontend.planetoid import NAMES, planetoid
from fuseflow.frontend.synthetic import random_graph

if TYPE_CHECKING:
    import torch

SPECS = ("karate", *NAMES, "random")


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """What a model file's `build(data)` receives: one graph, its tensors in PyTorch's CSR layout, f32."""

    name: str
    adjacency: torch.Tensor
    """[nodes, nodes]: D^-1/2 (A + I) D^-1/2 with self loops."""
    features: torch.Tensor
    """[nodes, features]: as distributed, not normalized by row."""
    labels: npt.NDArray[np.int64]
    classes: int
    nodes: int
    description: str


@dataclass(frozen=True, slots=True)
class _Options:
    """The `key=value` options of a spec, read with their types; what is left over is unknown."""

    spec: str
    given: dict[str, str]
    known: list[str] = field(default_factory=list)

    def integer(self, key: str, default: int, least: int) -> int:
        value = self.number(key, default, least)
        if value != int(value):
            raise DataError(f"data `{self.spec}`: `{key}` is a whole number, not {self.given[key]}")
        return int(value)

    def number(self, key: str, default: float, least: float, most: float = float("inf")) -> float:
        self.known.append(key)
        text = self.given.get(key, str(default))
        try:
            value = float(text)
        except ValueError:
            raise DataError(f"data `{self.spec}`: `{key}={text}` is not a number") from None
        if not least <= value <= most or value == float("inf"):
            upper = "" if most == float("inf") else f" and at most {most:g}"
            raise DataError(f"data `{self.spec}`: `{key}` is at least {least:g}{upper}, not {text}")
        return value

    def finish(self) -> None:
        for key in self.given:
            if key not in self.known:
                raise DataError(f"data `{self.spec}`: unknown option `{key}`", hint=did_you_mean(key, self.known))


def load_data(spec: str, data_dir: Path | None = None, seed: int = 0) -> Data:
    """Load the data set that `spec` names.

    `karate`, and `cora` or `citeseer` from the Planetoid raw files in `data_dir`, take `:nodes=N` for the subgraph of the first N nodes;
    `random` takes nodes, degree, features, density (of the features), classes and seed (default: `seed`). Raises `DataError`.
    """
    name, _, rest = spec.partition(":")
    if name not in SPECS:
        raise DataError(f"unknown data set `{name}`", hint=did_you_mean(name, SPECS))
    if data_dir is not None and name not in NAMES:
        raise DataError(f"data set `{name}` reads no files", hint="leave the data directory out")
    options = _Options(spec, _key_values(spec, rest))
    if name == "random":
        graph = _random(options, seed)
    else:
        nodes = options.integer("nodes", 0, 1) if "nodes" in options.given else None
        options.known.append("nodes")
        options.finish()
        graph = karate() if name == "karate" else planetoid(name, data_dir)
        graph = _first(graph, nodes, spec)
    return _data(spec, graph)


def _random(options: _Options, seed: int) -> Graph:
    arguments = {
        "nodes": options.integer("nodes", 100, 1),
        "degree": options.number("degree", 4, 0),
        "features": options.integer("features", 32, 1),
        "density": options.number("density", 0.1, 0, 1),
        "classes": options.integer("classes", 4, 1),
        "seed": options.integer("seed", seed, 0),
    }
    options.finish()
    if arguments["degree"] > arguments["nodes"] - 1:
        raise DataError(f"data `{options.spec}`: a degree of {arguments['degree']:g} needs more than {arguments['nodes']} nodes")
    return random_graph(**arguments)  # type: ignore[arg-type]


def _first(graph: Graph, nodes: int | None, spec: str) -> Graph:
    if nodes is None:
        return graph
    if nodes > graph.nodes:
        raise DataError(f"data `{spec}`: the graph has {graph.nodes} nodes", hint=f"ask for nodes={graph.nodes} or fewer")
    return graph.first(nodes)


def _key_values(spec: str, text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in text.split(",") if text else []:
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or key.strip() in pairs:
            raise DataError(
                f"data `{spec}`: cannot read the option `{part}`", hint="write NAME:key=value,key=value, each key once"
            )
        pairs[key.strip()] = value.strip()
    return pairs


def _data(spec: str, graph: Graph) -> Data:
    adjacency = normalized(graph.edges)
    description = (
        f"{graph.nodes} nodes, {graph.edges.nnz // 2} edges, {graph.features.shape[1]} features ({graph.features.nnz} nonzero), "
        f"{graph.classes} classes"
    )
    return Data(spec, _csr(adjacency), _csr(graph.features), graph.labels, graph.classes, graph.nodes, description)


def _csr(matrix: sparse.csr_array) -> torch.Tensor:
    import warnings

    import torch

    def index(array: Any) -> torch.Tensor:
        return torch.from_numpy(array.astype(np.int64))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "sparse CSR support is in beta state"
        return torch.sparse_csr_tensor(
            index(matrix.indptr),
            index(matrix.indices),
            torch.from_numpy(matrix.data),
            size=matrix.shape,
            dtype=torch.float32,
            check_invariants=False,
        )
