"""Every kind of file that fuseflow reads: how one is made up or damaged, what its first parser is, and what reads it.

A reader must return, or raise a `FuseFlowError` that a command ends with as status 2. Anything else is a fault.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import logging
import pickletools
import random
import re
import typing
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fuseflow.einsum.parse import parse
from fuseflow.einsum.verify import verify
from fuseflow.errors import FileError, FuseFlowError
from fuseflow.tensors import Format
from input_fuzz import containers, grammars, parser_server, seeds
from input_fuzz.mutations import mutate

Reader = Callable[[bytes, Path], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file.

    `first` raises anything for a content that its first parser refuses, and `read` reads a content that is put into a folder. `repack`
    changes a part of a container, whose sizes and checksums fit afterwards, or makes a text of a grammar: the share `repacked` of all
    inputs. The others are damaged anywhere, or as `damage` says.
    """

    name: str
    seeds: Callable[[], list[bytes]]
    first: Callable[[bytes], object]
    read: Reader
    is_text: bool = False
    repack: containers.Change | None = None
    damage: containers.Change | None = None
    repacked: float = 0.5

    def draw(self, chance: random.Random) -> bytes:
        """Return a content: half of those that can be are repacked or follow a grammar."""
        contents = good(self)
        content = chance.choice(contents)
        if self.repack is not None and chance.random() < self.repacked:
            return self.repack(content, chance)
        if self.damage is not None:
            return self.damage(content, chance)
        return mutate(content, contents, chance, self.is_text)


@cache
def _good(name: str) -> list[bytes]:
    return KINDS[name].seeds()


def good(kind: Kind) -> list[bytes]:
    """Return the good contents of a kind."""
    return _good(kind.name)


@dataclass(frozen=True, slots=True)
class _Declared:
    """What a program says of a tensor."""

    shape: tuple[int, ...]
    format: Format | None
    dtype: str
    name: str = "A"
    fill: float = 0.0


MOST_PACKED = 1_000_000


def _array(suffix: str) -> Reader:
    def read(content: bytes, folder: Path) -> None:
        from fuseflow.tensors.array_files import load_array, pack_declared

        path = _put(content, folder, f"a{suffix}")
        array = load_array(path)
        if all(size <= MOST_PACKED for size in array.shape) and (not isinstance(array, np.ndarray) or array.size <= MOST_PACKED):
            rank = len(array.shape)
            format = Format.parse("csr", 2) if rank == 2 else Format.dense(rank)
            pack_declared(array, _Declared(array.shape, format, ("f32", "f64", "i32", "f16")[len(content) % 4]))

    return read


