"""The inputs of an exported program: the inputs that it was exported with, arrays by name, or random ones where a size changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from fuseflow.errors import FileError, UsageError, did_you_mean
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
