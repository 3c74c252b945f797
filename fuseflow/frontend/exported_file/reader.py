"""The reader of exported programs: a file becomes a program of PyTorch, without running anything in it.

The file is a zip archive whose members are stored without compression, so that it holds no more than its size. Weights and constants in it
are raw bytes, and PyTorch's restricted unpickler reads the sample inputs.

Its inputs are those that it was exported with, arrays by name, or random ones where a size changes.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._export.serde import schema
from torch._export.serde.serialize import _TORCH_TO_SERIALIZE_DTYPE, ExportedProgramDeserializer, _dict_to_dataclass
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from fuseflow.errors import FileError, UsageError, did_you_mean
from fuseflow.filesystem import read_bytes
from fuseflow.frontend.exported_file.json_validation import checked_description
from fuseflow.frontend.foreign_errors import quiet
from fuseflow.frontend.torch_tensors import TORCH_DTYPES
from fuseflow.tensors.array_files import load_array
from fuseflow.tensors.pack import is_scipy
from fuseflow.tensors.tensor_listing import read_entries

Arrays = str | Path | Mapping[str, Any]


def program_inputs(
    program: ExportedProgram, label: str, arrays: Arrays | None, sizes: Mapping[str, int], seed: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and the keyword arguments of a program.

    `arrays` gives inputs by name, in a YAML file or a mapping; the program was exported with the others. `sizes` gives sizes to
    dimensions, as in `{"x.0": 7}`. All inputs in which such a size occurs are then random.
    """
    described = _described_inputs(program)
    values: dict[str, Any] = dict.fromkeys(described)
    if program.example_inputs is not None:
        values = dict(zip(described, pytree.tree_leaves(program.example_inputs), strict=True))
    elif any(value is None for value in described.values()):
        raise FileError(f"{label} has no sample inputs, and its inputs are not tensors alone", hint="save it with its inputs")
    if sizes:
        values |= _resized(program, values, described, sizes, seed)
    for name, array in _arrays(arrays, list(described)).items():
        values[name] = _as_tensor(name, array, described[name])
    for name, value in values.items():
        if value is None and described[name] is not None:
            message = f"input `{name}` of {label} has no numbers: the program was saved without sample inputs"
            raise UsageError(message, hint=f"give it in a file of tensors: `{name}: {{path: FILE.npy}}`")
    spec = program.call_spec.in_spec
    assert spec is not None
    args, kwargs = pytree.tree_unflatten(values.values(), spec)
    return args, kwargs