def _put(content: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def _npy_header(content: bytes) -> None:
    stream = io.BytesIO(content)
    assert np.lib.format.read_magic(stream) == (1, 0)
    np.lib.format.read_array_header_1_0(stream)


def _zip(content: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.read(archive.infolist()[0])


def _mtx_header(content: bytes) -> None:
    assert content.startswith(b"%%MatrixMarket matrix ")


def _pt2(content: bytes, folder: Path) -> None:
    from fuseflow.frontend.exported_file.reader import read_exported_program

    read_exported_program(_put(content, folder, "m.pt2"))


def _yaml_first(content: bytes) -> None:
    from fuseflow.yaml_text import compose_yaml

    compose_yaml(content.decode(), "f", FileError)


def _yaml(content: bytes, folder: Path) -> None:
    """Read a YAML text as what its first line says, or as all kinds of documents."""
    from fuseflow.filesystem import read_text

    path = _put(content, folder, "f.yaml")
    text = read_text(path)
    word = text.partition("\n")[0].removeprefix("# ")
    readers = _yaml_readers(path)
    for name in (word,) if word in readers else tuple(readers):
        with contextlib.suppress(FuseFlowError) if word not in readers else contextlib.nullcontext():
            readers[name](text)


def _yaml_readers(path: Path) -> dict[str, Callable[[str], object]]:
    from fuseflow.machine.files import read_machine
    from fuseflow.plan.plan import Plan
    from fuseflow.schedule import Schedule
    from fuseflow.sparsity.spec import SparseSpec
    from fuseflow.sweep.sweep_file import read_sweep
    from fuseflow.tensors.tensor_listing import read_entries

    return {
        "schedule": lambda text: Schedule.from_yaml(text, "f.yaml"),
        "machine": lambda text: read_machine(text, "f.yaml"),
        "tensors": lambda text: read_entries(path, ("A", "B"), "the program", ("order", "levels", "indices", "block")),
        "plan": lambda text: Plan.from_yaml(text, "f.yaml"),
        "spec": lambda text: SparseSpec.from_yaml(text, "f.yaml"),
        "sweep": lambda text: read_sweep(path),
    }


@cache
def _yaml_values() -> tuple[list[Any], list[str]]:
    from ruamel.yaml import YAML

    values = [YAML(typ="safe", pure=True).load(content.decode()) for content in seeds.yaml()]
    keys = sorted({str(key) for value in values for key in value} | {"A", "name", "i", "parts", "order", "<<", "model"})
    return values, keys


def _grammar_yaml(content: bytes, chance: random.Random) -> bytes:
    values, keys = _yaml_values()
    word = chance.choice(("schedule", "machine", "tensors", "plan", "spec", "sweep"))
    return f"# {word}\n".encode() + grammars.yaml_text(values, keys, chance)


def _json(content: bytes, folder: Path) -> None:
    """Read a result of a run as the commands do that take one."""
    from fuseflow.report.page.page import page
    from fuseflow.report.page.run_directory import read_run

    page(read_run(_put(content, folder, "r.json")))


def _ein(content: bytes, folder: Path) -> None:
    from fuseflow.filesystem import read_text

    program = parse(read_text(_put(content, folder, "p.ein")), "p.ein")
    verify(program)


def _mlir_first(content: bytes) -> None:
    from fuseflow.dialects.text_screen import screen_text

    text = content.decode()
    screen_text(text, "f", None, FileError)

    assert parser_server.parses_leniently(text)


def _mlir(content: bytes, folder: Path) -> None:
    from fuseflow.einsum import mlir as einsum_mlir
    from fuseflow.filesystem import read_text
    from fuseflow.frontend import read_mlir
    from fuseflow.samml import mlir as samml_mlir
    from fuseflow.table import mlir as table_mlir

    text = read_text(_put(content, folder, "m.mlir"))
    if '"samml.' in text and '"table.' not in text:
        samml_mlir.from_mlir(text)
    elif '"table.' in text:
        table_mlir.from_mlir(text)
    elif '"einsum.' in text:
        einsum_mlir.from_mlir(text)
    else:
        read_mlir(text, "m.mlir")


def _proto(content: bytes, folder: Path) -> None:
    from fuseflow.samml import protobuf

    protobuf.from_proto(content, {"i": 4})
    protobuf.stored_indices(content)


def _proto_first(content: bytes) -> None:
    from fuseflow.samml import tortilla_pb2 as pb

    pb.ComalGraph.FromString(content)


def _proto_change(content: bytes, chance: random.Random) -> bytes:
    return grammars.change_message(content, chance) if chance.random() < 0.8 else grammars.graph_message(chance)


def _samml(content: bytes, folder: Path) -> None:
    from fuseflow.filesystem import read_text
    from fuseflow.samml import text as samml_text
    from fuseflow.samml.verify import verify as verify_graph

    verify_graph(samml_text.parse(read_text(_put(content, folder, "g.samml")), "g.samml"))


def _fibertree(content: bytes, folder: Path) -> None:
    from fuseflow.tensors.array_files import read_fibertree

    containers.unfold(content, folder)
    read_fibertree(folder, "T", Format.parse("csr", 2))


def _fibertree_first(content: bytes) -> None:
    for file in content.split(containers.SEPARATOR):
        np.array([float(word) for word in file.partition(b"\n")[2].split()])


def _store(content: bytes, folder: Path) -> None:
    from fuseflow.report.page.page import page
    from fuseflow.report.page.run_directory import read_packed_run
    from fuseflow.sweep.store import Store
    from fuseflow.sweep.sweep import SweepProgress

    path = _put(content, folder, "s.sqlite")
    with Store.open(path) as store:
        progress, point = SweepProgress(1, "cycles"), seeds.sweep_points()[0]
        for row in store.rows().values():
            progress.note(point, "estimate", row.outcome)
            kept = store.run(row.outcome.key)
            if kept is not None:
                page(read_packed_run(kept, folder))
        progress.line(("fuse",))


def _store_first(content: bytes) -> None:
    import sqlite3

    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(content)
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()


def _kernel(content: bytes, folder: Path) -> None:
    from fuseflow.native.object_store import ObjectStore

    digest = "0" * 64
    folder.chmod(0o700)
    path = _put(content, folder, f"{digest}.kernel")
    path.chmod(0o600)
    ObjectStore(folder, private=True).read(digest)


def _kernel_first(content: bytes) -> None:
    assert content[64:65] == b"\n"


def _entry(content: bytes, folder: Path) -> None:
    """Read an entry as the cache does: what is damaged counts as missing."""
    from fuseflow.frontend.import_cache.cache import readable_entry
    from fuseflow.private_store import read_private

    path = _put(content, folder, "e.import")
    path.chmod(0o600)
    body = read_private(path)
    if body is not None:
        readable_entry(body, "model.py")


def _planetoid(content: bytes, folder: Path) -> None:
    from fuseflow.frontend.data import load_data

    containers.unfold(content, folder)
    load_data("cora", folder).matrix()


def _citation(content: bytes, folder: Path) -> None:
    from fuseflow.frontend.data import load_data

    _put(content, folder, "cora_ml.npz")
    load_data("cora_ml", folder).matrix()


def _edge_list(content: bytes, folder: Path) -> None:
    from fuseflow.frontend.data import load_data

    path = _put(content, folder, "g.csv" if b"," in content else "g.el")
    for options in ("", ":weights=true,directed=false,adj=raw"):
        load_data(f"{path}{options}").matrix()


def _edge_list_first(content: bytes) -> None:
    assert re.search(rb"\d[ \t,]+\d", content)


def _edge_tables(content: bytes, folder: Path) -> None:
    from fuseflow.frontend.data import load_data

    containers.unfold(content, folder)
    load_data("collab", folder).matrix()


def _edge_tables_first(content: bytes) -> None:
    for file in content.split(containers.SEPARATOR):
        gzip.decompress(file.partition(b"\n")[2])


def _liberty(content: bytes, folder: Path) -> None:
    from fuseflow.hardware.area.synthesis import read_liberty

    read_liberty(_put(content, folder, "cells.lib"))


def _liberty_first(content: bytes) -> None:
    """Refuse what has no groups, or groups that do not close."""
    text = content.decode()
    assert re.search(r"\blibrary\s*\(", text) and 0 < text.count("{") == text.count("}")


def _energies(content: bytes, folder: Path) -> None:
    from fuseflow.energy.event_energies import load_event_energies

    load_event_energies(_put(content, folder, "f.yaml"))


@cache
def _energy_values() -> tuple[list[Any], list[str]]:
    from ruamel.yaml import YAML

    values = [YAML(typ="safe", pure=True).load(content.decode()) for content in seeds.energies()]
    return values, [*values[0], "value", "mark", "source", "technology", "add", "read", "<<"]


def _grammar_energies(_: bytes, chance: random.Random) -> bytes:
    return grammars.yaml_text(*_energy_values(), chance)


def _area_entry(content: bytes, folder: Path) -> None:
    """Read an entry as the cache does: what is damaged counts as missing."""
    from fuseflow.hardware.area.synthesis import readable_cells
    from fuseflow.private_store import read_private

    path = _put(content, folder, "e.json")
    path.chmod(0o600)
    body = read_private(path)
    if body is not None:
        readable_cells(body)


def _results(content: bytes, folder: Path) -> None:
    from fuseflow.report.page.page import page
    from fuseflow.report.page.run_directory import read_run

    containers.unfold(content, folder)
    page(read_run(folder))


def _artifacts(content: bytes, folder: Path) -> None:
    """Read a directory of a compiled program as `fuseflow estimate` does."""
    from fuseflow.estimate.program import Estimator
    from fuseflow.machine.files import load_machine
    from fuseflow.run.artifact_reader import load_saved, load_schedule

    containers.unfold(content, folder)
    load_schedule(folder)
    tensors = {"A": np.eye(4), "B": np.ones((4, 3))}
    saved = load_saved(folder, tensors)
    machine = load_machine("rda")
    source = saved.source
    Estimator().estimate(saved.regions, source.program, source.tensors, machine, saved.model, saved.data, saved.notices)


def _texts_first(content: bytes) -> None:
    """Refuse a folder of which a file that is JSON, or another text, is not one."""
    for file in content.split(containers.SEPARATOR):
        name, _, body = file.partition(b"\n")
        json.loads(body) if name.endswith(b".json") else body.decode()


def _sparse_weights(content: bytes, folder: Path) -> None:
    from copy import deepcopy

    from fuseflow.sparsity import load_sparsity

    containers.unfold(content, folder)
    load_sparsity(deepcopy(seeds.linear()), folder)


def _sparse_weights_first(content: bytes) -> None:
    files = dict(file.partition(b"\n")[::2] for file in content.split(containers.SEPARATOR))
    json.loads(files[b"sparsity.json"])
    _zip(files[b"weights.npz"])


def _compared(content: bytes, folder: Path) -> None:
    """Compare an estimate with a result, as `fuseflow estimate --against` does."""
    from fuseflow.cli.actions.estimate import compared_run
    from fuseflow.report.estimate_tables import comparison_table

    comparison_table(_estimate(), compared_run(_put(content, folder, "r.json")))


@cache
def _estimate() -> Any:
    return seeds.compiled().estimate()


def _grammar_liberty(content: bytes, chance: random.Random) -> bytes:
    return grammars.liberty_text(chance) if chance.random() < 0.5 else containers.change_lines(content, chance)


def _planetoid_first(content: bytes) -> None:
    files = dict(file.partition(b"\n")[::2] for file in content.split(containers.SEPARATOR))
    for name, body in files.items():
        if name != b"ind.cora.test.index":
            for _ in pickletools.genops(body):
                pass


_ALL: Sequence[Kind] = (
    Kind("npy", seeds.npy, _npy_header, _array(".npy"), repack=containers.change_npy),
    Kind("npz", seeds.npz, _zip, _array(".npz"), repack=containers.change_zip),
    Kind("mtx", seeds.mtx, _mtx_header, _array(".mtx"), is_text=True),
    Kind("edge list", seeds.edge_lists, _edge_list_first, _edge_list, is_text=True, repack=containers.change_lines),
    Kind("pt2", seeds.pt2, _zip, _pt2, repack=containers.change_zip),
    Kind("yaml", seeds.yaml, _yaml_first, _yaml, is_text=True, repack=_grammar_yaml),
    Kind("json", seeds.json_files, json.loads, _json, is_text=True, repack=containers.change_json),
    Kind(
        "ein",
        seeds.ein,
        lambda content: parse(content.decode(), "f"),
        _ein,
        is_text=True,
        repack=lambda _, chance: grammars.program_text(chance),
    ),
    Kind("mlir", seeds.mlir, _mlir_first, _mlir, is_text=True, repack=containers.change_lines, repacked=0.8),
    Kind("protobuf", seeds.proto, _proto_first, _proto, repack=_proto_change),
    Kind("samml", seeds.samml, lambda content: content.decode(), _samml, is_text=True, repack=containers.change_lines),
    Kind("fibertree", seeds.fibertree, _fibertree_first, _fibertree, is_text=True, repack=containers.change_folder(True)),
    Kind("sweep store", seeds.sweep_store, _store_first, _store, repack=containers.change_store),
    Kind(
        "kernel cache",
        seeds.kernel,
        _kernel_first,
        _kernel,
        repack=containers.change_digest(True, lambda c, chance: mutate(c, [c], chance, False)),
    ),
    Kind(
        "import cache",
        seeds.import_entry,
        lambda content: _zip(content[32:]),
        _entry,
        repack=containers.change_digest(False, containers.change_zip),
    ),
    Kind(
        "planetoid",
        seeds.planetoid,
        _planetoid_first,
        _planetoid,
        repack=containers.change_pickles,
        damage=containers.change_folder(False),
    ),
    Kind("citation", seeds.citation, _zip, _citation, repack=containers.change_zip),
    Kind(
        "edge tables",
        seeds.edge_tables,
        _edge_tables_first,
        _edge_tables,
        repack=containers.change_folder(True, containers.change_gzip),
        damage=containers.change_folder(False),
    ),
    Kind("liberty", seeds.liberty, _liberty_first, _liberty, is_text=True, repack=_grammar_liberty),
    Kind("energy", seeds.energies, _yaml_first, _energies, is_text=True, repack=_grammar_energies),
    Kind(
        "area cache",
        seeds.area_entry,
        lambda content: json.loads(content[32:]),
        _area_entry,
        repack=containers.change_digest(False, containers.change_json),
    ),
    Kind(
        "results",
        seeds.results,
        _texts_first,
        _results,
        repack=containers.change_folder(True, containers.change_text),
        damage=containers.change_folder(True),
    ),
    Kind(
        "artifacts",
        seeds.artifacts,
        _texts_first,
        _artifacts,
        repack=containers.change_folder(True, containers.change_text),
        damage=containers.change_folder(True),
    ),
    Kind(
        "sparse weights",
        seeds.sparse_weights,
        _sparse_weights_first,
        _sparse_weights,
        repack=containers.change_folder(True, containers.change_member),
        damage=containers.change_folder(False),
    ),
    Kind("compared run", lambda: [seeds.result_json()], json.loads, _compared, is_text=True, repack=containers.change_json),
)
KINDS = {kind.name: kind for kind in _ALL}
"""All kinds, by name."""


def prepare(kinds: Sequence[Kind]) -> None:
    """Import what the readers need, so that no input pays for it, keep them from writing notices, and let libraries do once what they do
    for every file: to compile a template, and to resolve the annotations of a class."""
    logging.getLogger("fuseflow").setLevel(logging.CRITICAL)
    _compile_templates_once()
    _resolve_annotations_once()
    for kind in kinds:
        good(kind)


@cache
def _compile_templates_once() -> None:
    import jinja2

    compile_template = jinja2.Environment.compile
    compiled = dict[tuple[Any, ...], Any]()

    def once(environment: jinja2.Environment, source: Any, *arguments: Any, **others: Any) -> Any:
        key = (source, arguments, tuple(others.items()), environment.autoescape, tuple(environment.filters))
        if not isinstance(source, str):
            return compile_template(environment, source, *arguments, **others)
        if key not in compiled:
            compiled[key] = compile_template(environment, source, *arguments, **others)
        return compiled[key]

    jinja2.Environment.compile = once  # type: ignore[assignment,method-assign]


@cache
def _resolve_annotations_once() -> None:
    hints = typing.get_type_hints
    resolved = dict[tuple[type, int], dict[str, Any]]()

    def once(object_: Any, globalns: dict[str, Any] | None = None, *arguments: Any, **others: Any) -> dict[str, Any]:
        if arguments or others or not isinstance(object_, type):
            return hints(object_, globalns, *arguments, **others)
        key = object_, id(globalns)
        if key not in resolved:
            resolved[key] = hints(object_, globalns)
        return resolved[key]

    typing.get_type_hints = once  # type: ignore[assignment]
