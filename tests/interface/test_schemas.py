"""The JSON schemas of YAML files: those of the repository are valid, keys are those of the readers, and what a reader refuses for an
unknown key or a wrong type, its schema refuses, too."""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from fuseflow.array.settings import read_array
from fuseflow.errors import FuseFlowError
from fuseflow.interface import schemas as made
from fuseflow.machine.files import read_machine
from fuseflow.machine.machine import Machine
from fuseflow.memory.settings import MEMORY_KINDS
from fuseflow.plan.plan import Plan
from fuseflow.samml.files import LIST_KEYS
from fuseflow.schedule import Schedule
from fuseflow.schedule.file import Sections
from fuseflow.sparsity.spec import SparseSpec
from fuseflow.sweep.sweep_file import SweepContent, read_sweep
from fuseflow.tensors.tensor_listing import read_entries
from fuseflow.yaml_text import write_yaml

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "example"
BAD = {"docs/example/typo.yaml"}
"""Files that the documentation shows with a fault in them."""


def validator(kind: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(made.schema_text(kind)))


def loaded(text: str) -> Any:
    """The content of a YAML text, with keys as JSON has them."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): plain(inner) for key, inner in value.items()}
        return [plain(inner) for inner in value] if isinstance(value, list) else value

    return plain(YAML(typ="safe", pure=True).load(text))


def kind_of(file: str, content: Any) -> str:
    """The kind of a file of the repository, or "" for a file of another kind."""
    folder = file.rpartition("/")[0]
    if folder == "schedules/sweeps" or file == "docs/example/sweep.yaml":
        return "sweep"
    if folder.startswith("schedules"):
        return "schedule"
    kinds = {"fuseflow/machine/machines": "machine", "fuseflow/array/arrays": "array"}
    if folder.startswith(("tests/data/programs", "tests/data/comal_own")):
        return (
            "tensors" if isinstance(content, dict) and all(isinstance(v, dict) and "path" in v for v in content.values()) else ""
        )
    examples = {"half_rda": "machine", "plan": "plan", "tensors": "tensors", "typo": "schedule"}
    return examples.get(Path(file).stem, "") if folder == "docs/example" else kinds.get(folder, "")


def repository() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files", "*.yaml", "*.yml"], cwd=ROOT, capture_output=True, text=True, check=True)
    for file in listed.stdout.split():
        kind = kind_of(file, loaded((ROOT / file).read_text(encoding="utf-8")))
        if kind and file not in BAD:
            yield kind, file


def test_every_file_of_the_repository_is_valid() -> None:
    files = list(repository())
    assert {kind for kind, _ in files} == {"schedule", "sweep", "machine", "array", "tensors", "plan"} and len(files) > 80
    for kind, file in files:
        faults = [error.message for error in validator(kind).iter_errors(loaded((ROOT / file).read_text(encoding="utf-8")))]
        assert faults == [], file
    assert not validator("schedule").is_valid(loaded((EXAMPLE / "typo.yaml").read_text() + "\nfuze: full"))


@pytest.mark.parametrize("kind", made.KINDS)
def test_schemas_are_schemas(kind: str) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(made.schema_text(kind)))


def test_schemas_have_every_key() -> None:
    keys = {kind: json.loads(made.schema_text(kind))["properties"] for kind in ("schedule", "machine", "sweep", "array")}
    assert keys["schedule"].keys() == Sections.model_fields.keys()
    assert keys["sweep"].keys() == SweepContent.model_fields.keys()
    assert keys["machine"].keys() == {*Machine.model_fields, "base"}
    memories = [set(kind["properties"]) for kind in keys["machine"]["memory"]["anyOf"][1:]]
    assert memories == [set(kind.model_fields) for kind in MEMORY_KINDS.values()]
    assert json.loads(made.schema_text("tensors"))["additionalProperties"]["properties"].keys() == {"path", *LIST_KEYS}


def read_schedule(text: str, _folder: Path) -> object:
    return Schedule.from_yaml(text)


def read_listing(text: str, folder: Path) -> object:
    file = folder / "listing.yaml"
    file.write_text(text, encoding="utf-8")
    content = loaded(text)
    return read_entries(file, tuple(content) if isinstance(content, dict) else (), "the graph", LIST_KEYS)


def read_sweep_text(text: str, folder: Path) -> object:
    file = folder / "sweep.yaml"
    file.write_text(text, encoding="utf-8")
    return read_sweep(file)


READERS: dict[str, Callable[[str, Path], object]] = {
    "schedule": read_schedule,
    "plan": lambda text, _: Plan.from_yaml(text),
    "machine": lambda text, _: read_machine(text),
    "array": lambda text, _: read_array(text),
    "tensors": read_listing,
    "sweep": read_sweep_text,
    "sparsity": lambda text, _: SparseSpec.from_yaml(text),
}
GOOD: dict[str, tuple[str, ...]] = {
    "schedule": (
        "fuse: [layer1, layer2]\nregions: {r: [T1, T2]}\norder: {r: [i, k]}\nformat: {A: csr}\nblock: {A: [16, 16]}\n"
        "split: {T1.i: 16}\ntile: {i: 1024}\nvector: 4\npar: {i: 4}\ndepth: {r: 128}\nassociate: {T: A (X W)}\nbuffer: {W: 64KB, V: 128}\n"
        "preload: {W: 8}\nplace: {W: scratchpad}\niteration: global\nlocate: never\ncopies: false\ndrop_zeros: [T]\nrecompute: T\n"
        "plan: {W: [{form: 32x32, weight: 10.5}, {form: elements, weight: 8.0}]}\nresident: W, V\n",
        "fuse: layerwise\norder: auto\ndepth: auto\n",
    ),
    "plan": (
        "operands:\n  W:\n  - {form: 32x32, weight: 10.5}\n  - {form: elements, dtype: f32, weight: 8.0}\n",
        "operands: auto\n",
    ),
    "machine": (
        "name: m\nclock_ghz: 1.0\nlatency: {default: 1, add: 4}\ninterval: {fold: 2}\nfifo_depth: auto\nfifo_depth_start: 32\n"
        "tile_macs: 64\nlanes: {8: 8}\nconfig_bytes: 1024\nmemory: {model: hbm2, channels: 4, queue: 32}\n"
        "scratchpad: {bytes: 1MB, banks: 8}\n",
        "base: rda\nmemory: ddr4-3200\nscratchpad: 1MB\n",
        "base: rda\nmemory: {model: fixed, latency: 64}\n",
        "name: m\nfifo_depth: null\nhandover_depth: 2\nmemory: ideal\n",
        "base: rda\nmemory: {table: {base: ddr5-4800, read_queue: 64}}\n",
    ),
    "array": (
        "array:\n  grid: {columns: 4, rows: 4}\n  tiles: {pattern: PM, kinds: {P: PE, M: MEM}}\n  ports: {kind: IO, side: [north, south]}\n"
        "  footprint: onyx\n  memory: {kind: MEM, bytes: 4KB}\n  hop: {slots: 2}\n  load: {drain: 3}\n  delays_ps: {PE: 900}\n",
    ),
    "tensors": ("A: {path: a.npz, order: [i, k], levels: [dense, compressed]}\nB: {path: b.npy}\n",),
    "sweep": (
        f"model: {EXAMPLE}/spmm.ein\ntensors: {EXAMPLE}/tensors.yaml\nmachine: [rda, ideal]\nset: [{{fifo_depth: 16}}]\nseed: [0, 1]\n"
        "vary: {fuse: [none, full], par: [{i: 2}, {i: 4}], order: [best, auto]}\nschedules: [{name: a, copies: false}]\n"
        "mode: prune\ntop: 3\nobjective: bytes\nlimit: 10.5\ncheck: false\npropagate: false\n",
    ),
    "sparsity": (
        "weights:\n  a.weight: {sparsifier: magnitude:0.9, layout: csr, grad: {external: threshold:0.05}}\n"
        "intermediates:\n  relu: {layout: csr}\n",
    ),
}
WRONG: tuple[Any, ...] = ({"a": {"b": 1}}, [[1]], "no such word", 1.5, True)
"""Values, most of which are wrong in each place."""


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    inner = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in inner:
        yield from places(value, (*path, key))


def changed(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    result = copy.deepcopy(content)
    inside = result
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    return result


def mutants(content: Any) -> Iterator[tuple[str, Any]]:
    """Contents with a key that no file has, and with values of another type."""
    for path in ((), *places(content)):
        inside = content
        for step in path:
            inside = inside[step]
        if isinstance(inside, dict):
            yield f"{path}: unknown key", changed(content, (*path, "no_such_key"), "x")
        for value in WRONG if path else ():
            if type(value) is not type(inside):
                yield f"{path}: {value}", changed(content, path, value)


def refused(kind: str, content: Any, folder: Path) -> str:
    """What the reader says of a content that it refuses, else ""."""
    try:
        READERS[kind](write_yaml(content), folder)
    except FuseFlowError as error:
        return error.message
    return ""


@pytest.mark.parametrize("kind", GOOD)
def test_readers_and_schemas_agree(kind: str, tmp_path: Path) -> None:
    """A schema accepts all that a reader accepts, and refuses unknown keys and wrong types as the reader does. What a reader refuses for
    the meaning of a text or for other keys beside it, a schema may accept."""
    checks, count, missed = validator(kind), 0, list[tuple[str, str]]()
    for text in GOOD[kind]:
        content = loaded(text)
        assert refused(kind, content, tmp_path) == "" and checks.is_valid(content), list(checks.iter_errors(content))[:1]
        for what, mutant in mutants(content):
            count += 1
            message, valid = refused(kind, mutant, tmp_path), checks.is_valid(mutant)
            assert message or valid, f"the schema refuses what the reader takes: {what}"
            if message and valid:
                missed.append((what, message))
    assert count > (50 if kind in ("schedule", "machine", "array", "sweep") else 8)
    assert [each for each in missed if each[1].startswith("unknown key")] == []
    assert [each for each in missed if not each[0].endswith(("no such word", "unknown key", "{'a': {'b': 1}}"))] == [], (
        "wrong types"
    )
