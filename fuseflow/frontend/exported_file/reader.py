"""The reader of exported programs: a file becomes a program of PyTorch, without running anything in it.

The file is a zip archive whose members are stored without compression, so that it holds no more than its size. Weights and constants in it
are raw bytes, and PyTorch's restricted unpickler reads the sample inputs.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._export.serde import schema
from torch._export.serde.serialize import _TORCH_TO_SERIALIZE_DTYPE, ExportedProgramDeserializer, _dict_to_dataclass
from torch.export import ExportedProgram

from fuseflow.errors import FileError
from fuseflow.filesystem import read_bytes
from fuseflow.frontend.exported_file.json_validation import checked_description
from fuseflow.frontend.foreign_errors import quiet
from fuseflow.frontend.torch_tensors import TORCH_DTYPES

_HINT_SAVE = "write it with `torch.export.save(torch.export.export(model, inputs), path)`"
_MOST_MEMBERS = 100_000
_MOST_ELEMENTS = 1 << 30
_MOST_PARTS = 100_000
_DEEPEST = 50
_DTYPES = {int(number): dtype for dtype, number in _TORCH_TO_SERIALIZE_DTYPE.items() if dtype in TORCH_DTYPES}
"""The element types by their numbers in the schema of exported programs."""


def read_exported_program(path: Path) -> ExportedProgram:
    """Read a file that `torch.export.save` wrote. Raise `FileError` for any other one, and for one that would need more than tensors."""
    label = f"`{path}`"
    members = _archive_members(read_bytes(path, "the exported program"), label)
    names = [name for name in members if name.startswith("models/") and name.endswith(".json")]
    if len(names) != 1:
        old = "serialized_exported_program.json" in members
        problem = "was written by an older PyTorch" if old else f"holds {len(names)} exported programs, not one"
        raise FileError(f"{label} {problem}", hint=_HINT_SAVE)
    model = names[0].removeprefix("models/").removesuffix(".json")
    description = checked_description(members[names[0]], label)
    weights = _stored_tensors(members, "data/weights", f"data/weights/{model}_weights_config.json", label)
    constants = _stored_tensors(members, "data/constants", f"data/constants/{model}_constants_config.json", label)
    inputs = _sample_inputs(members.get(f"data/sample_inputs/{model}.pt", b""), label)
    try:
        with quiet():
            program = _dict_to_dataclass(schema.ExportedProgram, description)  # type: ignore[no-untyped-call]
            exported: ExportedProgram = ExportedProgramDeserializer().deserialize(program, weights, constants, inputs)
    except Exception as error:  # a file may be wrong in every way
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"
        raise FileError(f"{label} has no graph that this PyTorch can read: {reason}", hint=_HINT_SAVE) from error
    return exported


def _archive_members(content: bytes, label: str) -> Mapping[str, bytes]:
    """Return the members of an archive in memory, which messages call `label`, by name, without the folder that all are in."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            infos = archive.infolist()
            # A small file must not fill memory.
            if len(infos) > _MOST_MEMBERS or sum(info.file_size for info in infos) > len(content):
                raise FileError(f"{label} says that it holds more than its {len(content):,} bytes", hint=_HINT_SAVE)
            for info in infos:
                if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                    raise FileError(f"{label} has a compressed or encrypted member, `{info.filename}`", hint=_HINT_SAVE)
            members = {info.filename.partition("/")[2]: archive.read(info) for info in infos}
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError, RuntimeError, OSError) as error:
        raise FileError(f"{label} is not a whole archive of PyTorch: {error}", hint=_HINT_SAVE) from error
    if len(members) != len(infos) or len({info.filename.partition("/")[0] for info in infos}) != 1:
        raise FileError(f"{label} has two members of one name, or members in several folders", hint=_HINT_SAVE)
    return members


