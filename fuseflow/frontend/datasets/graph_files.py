"""Graphs in the user's own files: a matrix whose entries are the edges (`.mtx`, `.npz`), or a list of edges in a text file.

A list has a line for each edge, with the numbers of its two nodes and, after them, its weight. Numbers of nodes count from 0. Blanks or
commas stand between the numbers, and lines that begin with `#` or `%` are comments. The first line of a table, `.csv` or `.tsv`, may name
its columns. SNAP (https://snap.stanford.edu/data) and the GAP benchmark have such lists.

A file keeps the direction of its edges: an entry at row i and column j, or a line `i j`, is an edge at A[i, j], which passes the features
of node j to node i. An entry that is 0 is no edge, and self loops are left out. Edges that are repeated count once, and their weights are
added up, as in Matrix Market files.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fuseflow.errors import DataError, FileError, did_you_mean
from fuseflow.filesystem import read_bytes
from fuseflow.frontend.datasets.built_in import random_features
from fuseflow.frontend.datasets.files import open_archive, read_packed
from fuseflow.frontend.datasets.graph_data import MOST_CLASSES, GraphData, Matrix
from fuseflow.frontend.datasets.spec_options import EDGE_LISTS, MATRICES, SpecOptions, graph_suffix
from fuseflow.tensors.array_files import load_array
from fuseflow.tensors.npy_files import read_named_csr
from fuseflow.tensors.number_text import NotARow, read_columns, row_lines

_TRUTHS: Final = ("true", "false")
_COMMENT: Final = re.compile(rb"^[ \t]*[#%].*$", re.MULTILINE)
_FIRST_ROW: Final = re.compile(rb"^.*\S.*$", re.MULTILINE)
_NAMES: Final = re.compile(rb"[A-Za-z_]")
_GAP: Final = re.compile(rb"^[ \t]*,|,[ \t]*(?:,|$)", re.MULTILINE)
"""A comma beside which a number is missing."""
_BEHIND_NODES: Final = {2: "nothing else, as in the first line", 3: "a weight, as the first line has one"}
_FREE_NODES: Final = 1 << 20
_MOST_NODES: Final = 32
"""A graph may have this many nodes for each edge, or `_FREE_NODES`: one line must not fill the memory."""


@dataclass(frozen=True, slots=True)
class _Contents:
    """The graph in a file: its edges with their weights, and features [nodes, features] and labels [nodes] if it has these."""

    edges: sparse.coo_array
    features: Matrix | None = None
    labels: npt.NDArray[np.int64] | None = None


def require_graph_file(path: Path) -> None:
    """Raise `DataError` for a file of another kind, and for one that is not there, with the nearest name of one that is."""
    if path.is_file():
        if graph_suffix(path.name) in (*MATRICES, *EDGE_LISTS):
            return
        suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
        lists = f"{', '.join(EDGE_LISTS)}, which alone may be packed, as in .csv.gz"
        known = f"a graph is a matrix ({', '.join(MATRICES)}) or a list of edges ({lists})"
        raise DataError(f"cannot read `{path}` as a graph: unknown kind of file `{suffix}`", hint=known)
    if path.is_dir():
        hint = "a data set that is read from a directory has a name: `--data cora --data-dir DIR`"
        raise DataError(f"`{path}` is a directory", hint=hint)
    try:
        names = [file.name for file in path.parent.iterdir() if graph_suffix(file.name) in (*MATRICES, *EDGE_LISTS)]
    except (OSError, ValueError):  # no directory, or no name of one
        names = []
    raise DataError(f"no file `{path}`", hint=did_you_mean(path.name, names) if names else "")


def read_graph_file(name: str, options: SpecOptions, seed: int) -> tuple[GraphData, str]:
    """Return the graph in a file, and a notice of parts that differ from the file, or are not in it. Raise `DataError` for a file
    that holds no graph, and for an option that has no meaning for it.

    `directed=false` adds the reverse of every edge, and `weights=true` keeps weights, which are 1 otherwise. A file without
    features or without labels gets random ones, from `features`, `density`, `classes` and `seed`.
    """
    directed, weighted = options.choice("directed", _TRUTHS), options.choice("weights", _TRUTHS) == "true"
    contents = _read(Path(name))
    notices = list[str]()
    edges = _adjacency(name, contents.edges, weighted, notices)
    reverse = _missing_reverses(edges)
    if directed is None and reverse.nnz:
        notices.append(f"{reverse.nnz:,} of its edges have no reverse, which `directed=false` adds")
    graph = _completed(contents, edges + reverse if directed == "false" else edges, options, seed, notices)
    options.finish()
    return graph, f"{name}: {'; '.join(notices)}" if notices else ""


def _missing_reverses(edges: sparse.csr_array) -> sparse.csr_array:
    """Return the reverse of every edge whose reverse is no edge yet, with the weight of the edge."""
    reverse = sparse.csr_array(edges.T)
    missing = sparse.csr_array(reverse - reverse * edges.astype(bool))
    missing.eliminate_zeros()
    return missing


def _adjacency(name: str, edges: sparse.coo_array, weighted: bool, notices: list[str]) -> sparse.csr_array:
    """Return the adjacency of a model: without self loops and zeros, with ones unless `weighted`. Add notices of omissions."""
    rows, columns = edges.coords
    values = edges.data.astype(np.float64)
    if not np.isfinite(values).all():
        first = int(np.argmin(np.isfinite(values)))
        raise DataError(f"`{name}`: the edge from {rows[first]} to {columns[first]} has the weight {values[first]}")
    present = (values != 0) & (rows != columns)
    loops = int(((values != 0) & (rows == columns)).sum())
    notices += [f"{loops:,} self loop{'s' if loops > 1 else ''} left out"] if loops else []
    if not weighted and not (values[present] == 1).all():
        notices.append("its weights are left out: `weights=true` keeps them")
    adjacency = sparse.csr_array((values[present], (rows[present], columns[present])), shape=edges.shape)
    adjacency.sum_duplicates()
    if not weighted:
        adjacency.data[:] = 1
    with np.errstate(over="ignore"):
        adjacency = sparse.csr_array(adjacency.astype(np.float32))
    adjacency.eliminate_zeros()
    if not np.isfinite(adjacency.data).all():
        raise DataError(f"`{name}`: a weight is beyond 32-bit floats", hint="scale the weights, or leave them out")
    return adjacency


def _completed(contents: _Contents, edges: sparse.csr_array, options: SpecOptions, seed: int, notices: list[str]) -> GraphData:
    """Return the graph with features and labels, which are drawn if the file has none."""
    features, labels, drawn = contents.features, contents.labels, list[str]()
    seed = options.integer("seed", seed, 0) if features is None or labels is None else seed
    rng = np.random.default_rng(seed)
    nodes = edges.shape[0]
    if features is None:
        count, density = options.integer("features", 32, 1), options.number("density", 0.1, 0, 1)
        features = random_features(nodes, count, density, rng)
        drawn.append("features")
    classes = options.integer("classes", 4, 1) if labels is None else int(labels.max(initial=-1)) + 1
    if labels is None:
        labels = rng.integers(classes, size=nodes)
        drawn.append("labels")
    if drawn:
        notices.append(f"it has no {' and no '.join(drawn)}, so these are random")
    return GraphData(edges, features, labels, classes)


def _read(path: Path) -> _Contents:
    try:
        if graph_suffix(path.name) in EDGE_LISTS:
            contents = _Contents(_read_edge_list(path))
        else:
            contents = _read_whole(path) if path.suffix == ".npz" and _is_whole(path) else _Contents(_matrix(path))
    except FileError as error:
        raise DataError(error.message, hint=error.hint) from error
    nodes, stored = contents.edges.shape[0], contents.edges.nnz
    if not nodes:
        raise DataError(f"`{path}` has no edges", hint="a graph has a node or more")
    if nodes > _most_nodes(stored):
        raise DataError(f"`{path}` has {nodes:,} nodes, and only {stored:,} edges", hint="leave nodes without edges out")
    return contents


def _matrix(path: Path) -> sparse.coo_array:
    """Return the square matrix in a file."""
    matrix: Any = load_array(path)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = " x ".join(map(str, matrix.shape))
        raise DataError(f"`{path}` is no adjacency: it is {shape}, and the edges of a graph are a square matrix")
    return sparse.coo_array(matrix)


def _is_whole(path: Path) -> bool:
    with open_archive(path) as arrays:
        return "adj_data" in arrays or "adj_indptr" in arrays


def _read_whole(path: Path) -> _Contents:
    """Return the graph in an archive that has also its features and labels: arrays of CSR matrices `adj_*` and `attr_*`, and `labels`."""
    with open_archive(path) as arrays:
        edges = read_named_csr(path, arrays, "adj")
        features = read_named_csr(path, arrays, "attr") if "attr_data" in arrays else None
        labels = next((arrays[name] for name in arrays.names if name == "labels"), None)
    nodes = edges.shape[0]
    sizes = {"adj": edges.shape[1], "attr": nodes if features is None else features.shape[0]}
    for part, size in sizes.items():
        if size != nodes:
            side = "columns" if part == "adj" else "rows"
            raise DataError(f"`{path}`: `adj` has {nodes:,} rows, and `{part}` has {size:,} {side}")
    if labels is not None and (
        labels.shape != (nodes,)
        or labels.dtype.kind not in "iu"
        or not 0 <= labels.min(initial=0) <= labels.max(initial=0) < MOST_CLASSES
    ):
        raise DataError(f"`{path}`: `labels` are no list of {nodes:,} whole numbers, one for each node, from 0")
    with np.errstate(over="ignore"):
        whole = None if features is None else sparse.csr_array(features.astype(np.float32))
    return _Contents(edges, whole, None if labels is None else labels.astype(np.int64))


# Lists of edges ---------------------------------------------------------------------------------------------------------------


def _most_nodes(edges: int) -> int:
    """Return the most nodes that a graph with this number of edges may have."""
    return max(_MOST_NODES * edges, _FREE_NODES)


def _read_edge_list(path: Path) -> sparse.coo_array:
    """Return the edges in a text file, with their weights. The number of nodes is one more than the largest number in the list. Raise
    `DataError` with the line that is no edge."""
    text = read_packed(path) if path.suffix == ".gz" else read_bytes(path)
    text = _COMMENT.sub(b"", text.removeprefix(BOM_UTF8).replace(b"\r\n", b"\n"))
    if {".csv", ".tsv"} & set(path.suffixes[-2:]):
        text = _without_names(path, text)
    first = _FIRST_ROW.search(text)
    width = 2 if first is None else len(first.group().replace(b",", b" ").split())
    types: tuple[type[np.generic], ...] = (np.int64, np.int64, np.float64)
    try:
        if gap := _GAP.search(text):
            raise NotARow(text.count(b"\n", 0, gap.start()))
        columns = read_columns(text.replace(b",", b" "), types[: max(width, 2)])
    except NotARow as error:
        expected = f"expected the numbers of two nodes, and {_BEHIND_NODES.get(width, 'a weight or nothing')}"
        raise _refused(path, text, error.line, expected, "blanks or commas stand between plain numbers") from None
    rows, ends, *weights = columns
    nodes = int(max(rows.max(initial=-1), ends.max(initial=-1))) + 1
    most = _most_nodes(len(rows))
    for wrong, why in (
        ((rows < 0) | (ends < 0), "a node has a negative number"),
        ((rows >= most) | (ends >= most), f"a node has the number {nodes - 1:,}, of a list of {len(rows):,} edges"),
    ):
        if wrong.any():
            line = row_lines(text)[int(np.argmax(wrong))]
            raise _refused(path, text, line, why, "number the nodes 0, 1, 2, ... without large gaps")
    return sparse.coo_array((weights[0] if weights else np.ones(len(rows)), (rows, ends)), shape=(nodes, nodes))


def _without_names(path: Path, text: bytes) -> bytes:
    """Return the text of a table without its first line if that names the columns."""
    first = _FIRST_ROW.search(text)
    if first is None or not _NAMES.search(first.group()) or any(map(_is_number, re.split(rb"[,\s]+", first.group().strip()))):
        return text
    if _GAP.search(first.group()):
        line = text.count(b"\n", 0, first.start())
        raise _refused(path, text, line, "a column has no name", "leave the numbers of the rows out: `to_csv(FILE, index=False)`")
    return text[: first.start()] + text[first.end() :]


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _refused(path: Path, text: bytes, line: int, why: str, hint: str = "") -> DataError:
    shown = text.split(b"\n")[line].decode("latin-1").strip()
    return DataError(f"`{path}`, line {line + 1}: `{shown[:40]}`: {why}", hint=hint)
