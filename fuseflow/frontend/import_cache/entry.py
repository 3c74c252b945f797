"""An entry of the cache: a source and the states of the files that it was made of, as the bytes of one `.npz` archive.

A caller that only wants the names in a program, such as a shell that completes them, reads a part of it.
The archive has `about.json`, the texts `program.ein` and `linalg.mlir`, and one array for each array of a tensor. Nothing in it is code.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import Location, Program
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.errors import Span
from fuseflow.filesystem import read_text
from fuseflow.frontend.draws import Draw
from fuseflow.frontend.import_cache.request import request_digest
from fuseflow.frontend.imported_program import Source, StepInterface, StepModel
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.private_store import PrivateStore
from fuseflow.tensors import Format, Tensor, from_coordinates
from fuseflow.tensors.dtypes import parse_dtype
from fuseflow.tensors.levels import Fibers

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A source without its `expected`, which are arrays or not computed yet, and the states of the files that it was made of. A step that
    was read has no model.

    `reference` says whether PyTorch computes outputs of this model at all.
    """

    source: Source
    states: Mapping[str, str]
    reference: bool
    expected: Arrays | None = None

    @property
    def array_bytes(self) -> int:
        """The size of the values of all tensors, which an entry is larger than."""
        return sum(tensor.values.nbytes for tensor in self.source.tensors.values())


def import_store() -> PrivateStore | None:
    """Return the store of the imports of this user, or None if there is none."""
    return PrivateStore.open("models", ".import")


def last_requests() -> PrivateStore | None:
    """Return the store of the last request for each model file, with which the next one is compared to say why it imports anew."""
    return PrivateStore.open("requests", ".json")


def write_entry(entry: Entry) -> bytes | None:
    """Return an entry as bytes, or None if its program cannot be given as text without a difference, or if it is a training step that
    begins with the states of an optimizer of PyTorch."""
    source, step = entry.source, entry.source.step
    text = show(source.program)
    if parse(text) != source.program or (step is not None and (step.states or step.first_step != 1)):
        return None
    arrays: dict[str, Any] = {}
    about = {
        "name": source.name,
        "data": source.data,
        "options": dict(source.options),
        "seed": source.seed,
        "notices": list(source.notices),
        "constants": list(source.constants),
        "masks": _shapes(source.masks),
        "step": step and {"trained": dict(step.trained), "draws": [astuple(d) for d in step.draws], "masks": _shapes(step.masks)},
        "states": dict(entry.states),
        "places": [{"path": e.location.path, "span": _span(e.location.span)} for e in source.program.einsums],
        "declared_at": [_span(t.span) for t in source.program.tensors],
        "tensors": [_describe(f"tensor{n}", name, t, arrays) for n, (name, t) in enumerate(source.tensors.items())],
        "reference": entry.reference,
        "expected": None if entry.expected is None else list(entry.expected),
    }
    arrays |= _packed_masks("mask", source.masks)
    arrays |= {} if step is None else _packed_masks("step_mask", step.masks)
    arrays |= {f"expected{n}": array for n, array in enumerate((entry.expected or {}).values())}
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("about.json", json.dumps(about))
        archive.writestr("program.ein", text)
        if source.mlir is not None:
            archive.writestr("linalg.mlir", source.mlir)
    return stream.getvalue()


def read_entry(content: bytes) -> Entry:
    """Return the entry that `write_entry` wrote."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays: dict[str, Any] = dict(archive)  # a member that is no array is the bytes of a text
    about, text, mlir = json.loads(arrays["about.json"]), arrays["program.ein"].decode(), arrays.get("linalg.mlir")
    program = parse(text)  # which does not hold the places in the user's files
    locations = (Location(place["path"], _read_span(place["span"])) for place in about["places"])
    einsums = (replace(e, location=location) for e, location in zip(program.einsums, locations, strict=True))
    spans = map(_read_span, about["declared_at"])
    declared = (replace(t, span=span) for t, span in zip(program.tensors, spans, strict=True))
    source = Source(
        about["name"],
        replace(program, einsums=tuple(einsums), tensors=tuple(declared)),
        {d["name"]: _tensor(d, arrays) for d in about["tensors"]},
        None,
        None if mlir is None else mlir.decode(),
        about["data"],
        about["options"],
        about["seed"],
        tuple(about["notices"]),
        constants=tuple(about["constants"]),
        masks=_masks("mask", about["masks"], arrays),
        step=_step(about["step"], arrays),
    )
    names = about["expected"]
    expected = None if names is None else {name: arrays[f"expected{n}"] for n, name in enumerate(names)}
    return Entry(source, about["states"], about["reference"], expected)


def _step(about: Mapping[str, Any] | None, arrays: Arrays) -> StepInterface | None:
    if about is None:
        return None
    draws = tuple(Draw(name, tuple(shape), tuple(strides), *others) for name, shape, strides, *others in about["draws"])
    return StepInterface(about["trained"], draws, _masks("step_mask", about["masks"], arrays), {}, 1, _no_model)


def _no_model() -> StepModel:
    raise AssertionError("an entry holds no model of PyTorch")


def _shapes(masks: Arrays) -> dict[str, list[int]]:
    return {name: list(mask.shape) for name, mask in masks.items()}


def _packed_masks(key: str, masks: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Return masks as bits, by names that begin with `key`."""
    return {f"{key}{n}": np.packbits(mask) for n, mask in enumerate(masks.values())}


