"""Data by name, such as `karate`, `cora:nodes=300`, `synthetic:collab`, `images:imagenet`, `bigbird:block=64`, and `graph.mtx`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fuseflow.errors import DataError, did_you_mean
from fuseflow.frontend.datasets import citation_full, ogb, planetoid
from fuseflow.frontend.datasets.built_in import (
    DEFAULT_COUNT,
    DEFAULT_DENSITY,
    IMAGE_SIDES,
    bigbird_mask,
    karate_club,
    random_graph,
    sample_images,
)
from fuseflow.frontend.datasets.files import RawFiles, find_folder
from fuseflow.frontend.datasets.graph_data import GraphData, Matrix, normalize_adjacency, torch_matrix
from fuseflow.frontend.datasets.graph_files import read_graph_file, require_graph_file
from fuseflow.frontend.datasets.spec_options import ADJACENCIES, SpecOptions, names_file, split_spec
from fuseflow.frontend.datasets.standins import PUBLISHED_COUNTS, generate_standin

if TYPE_CHECKING:
    import torch


FILE_READERS: dict[str, Callable[[str, Path | None], GraphData]] = {
    **dict.fromkeys(planetoid.TITLES, planetoid.read_planetoid),
    **dict.fromkeys(citation_full.TITLES, citation_full.read_citation),
    **dict.fromkeys(ogb.TITLES, ogb.read_ogb),
}
"""The readers of graphs that are read from files, by the name of the graph."""

VARIANTS = {"synthetic": tuple(PUBLISHED_COUNTS), "images": tuple(IMAGE_SIDES)}
"""The variants of data sets that a spec names as `NAME:variant`."""

DATASET_NAMES = ("karate", *FILE_READERS, "random", "synthetic", "images", "bigbird")
"""The names of all data sets."""


_ATTRIBUTES = ("adjacency", "raw", "features", "labels", "nodes", "classes")
"""The attributes that a `build(data)` usually takes, as messages list them."""
_ELSEWHERE = {
    "x": "features",
    "feat": "features",
    "y": "labels",
    "label": "labels",
    "adj": "adjacency",
    "adj_t": "adjacency",
    "edge_index": "raw.to_sparse_coo().indices()",
    "edge_weight": "raw.values()",
    "edge_attr": "raw.values()",
    "num_nodes": "nodes",
    "num_classes": "classes",
    "num_features": "features.shape[1]",
    "num_node_features": "features.shape[1]",
}
"""Attributes of the data of PyTorch Geometric, DGL and OGB, with the expressions for them here."""


class MissingAttributeError(DataError, AttributeError):
    """A model asks its data for an attribute that they do not have. `hasattr` and a default of `getattr` work as always."""


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """The argument of the `build(data)` of a model file: rows of features and, except for images, the connections between them.

    `adjacency`, `raw` and `features` are PyTorch tensors. `matrix()`, `edges` and `inputs` are the same numbers as scipy or NumPy
    arrays, which do not load PyTorch.
    """

    name: str
    """The spec that loads the same data again."""
    inputs: Matrix
    """The features [nodes, features] as they are distributed, not normalized by row. They are a scipy array, or a NumPy array if the
    data set is dense."""
    labels: npt.NDArray[np.int64]
    classes: int
    description: str
    connections: sparse.csr_array | None = None
    adj: str | None = None
    """The adjacency that the user asks for, `gcn` or `raw`, or None if the model chooses."""
    notice: str = ""
    """A notice that is shown beside every result, such as that the data are generated and not the published ones."""
    training: npt.NDArray[np.int64] | None = None
    """The rows of the training split, or None for data without one: all rows are trained then."""

    def __getattr__(self, name: str) -> NoReturn:
        """Raise an error for an attribute that the data lack. It names the attribute to use instead."""
        known = _ELSEWHERE.get(name)
        hint = f"it is `data.{known}` here" if known else did_you_mean(name, (*_ATTRIBUTES, "matrix", "edges", "inputs"))
        raise MissingAttributeError(f"`data` has no `{name}`", hint=hint, notes=(self.interface,))

    @property
    def interface(self) -> str:
        """The attributes of these data that a `build(data)` can take, with their shapes."""
        matrices = ("adjacency", "raw") if self.connections is not None else ()
        layout = "in CSR" if sparse.issparse(self.inputs) else "dense"
        shapes = dict.fromkeys(matrices, f"[{self.nodes}, {self.nodes}] in CSR")
        shapes |= {"features": f"[{self.nodes}, {self.inputs.shape[1]}] {layout}", "labels": f"[{self.nodes}]"}
        shapes |= {"nodes": str(self.nodes), "classes": str(self.classes)}
        listed = ", ".join(f"`{name}` {shape}" for name, shape in shapes.items())
        return f"data `{self.name}` have {listed}"

    @property
    def target(self) -> torch.Tensor:
        """The labels with which a model is trained: those of the training split, and -100, which losses ignore, for all other rows."""
        import torch

        labels = torch.as_tensor(self.labels)
        if self.training is None:
            return labels
        rows = torch.as_tensor(self.training)
        return torch.full((self.nodes,), -100).index_put((rows,), labels[rows])

    @property
    def nodes(self) -> int:
        """The number of rows of the features, which are nodes, images, or positions of a sequence."""
        return int(self.inputs.shape[0])

    @property
    def edges(self) -> sparse.csr_array:
        """The adjacency [nodes, nodes] without self loops, or the attention mask of a sequence. Its values are 0 and 1, unless the user
        asks for weights."""
        if self.connections is None:
            raise DataError(f"data `{self.name}` are no graph, and this model needs one", hint="take one: `--data karate`")
        return self.connections

    def matrix(self, default: str = "gcn") -> sparse.csr_array:
        """Return the adjacency that the user asks for, or else `default`. `raw` is the edges, and `gcn` is D^-1/2 (A + I) D^-1/2. Raise
        `DataError` where weights leave that undefined."""
        if (self.adj or default) == "raw":
            return self.edges
        degrees = 1 + self.edges.sum(axis=1)
        if not (degrees > 0).all():
            node = int(np.argmin(degrees > 0))
            why = f"data `{self.name}`: the weights of node {node} and 1 add up to {degrees[node]:g}, which has no root"
            raise DataError(why, hint="take `adj=raw`, or leave the weights out")
        return normalize_adjacency(self.edges)

    @property
    def adjacency(self) -> torch.Tensor:
        """The adjacency [nodes, nodes] in CSR: D^-1/2 (A + I) D^-1/2 with self loops, unless the user asks for the edges."""
        return torch_matrix(self.matrix())

    @property
    def raw(self) -> torch.Tensor:
        """The edges [nodes, nodes] in CSR, which are 1 or their weights, without self loops."""
        return torch_matrix(self.edges)

    @property
    def features(self) -> torch.Tensor:
        """The features [nodes, features] in CSR, or dense if the data set is dense."""
        return torch_matrix(self.inputs)


def raw_files(name: str) -> RawFiles:
    """Return what a graph of `FILE_READERS` is read from."""
    distributions: tuple[Any, ...] = (planetoid, citation_full, ogb)
    raw: RawFiles = next(module.raw_files(name) for module in distributions if name in module.TITLES)
    return raw


def has_files(name: str, data_dir: Path) -> bool:
    """Return whether the raw files of a graph of `FILE_READERS` are in a directory."""
    try:
        locate_files(name, data_dir)
    except DataError:
        return False
    return True


def locate_files(name: str, data_dir: Path) -> Path:
    """Return the directory in `data_dir` that has the raw files of a graph of `FILE_READERS`. Raise `DataError` if there is none."""
    return planetoid.locate(name, data_dir) if name in planetoid.TITLES else find_folder(raw_files(name), data_dir)


def load_data(spec: str, data_dir: Path | None = None, seed: int = 0) -> Data:
    """Load the data set that `spec` names, or raise `DataError`.

    The graph `karate` and the graphs of `FILE_READERS`, which are read from the raw files in `data_dir`, take the option `nodes=N` for
    the subgraph of the first N nodes. The other data sets are generated from `seed`; their options stand in parentheses. They are
    `random` (nodes, degree, features, density, classes), `synthetic:NAME` (scale), which stands in for a published graph,
    `images:NAME` (side, count, density), and `bigbird` (block, length, features), which is a sequence with its attention mask. The
    option `adj=gcn` or `adj=raw` of a graph says which adjacency a model gets. A spec may also name a file with a graph, which
    `read_graph_file` reads.
    """
    name = split_spec(spec)[0]
    require_known(name)
    if data_dir is not None and name not in FILE_READERS:
        why = f"`{name}` is a file itself" if names_file(name) else f"data set `{name}` reads no files"
        raise DataError(why, hint="leave the data directory out")
    options = SpecOptions.parse(spec, VARIANTS.get(name, ()))
    if name == "images":
        return _images(options, seed)
    if name == "bigbird":
        return _sequence(options, seed)
    adj = options.choice("adj", ADJACENCIES)
    if name == "random":
        return _of_graph(spec, _random(options, seed), adj)
    if name == "synthetic":
        graph, notice = _standin(options, seed)
        return _of_graph(spec, graph, adj, notice)
    nodes, notice = options.integer("nodes", 0, 1) if "nodes" in options.values else None, ""
    options.read_keys.append("nodes")
    if names_file(name):
        graph, notice = read_graph_file(name, options, seed)
    else:
        options.finish()
        graph = karate_club() if name == "karate" else FILE_READERS[name](name, data_dir)
    if nodes is not None and nodes > graph.nodes:
        raise DataError(f"data `{spec}`: the graph has {graph.nodes} nodes", hint=f"ask for nodes={graph.nodes} or fewer")
    return _of_graph(spec, graph if nodes is None else graph.first(nodes), adj, notice)


def require_known(name: str) -> None:
    """Raise `DataError` with the nearest name unless data are a data set or a file that is there."""
    dataset, equals, folder = name.partition("=")
    if equals and dataset in FILE_READERS:
        hint = f"the directory with its files is another option: `--data {dataset} --data-dir {folder}`"
        raise DataError(f"unknown data set `{name}`", hint=hint)
    if names_file(name):
        return require_graph_file(Path(name))
    if name not in DATASET_NAMES:
        raise DataError(f"unknown data set `{name}`", hint=did_you_mean(name, DATASET_NAMES))


def _random(options: SpecOptions, seed: int) -> GraphData:
    nodes, degree = options.integer("nodes", 100, 1), options.number("degree", 4, 0)
    features, density = options.integer("features", 32, 1), options.number("density", 0.1, 0, 1)
    classes, seed = options.integer("classes", 4, 1), options.integer("seed", seed, 0)
    options.finish()
    if degree > nodes - 1:
        raise DataError(f"data `{options.spec}`: a degree of {degree:g} needs more than {nodes} nodes")
    return random_graph(nodes, degree, features, density, classes, seed)


def _standin(options: SpecOptions, seed: int) -> tuple[GraphData, str]:
    scale, seed = options.number("scale", 1, 1e-6, 1), options.integer("seed", seed, 0)
    options.finish()
    if not options.variant:
        hint = f"as in `synthetic:{next(iter(PUBLISHED_COUNTS))}`"
        raise DataError(f"data `{options.spec}`: a stand-in for which graph?", hint=hint)
    name = options.variant
    part = "" if scale == 1 else f", scaled to {scale:g} of its nodes"
    return generate_standin(name, seed, scale), f"synthetic data: a generated stand-in for {name}{part}, not the published graph"


def _images(options: SpecOptions, seed: int) -> Data:
    side = options.integer("side", IMAGE_SIDES.get(options.variant, 16), 1)
    count, density = options.integer("count", DEFAULT_COUNT, 1), options.number("density", DEFAULT_DENSITY, 0, 1)
    seed = options.integer("seed", seed, 0)
    options.finish()
    pixels = sample_images(count, side, density, seed)
    description = f"{count} images, {side} x {side} pixels ({pixels.nnz} nonzero)"
    kind = f"images of the size of {options.variant}'s" if options.variant else "images"
    return Data(options.spec, pixels, np.zeros(count, dtype=np.int64), 0, description, notice=f"synthetic data: random {kind}")


def _sequence(options: SpecOptions, seed: int) -> Data:
    block, length = options.integer("block", 64, 1), options.integer("length", 1024, 1)
    features, seed = options.integer("features", 768, 1), options.integer("seed", seed, 0)
    options.finish()
    mask = bigbird_mask(length, block)  # The mask always has the published seed.
    inputs = np.random.default_rng(seed).standard_normal((length, features), dtype=np.float32)
    description = f"{length} positions, {features} features, a BigBird mask of {block} x {block} blocks ({mask.nnz} nonzero)"
    labels, notice = np.zeros(length, dtype=np.int64), "synthetic data: random features behind a BigBird mask"
    return Data(options.spec, inputs, labels, 0, description, mask, "raw", notice)


def _of_graph(spec: str, graph: GraphData, adj: str | None, notice: str = "") -> Data:
    stored = f" ({graph.features.nnz} nonzero)" if sparse.issparse(graph.features) else ""
    size = f"{graph.nodes} nodes, {graph.edges.nnz} entries of the adjacency, {graph.features.shape[1]} features{stored}"
    description = f"{size}, {graph.classes} classes"
    return Data(spec, graph.features, graph.labels, graph.classes, description, graph.edges, adj, notice, graph.training)


RANDOM = "nodes=100,degree=4,features=32"
BIGBIRD = "block=64,length=1024"
"""The options of generated data, with their defaults."""


@dataclass(frozen=True, slots=True)
class DataEntry:
    """Data that `--data` takes as `spec`. Without `files` they need none; else these lie in one of the `places` below a data directory,
    and `folder` is the one that has all of them, or None if they are missing."""

    spec: str
    what: str
    files: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    source: str = ""
    folder: str | None = None

    @property
    def is_there(self) -> bool:
        """Whether the data can be loaded as they are."""
        return not self.files or self.folder is not None

    def to_json(self) -> dict[str, Any]:
        """Return the entry as plain values."""
        return {**asdict(self), "there": self.is_there}


def list_data(data_dir: Path | None) -> Iterator[DataEntry]:
    """Yield all data sets. Their files are looked for in a data directory, or where they are downloaded to."""
    yield DataEntry("karate", "Zachary's karate club, which comes with fuseflow")
    for name in FILE_READERS:
        raw = raw_files(name)
        folder = _folder(name, data_dir)
        yield DataEntry(name, raw.title, raw.files, raw.places, raw.source, None if folder is None else str(folder))
    yield DataEntry("random", f"a random graph: {RANDOM}")
    for name, counts in PUBLISHED_COUNTS.items():
        sizes = f"made of {counts.nodes:,} nodes, {counts.entries:,} edges, {counts.features:,} features"
        yield DataEntry(f"synthetic:{name}", sizes)
    for name, side in IMAGE_SIDES.items():
        yield DataEntry(f"images:{name}", f"{DEFAULT_COUNT} random images of {side} x {side} pixels")
    yield DataEntry("bigbird", f"a sequence with BigBird's mask: {BIGBIRD}")
    yield DataEntry("FILE", "your graph, in a .mtx, .npz, .csv, .el or other file")


def _folder(name: str, data_dir: Path | None) -> Path | None:
    """Return the folder that has the files of a data set, or None if there is none."""
    if data_dir is None and name not in planetoid.TITLES:
        return None
    try:
        folder = locate_files(name, data_dir or planetoid.download_folder())
    except DataError:
        return None
    return folder if all((folder / file).is_file() for file in raw_files(name).files) else None


@dataclass(frozen=True, slots=True)
class DataSizes:
    """How large loaded data are. A density is the share of the entries of a matrix that are stored. Data without connections, such as
    images, have no edges."""

    data: str
    nodes: int
    edges: int | None
    edge_density: float | None
    mean_degree: float | None
    largest_degree: int | None
    features: int
    stored_features: int
    feature_density: float
    classes: int
    training: int | None
    notices: tuple[str, ...] = ()


def data_sizes(data: Data) -> DataSizes:
    """Return the sizes of loaded data."""
    inputs, nodes, adjacency = data.inputs, data.nodes, data.connections
    features = int(inputs.shape[1])
    stored = int(inputs.nnz) if sparse.issparse(inputs) else inputs.size
    edges = None if adjacency is None else int(adjacency.nnz)
    return DataSizes(
        data.name,
        nodes,
        edges,
        None if edges is None else edges / nodes**2,
        None if edges is None else edges / nodes,
        None if adjacency is None else int(np.diff(adjacency.indptr).max(initial=0)),
        features,
        stored,
        stored / max(nodes * features, 1),
        data.classes,
        None if data.training is None else len(data.training),
        (data.notice,) if data.notice else (),
    )