def call_arguments(
    program: ExportedProgram, label: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and the keyword arguments of a program. Some are given, by position or by name; it was exported with
    the others. Raise `UsageError` for one that is in neither, and for one that the program does not take."""
    spec = program.call_spec.in_spec
    assert spec is not None
    positional, by_name = spec.children()
    signature = program.module_call_graph[0].signature
    known = None if signature is None else signature.forward_arg_names
    by_position = [f"arg{n}" for n in range(positional.num_children)] if known is None else known[: positional.num_children]
    names = [*by_position, *by_name.context]
    if len(args) > positional.num_children:
        message = f"{label} takes {positional.num_children} inputs by position, and {len(args)} are given"
        raise UsageError(message, hint="its inputs are " + ", ".join(f"`{name}`" for name in names))
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names:
            raise UsageError(f"{label} has no input `{name}`", hint=did_you_mean(name, names))
        if name in given:
            raise UsageError(f"input `{name}` of {label} is given twice", hint="give it by position or by name")
        given[name] = value
    sample: dict[str, Any] = {}
    if program.example_inputs is not None:
        sample_args, sample_kwargs = program.example_inputs
        sample = dict(zip(names, [*sample_args, *(sample_kwargs[name] for name in by_name.context)], strict=True))
    missing = [name for name in names if name not in given and name not in sample]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        raise UsageError(f"{label} was saved without sample inputs, and {listed} is not given", hint="give every input")
    values = [given.get(name, sample.get(name)) for name in names]
    for name, value, taken in zip(names, values, [*positional.children(), *by_name.children()], strict=True):
        if pytree.tree_structure(value) != taken:
            message = (
                f"input `{name}` of {label} is not built of tuples, lists and dictionaries as the one that it was exported with"
            )
            hint = f"that one has {taken.num_leaves} parts, and this one {len(pytree.tree_leaves(value))}"
            raise UsageError(message, hint=hint)
    keywords = dict(zip(by_name.context, values[positional.num_children :], strict=True))
    return tuple(values[: positional.num_children]), keywords


def _described_inputs(program: ExportedProgram) -> dict[str, Tensor | None]:
    """Return a description of each input by its name: a tensor without numbers, or None for a value that is no tensor."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    names = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    return {name: value if isinstance(value := values.get(name), Tensor) else None for name in names}


def _arrays(arrays: Arrays | None, names: Sequence[str]) -> Mapping[str, Any]:
    if arrays is None:
        return {}
    if isinstance(arrays, str | Path):
        return {entry.name: load_array(entry.path) for entry in read_entries(arrays, names, "the exported program")}
    for name in arrays:
        if name not in names:
            raise UsageError(f"the exported program has no input `{name}`", hint=did_you_mean(name, names))
    return arrays


def _as_tensor(name: str, array: Any, described: Tensor | None) -> Any:
    """Return an array as a tensor of the type of the input `described`. Raise `UsageError` if its shape does not fit."""
    if described is None:
        raise UsageError(f"input `{name}` of the exported program is no tensor", hint="leave it out: its value is in the file")
    if isinstance(array, Tensor):
        tensor = array
    elif is_scipy(array):
        rows = array.tocsr()
        tensor = torch.sparse_csr_tensor(rows.indptr, rows.indices, torch.from_numpy(rows.data), rows.shape)
    else:
        tensor = torch.from_numpy(np.array(array))
    expected = ["any" if isinstance(size, torch.SymInt) else size for size in described.shape]
    if len(expected) != tensor.dim() or any(e not in ("any", s) for e, s in zip(expected, tensor.shape, strict=True)):
        raise UsageError(f"input `{name}` has the shape {tuple(tensor.shape)}, and the program takes {_shape(described)}")
    return tensor.to(described.dtype)


def _resized(
    program: ExportedProgram,
    values: Mapping[str, Any],
    described: Mapping[str, Tensor | None],
    sizes: Mapping[str, int],
    seed: int,
) -> dict[str, Tensor]:
    """Return random inputs with new sizes, for the inputs `described`: numbers of a normal distribution, or, for integers,
    elements of the sample input."""
    symbols: dict[str, int] = {}
    for place, size in sizes.items():
        symbol = _symbol(program, described, place, size)
        if symbols.setdefault(symbol, size) != size:
            raise UsageError(f"`{place}` is the same dimension as another one, and has another size", hint="give one of them")
    generator = torch.Generator().manual_seed(seed)
    inputs: dict[str, Tensor] = {}
    for name, tensor in described.items():
        if tensor is None or not any(str(size) in symbols for size in tensor.shape if isinstance(size, torch.SymInt)):
            continue
        shape = [symbols.get(str(size), _hint(size)) if isinstance(size, torch.SymInt) else size for size in tensor.shape]
        if tensor.dtype.is_floating_point:
            inputs[name] = torch.randn(shape, generator=generator).to(tensor.dtype)
        elif isinstance(values[name], Tensor) and values[name].numel():
            drawn = torch.randint(values[name].numel(), shape, generator=generator)
            inputs[name] = values[name].reshape(-1)[drawn]
        else:
            raise UsageError(f"input `{name}` has integers, and the file has none to draw from", hint="give it by `--tensors`")
    return inputs


def _symbol(program: ExportedProgram, described: Mapping[str, Tensor | None], place: str, size: int) -> str:
    """Return the symbol of the dimension `place`, which a user names by input and axis, such as `x.0`."""
    name, _, axis = place.rpartition(".")
    tensor = described.get(name)
    if tensor is None:
        known = [f"{n}.{d}" for n, t in described.items() if t is not None for d in range(t.dim())]
        raise UsageError(f"the exported program has no dimension `{place}`", hint=did_you_mean(place, known))
    if not axis.isdecimal() or int(axis) >= tensor.dim():
        raise UsageError(f"input `{name}` has no dimension {axis}: its shape is {_shape(tensor)}", hint=f"as in `{name}.0=7`")
    extent = tensor.shape[int(axis)]
    if not isinstance(extent, torch.SymInt):
        if extent == size:
            return f"{place} is fixed"
        hint = "export it with `dynamic_shapes`"
        raise UsageError(f"dimension {axis} of `{name}` is fixed at {extent} in the exported program", hint=hint)
    symbol = next((s for s in program.range_constraints if str(s) == str(extent)), None)
    if symbol is None:
        free = [str(s) for s in program.range_constraints]
        shapes = {n: t.shape for n, t in described.items() if t is not None}
        places = ", ".join(f"`{n}.{d}`" for n, shape in shapes.items() for d, s in enumerate(shape) if str(s) in free)
        message = f"dimension {axis} of `{name}` is `{extent}`, which follows from other dimensions"
        raise UsageError(message, hint=f"give the size of a dimension that is {' or '.join(free)}: {places}")
    allowed = program.range_constraints[symbol]
    if not (allowed.lower <= size <= allowed.upper) or size < 1:
        raise UsageError(f"`{place}={size}` is out of range: the program takes {max(1, allowed.lower)} to {allowed.upper}")
    return str(symbol)


def _hint(size: torch.SymInt) -> int:
    hint = size.node.hint
    if hint is None:
        raise UsageError(f"the size `{size}` of an input is not known", hint="give every dimension a size")
    return int(hint)


def _shape(tensor: Tensor) -> str:
    return " x ".join(str(size) for size in tensor.shape)


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
