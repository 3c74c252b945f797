"""The data that `--data` may name: what each is, which files it needs, and where these are; and how large loaded data are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fuseflow.errors import DataError
from fuseflow.frontend.data import FILE_READERS, Data, locate_files, raw_files
from fuseflow.frontend.datasets import planetoid
from fuseflow.frontend.datasets.images import DEFAULT_COUNT, IMAGE_SIDES
from fuseflow.frontend.datasets.standins import PUBLISHED_COUNTS

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