def _masks(key: str, shapes: Mapping[str, list[int]], arrays: Arrays) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the masks that `_packed_masks` packed."""
    bits = {name: (arrays[f"{key}{n}"], shape) for n, (name, shape) in enumerate(shapes.items())}
    return {
        name: np.unpackbits(packed, count=math.prod(shape)).reshape(shape).astype(bool) for name, (packed, shape) in bits.items()
    }


def _describe(key: str, name: str, tensor: Tensor, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Return the description of a tensor without its arrays, and add the arrays to `arrays`, with names that begin with `key`."""
    if _readable(tensor.format):
        for number, fibers in enumerate(tensor.levels):
            arrays |= {f"{key}.{number}.{part}": array for part, array in fibers.arrays.items()}
        arrays[f"{key}.values"] = tensor.values
    else:
        arrays[f"{key}.coordinates"], arrays[f"{key}.values"] = tensor.entries()
    return {
        "key": key,
        "name": name,
        "shape": tensor.shape,
        "format": str(tensor.format),
        "fill": tensor.fill,
        "type": tensor.type and tensor.type.name,
    }


def _tensor(described: Mapping[str, Any], arrays: Arrays) -> Tensor:
    key, shape, fill = described["key"], tuple(described["shape"]), described["fill"]
    type = None if described["type"] is None else parse_dtype(described["type"])
    format, values = Format.parse_levels(described["format"]), arrays[f"{key}.values"]
    if not _readable(format):
        return from_coordinates(shape, arrays[f"{key}.coordinates"], values, format, fill, type)
    levels, parents = list[Fibers](), 1
    for number, (level, dimension) in enumerate(zip(format.levels, format.order, strict=True)):
        size = shape[dimension]
        stored = {array.name: arrays[f"{key}.{number}.{array.name}"] for array in level.arrays(size)}
        levels.append(level.read(size, parents, stored))
        parents = levels[-1].entries
    return Tensor(shape, format, tuple(levels), values, fill, type)


def _readable(format: Format) -> bool:
    return all(level.readable for level in format.levels)


def _span(span: Span | None) -> list[str | int | None] | None:
    return None if span is None else [span.file, span.line, span.column]


def _read_span(values: list[Any] | None) -> Span | None:
    return None if values is None else Span(*values)


@dataclass(frozen=True, slots=True)
class ProgramNames:
    """The names in a program that options of a schedule refer to, each in the order of the program."""

    einsums: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()
    indices: tuple[str, ...] = ()


def program_names(spec: ModelSpec) -> ProgramNames:
    """Return the names of a program text, or of a model file that was imported before. There are none if it was not: nothing is
    imported here. Whether the model changed since is not checked."""
    model = Path(str(spec.model))
    if model.suffix == ".ein":
        return _names(parse(read_text(model), str(model)), [])
    store = import_store()
    digest = None if store is None else request_digest(spec)
    content = None if store is None or digest is None else store.read(digest)
    if content is None:
        return ProgramNames()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        places = json.loads(archive.read("about.json"))["places"]
        program = parse(archive.read("program.ein").decode())
    return _names(program, [place["path"] for place in places])


def _names(program: Program, paths: list[str]) -> ProgramNames:
    modules = [path[:end] for path in paths for end in (*(n for n, c in enumerate(path) if c == "."), len(path)) if path]
    tensors = (*(tensor.name for tensor in program.tensors), *program.defined)
    used = (index for e in program.einsums for places in (e.indices, *(a.indices for a in e.accesses)) for index in places)
    indices = (index for index in used if isinstance(index, str))
    return ProgramNames(tuple(program.defined), _unique(modules), _unique(tensors), _unique(indices))


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
