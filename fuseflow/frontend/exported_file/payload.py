"""The tensors of an exported program: weights and constants, which are raw bytes, and sample inputs, which PyTorch's restricted unpickler
reads."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import torch
from torch import Tensor
from torch._export.serde.serialize import _TORCH_TO_SERIALIZE_DTYPE

from fuseflow.errors import FileError
from fuseflow.frontend.exported_file.archive import archive_members
from fuseflow.frontend.torch_tensors import TORCH_DTYPES

_MOST_ELEMENTS = 1 << 30
_MOST_PARTS = 100_000
_DEEPEST = 50
_DTYPES = {int(number): dtype for dtype, number in _TORCH_TO_SERIALIZE_DTYPE.items() if dtype in TORCH_DTYPES}
"""The element types by their numbers in the schema of exported programs."""


def stored_tensors(members: Mapping[str, bytes], folder: str, config: str, label: str) -> dict[str, Tensor]:
    """Return the weights or the constants of a program: members of the archive in `folder`, which the member `config` describes.
    Raise `FileError` for a value that is no plain tensor."""
    if config not in members:
        raise FileError(f"{label} has no `{config}`, which describes its weights or constants", hint="save the program again")
    try:
        entries = json.loads(members[config])["config"]
        parameters = {name: _tensor(name, entry, members, folder, label) for name, entry in entries.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RuntimeError, OverflowError, RecursionError) as error:
        message = f"{label} has malformed weights or constants: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise FileError(message) from error
    return parameters


def _tensor(name: str, entry: Mapping[str, Any], members: Mapping[str, bytes], folder: str, label: str) -> Tensor:
    if entry["use_pickle"] or entry["tensor_meta"] is None or not entry["path_name"].startswith(("weight_", "tensor_")):
        message = f"{label} keeps `{name}` as an object of Python, which could run code when it is read"
        raise FileError(message, hint="export a model whose weights and constants are plain tensors")
    record = f"{folder}/{entry['path_name']}"
    if record not in members:
        raise FileError(f"{label} has no numbers for `{name}`", hint="save the program again")
    meta, content = entry["tensor_meta"], members[record]
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


def sample_inputs(content: bytes, label: str) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the positional and the keyword arguments that a program was exported with, or None if they were not saved."""
    if not content:
        return None
    archive_members(content, f"the member of sample inputs in {label}")  # refuses what could fill the memory
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