def _stored_tensors(members: Mapping[str, bytes], folder: str, config: str, label: str) -> dict[str, Tensor]:
    """Return the weights or the constants of a program: members of the archive in `folder`, which the member `config` describes.
    Raise `FileError` for a value that is no plain tensor."""
    if config not in members:
        raise FileError(f"{label} has no `{config}`, which describes its weights or constants", hint="save the program again")
    try:
        entries = json.loads(members[config])["config"]
        return {name: _tensor(name, entry, members, folder, label) for name, entry in entries.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RuntimeError, OverflowError, RecursionError) as error:
        message = f"{label} has malformed weights or constants: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise FileError(message) from error


def _tensor(name: str, entry: Mapping[str, Any], members: Mapping[str, bytes], folder: str, label: str) -> Tensor:
    if entry["use_pickle"] or entry["tensor_meta"] is None or not entry["path_name"].startswith(("weight_", "tensor_")):
        message = f"{label} keeps `{name}` as an object of Python, which could run code when it is read"
        raise FileError(message, hint="export a model whose weights and constants are plain tensors")
    meta, content = entry["tensor_meta"], members.get(f"{folder}/{entry['path_name']}")
    if content is None:
        raise FileError(f"{label} has no numbers for `{name}`", hint="save the program again")
    dtype = _DTYPES.get(meta["dtype"])
    if dtype is None:
        raise FileError(f"{label} has `{name}` with an element type that fuseflow does not read (number {meta['dtype']})")
    sizes = [_integer(part) for part in meta["sizes"]]
    strides = [_integer(part) for part in meta["strides"]]
    elements = math.prod(sizes)
    if elements > _MOST_ELEMENTS:
        raise FileError(f"{label} says that `{name}` has {elements:,} elements")
    if not content and elements:
        raise FileError(f"{label} has no numbers for `{name}`", hint="save the program again")
    flat = torch.frombuffer(bytearray(content), dtype=dtype) if content else torch.empty(0, dtype=dtype)
    tensor = torch.as_strided(flat, sizes, strides, _integer(meta["storage_offset"])).clone()
    return torch.nn.Parameter(tensor, requires_grad=False) if entry["is_param"] else tensor


def _integer(size: Mapping[str, Any]) -> int:
    value: Any = size["as_int"]
    if type(value) is not int or value < 0:
        raise ValueError(f"a size is {value}")
    return value


def _sample_inputs(content: bytes, label: str) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the positional and the keyword arguments that a program was exported with, or None if they were not saved."""
    if not content:
        return None
    _archive_members(content, f"the member of sample inputs in {label}")  # refuses what could fill the memory
    try:
        inputs = torch.load(BytesIO(content), weights_only=True)
    except Exception as error:  # whatever the restricted unpickler meets in a hostile file
        message = f"{label} has sample inputs that hold more than tensors, numbers and containers"
        hint = "export with such inputs alone: reading anything else could run code"
        raise FileError(message, hint=hint, notes=[f"{type(error).__name__}: {str(error).partition('. ')[0][:200]}"]) from error
    match inputs:
        case (tuple() as args, dict() as kwargs) if all(isinstance(name, str) for name in kwargs):
            _require_plain((args, kwargs), label)
            return args, kwargs
        case ():
            return None
    raise FileError(f"{label} has sample inputs that are no arguments: a {type(inputs).__name__}")


def _require_plain(inputs: Any, label: str) -> None:
    """Raise `FileError` for inputs that are deeper or larger than any model takes. A few bytes can describe very many."""
    parts, level = 0, [inputs]
    for _ in range(_DEEPEST):
        parts += len(level)
        if parts > _MOST_PARTS:
            break
        if any(isinstance(value, Tensor) and value.numel() > _MOST_ELEMENTS for value in level):
            raise FileError(f"{label} has a sample input of more than {_MOST_ELEMENTS:,} elements")
        inner = [
            value.values() if isinstance(value, dict) else value for value in level if isinstance(value, tuple | list | dict)
        ]
        if sum(map(len, inner)) > _MOST_PARTS:
            break
        level = [part for value in inner for part in value]
        if not level:
            return
    raise FileError(f"{label} has sample inputs in too many containers")
