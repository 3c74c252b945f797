"""The sources of a program: a PyTorch module, a model file, a text program or a Linalg module. Tensors stay beside the program, by name."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseflow import frontend
from fuseflow.einsum.blocks import tensors_to_blocks
from fuseflow.einsum.constants import inline_constants
from fuseflow.einsum.index_names import rename_left_side
from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.einsum.parse import parse
from fuseflow.einsum.selections import replace_affine
from fuseflow.einsum.structures import at_shared_places, packing_types
from fuseflow.einsum.verify import verify
from fuseflow.errors import (
    FileError,
    FrontendError,
    FuseFlowError,
    Span,
    SparsityError,
    UsageError,
    counted,
    did_you_mean,
    refuse_unknown,
)
from fuseflow.filesystem import read_text
from fuseflow.frontend.factory import Factory
from fuseflow.frontend.import_cache.cache import import_or_recall
from fuseflow.frontend.imported_program import Source, StepModel, as_propagation, propagated
from fuseflow.frontend.linalg.sparse_encodings import width_notices
from fuseflow.frontend.model_files import describing_data
from fuseflow.frontend.model_spec import ModelArguments, ModelSpec
from fuseflow.tensors import Tensor
from fuseflow.tensors.array_files import check_declared, pack_declared
from fuseflow.tensors.pack import is_torch
from fuseflow.tensors.tensor_listing import load_tensors

if TYPE_CHECKING:
    from fuseflow.frontend.model_spec import Model
    from fuseflow.frontend.trace.model_call import ModelCall
    from fuseflow.sparsity.spec import SparseSpec

__all__ = ["Source", "input_tensors", "load"]

MODEL_KINDS = "give a .py file, `file.py:function`, `package.module:function`, or a .pt2, .ein or .mlir program"
"""A hint that lists the kinds of models."""
TEXT = "<text>"
"""The name of a program that is given as a text, in messages."""
BUILT_FROM = ("data", "data_dir", "formats", "options", "sparsity", "training")
"""The settings for a function that builds a model."""


def load_model(
    model: Model, inputs: Sequence[Any] | Mapping[str, Any] | None, arguments: ModelArguments, caller: Callable[..., Any]
) -> Source:
    """Read the model of a call of `fuseflow.compile`, with its data, as `load` does. `arguments` are keyword arguments of the `caller`.
    Raise `TypeError` for one that no model has."""
    refuse_unknown_arguments(arguments, caller)
    given: dict[str, Any] = {**arguments, "sparsity": as_sparsity(arguments.get("sparsity"))}
    given["propagate"] = as_propagation(arguments.get("propagate"))
    return load(ModelSpec(model, inputs, **given))


def refuse_unknown_arguments(arguments: Iterable[str], caller: Callable[..., Any]) -> None:
    """Raise `TypeError` for a name that is no keyword argument of a model, with the nearest one that the `caller` takes."""
    if unknown := [name for name in arguments if name not in ModelArguments.__annotations__]:
        own = inspect.signature(caller).parameters.values()
        refuse_unknown(
            caller.__name__, unknown, (*(p.name for p in own if p.kind is p.KEYWORD_ONLY), *ModelArguments.__annotations__)
        )


def load(spec: ModelSpec) -> Source:
    """Read a model with its data. Raise `UsageError` for an argument that this kind of model does not accept, and another
    `FuseFlowError` if the model or its data cannot be read."""
    start = time.perf_counter()
    if spec.training is not None and spec.propagate is not None:
        raise UsageError("a training step changes what `propagate` takes as known", hint="leave `propagate` out")
    source = _with_selections(replace(_read(spec), seed=spec.seed))
    affine = None if source.affine is None else inline_constants(source.affine)
    source = replace(source, program=inline_constants(source.program), affine=affine)
    source = source if spec.propagate is None else propagated(source, spec.propagate)
    return replace(source, seconds=time.perf_counter() - start)


def _read(spec: ModelSpec) -> Source:
    """Return the program and the tensors of a model as they are given."""
    model = spec.model
    if isinstance(model, str) and "\n" in model:
        spec.refuse_all_but("a program in a text", "inputs", "tensors")
        program = _program(Path(TEXT), model, linalg=False)
        return Source(program.name, program, _given_tensors(spec, program))
    if isinstance(model, str | Path):
        return _load_file(Path(model), spec)
    if isinstance(model, Program):
        spec.refuse_all_but("an Einsum program", "tensors", "inputs")
        return Source(model.name, model, _given_tensors(spec, model))
    spec.refuse_all_but("a module", "inputs", "kwargs", "formats", "sparsity", "training")
    with sparsified(model, spec, owned=False) as sparse:
        training = _training(spec, model, None)  # whose parameters the optimizer has, and not a copy of it
        return frontend.import_model(sparse, spec.inputs, spec.formats, kwargs=spec.kwargs, training=training)


def _with_selections(source: Source) -> Source:
    """Return a source whose indices with an offset or a factor are products with selections."""
    program, selections = replace_affine(source.program)
    return replace(
        source,
        program=program,
        affine=source.program if selections else None,
        tensors={**source.tensors, **selections},
        constants=(*source.constants, *selections),
        selections=tuple(selections),
    )


def _load_file(path: Path, spec: ModelSpec) -> Source:
    factory = Factory.parse(str(path))
    if factory is not None and factory.module:
        spec.refuse_all_but(f"the function `{path}`", *BUILT_FROM)
        return _import_file(spec)  # A module of Python may depend on more than the files that an entry of the cache names.
    if factory is not None:
        spec.refuse_all_but(f"the model file `{path}`", *BUILT_FROM, "fresh")
        return import_or_recall(spec, _import_file, _step_model)
    match path.suffix:
        case ".ein" | ".mlir":
            spec.refuse_all_but(f"the program `{path}`", "tensors", "inputs")
            text = read_text(path)
            linalg = path.suffix == ".mlir" and not re.search(r'^\s*"einsum\.program"', text, re.MULTILINE)
            program = _program(path, text, linalg)
            notices = width_notices(text, str(path)) if linalg else ()
            tensors = _given_tensors(spec, program)
            return Source(path.stem, program, tensors, None, text if linalg else None, notices=notices)
        case ".pt2":
            spec.refuse_all_but(f"the exported program `{path}`", "tensors", "inputs", "kwargs", "formats", "dims")
            return _load_exported(path, spec)
        case _:
            raise UsageError(f"cannot read `{path}` as a model", hint=MODEL_KINDS)


def _load_exported(path: Path, spec: ModelSpec) -> Source:
    """Import an exported program in a file, on the inputs of the user or on the inputs that it was exported with."""
    from fuseflow.frontend.exported_file.reader import (
        program_inputs,  # both load PyTorch
        read_exported_program,
    )

    program = read_exported_program(path)
    if spec.inputs is not None or spec.kwargs is not None:
        spec.refuse_all_but(f"the exported program `{path}` with `inputs`", "inputs", "kwargs", "formats")
        return frontend.import_model(program, spec.inputs, spec.formats, path.stem, spec.kwargs)
    args, kwargs = program_inputs(program, f"`{path}`", spec.tensors, spec.dims or {}, spec.seed)
    return frontend.import_model(program, args, spec.formats, path.stem, kwargs)


def load_module(spec: ModelSpec) -> frontend.LoadedModel:
    """Run the model file that a spec names, and return the PyTorch module that it builds. Raise `UsageError` for any other model."""
    if Factory.parse(str(spec.model)) is None:
        hint = "give a .py file, `file.py:function` or `package.module:function`"
        raise UsageError(f"`{spec.model}` is no PyTorch model", hint=hint)
    spec.refuse_all_but(f"the model file `{spec.model}`", *BUILT_FROM)
    model = _built_model(spec)
    if isinstance(model.module, Program):
        raise UsageError(f"`{spec.model}` builds a program, not a PyTorch model", hint="a `torch.nn.Module` has weights")
    return model


def _built_model(spec: ModelSpec) -> frontend.LoadedModel:
    directory = None if spec.data_dir is None else Path(spec.data_dir)
    return frontend.load_model(str(spec.model), spec.data, spec.seed, data_dir=directory, options=spec.options or None)


def _import_file(spec: ModelSpec) -> Source:
    """Run the model file that `spec` names and import the model that it builds."""
    factory = Factory.parse(str(spec.model))
    assert factory is not None
    model = _built_model(spec)
    with describing_data(model.interface):
        source = _built(model, spec, factory.stem)
    notices = (*([model.notice] if model.notice else []), *source.notices)
    return replace(source, data=model.data, options=model.options, seed=spec.seed, notices=notices)


def _built(model: frontend.LoadedModel, spec: ModelSpec, name: str) -> Source:
    """Return the source of a model that a model file built, which is a module or a program with its tensors."""
    formats = spec.formats or {}
    match model.module, model.inputs:
        case (Program() as program, Mapping() as tensors):
            if formats:
                message = "a model file that builds a program takes no `formats`"
                raise UsageError(message, hint="its inputs are given by its `build`")
            for constant, entries in (("FORMATS", model.formats), ("INDICES", model.indices)):
                if entries:
                    message = f"model file `{name}` builds a program, which takes no `{constant}`"
                    raise UsageError(message, hint="say it in the program")
            kind = f"model file `{name}`, which builds a program,"
            spec.refuse_all_but(kind, "data", "data_dir", "formats", "options", "fresh")
            return Source(name, program, input_tensors(tensors, program.inputs, copy=False))
        case (_, inputs):
            with _prepared(model, spec) as (sparse, training):
                source = frontend.import_model(sparse, inputs, {**model.formats, **formats}, name, training=training)
            return replace(source, program=rename_left_side(source.program, model.indices))


@contextmanager
def _prepared(model: frontend.LoadedModel, spec: ModelSpec) -> Iterator[tuple[Any, Any]]:
    """Yield the module that a model file built, sparse and in training mode if the spec says so, and its training step or None."""
    module = model.module
    if spec.training is not None and not isinstance(module, Program):
        module.train()
    with sparsified(module, spec, owned=True) as sparse:
        yield sparse, _training(spec, sparse, model)


def _step_model(spec: ModelSpec) -> StepModel:
    """Run the model file that `spec` names, and return the model of its training step, which is not traced."""
    from fuseflow.frontend.trace.model_call import model_call  # loads PyTorch

    def imported(call: ModelCall) -> Mapping[str, Tensor]:
        step = _import_file(spec).step
        assert step is not None
        return step.model().imported(call)

    model = _built_model(spec)
    with describing_data(model.interface), _prepared(model, spec) as (sparse, training):
        return StepModel(training.spec, training.call_of(model_call(sparse, model.inputs, None)), imported)


def _training(spec: ModelSpec, model: Any, built: frontend.LoadedModel | None) -> Any:
    """Return the training step that a spec asks for, or None. A model file that `built` the model may say what the spec leaves out."""
    if spec.training is None:
        return None
    from fuseflow.frontend.trace.training import TrainingDefaults, as_training

    defaults = TrainingDefaults() if built is None else TrainingDefaults(built.loss, built.optimizer, built.target)
    return as_training(spec.training, model, defaults)


def _program(path: Path, text: str, linalg: bool) -> Program:
    """Return the program in the text of a file, which is a Linalg module (`linalg`), MLIR of the `einsum` dialect or program
    text. An error that has no place gets the beginning of the file."""
    try:
        if linalg:
            program = frontend.read_mlir(text, str(path))
        elif path.suffix == ".mlir":
            from fuseflow.einsum import mlir  # It loads torch-mlir.

            program = mlir.from_mlir(text, str(path))
        else:
            program = parse(text, str(path))
        verify(program)
        return program
    except FuseFlowError as error:
        error.span = error.span or Span(str(path), 1)
        raise


def _given_tensors(spec: ModelSpec, program: Program) -> Mapping[str, Tensor]:
    """Return the tensors of a program that a spec gives in `tensors`, or in `inputs`, by name or in the order of their declarations."""
    given = spec.inputs
    if given is None:
        return input_tensors(spec.tensors, program.inputs)
    names = [tensor.name for tensor in program.inputs]
    if spec.tensors is not None:
        raise UsageError(f"the inputs of `{program.name}` are given twice", hint="leave `inputs` or `tensors` out")
    if isinstance(given, list | tuple):
        if len(given) != len(names):
            taken = f"{counted(len(names), 'input')}, {', '.join(f'`{name}`' for name in names)}"
            raise UsageError(f"the program has {taken}; given are {len(given)}", hint="one array for each, in this order")
        given = dict(zip(names, given, strict=True))
    if not isinstance(given, Mapping):
        hint = "pass a tuple with one array for each input, or a mapping with their names"
        raise UsageError(f"the inputs of `{program.name}` are a {type(given).__name__}", hint=hint)
    return input_tensors(given, program.inputs)


def input_tensors(
    tensors: str | Path | Mapping[str, Any] | None, inputs: Sequence[TensorType], *, copy: bool = True
) -> Mapping[str, Tensor]:
    """Return the tensors that a YAML file or a mapping gives for these inputs, packed as declared. Without `copy`, they may share the
    memory of the arrays. Raise `FileError` or `UsageError` for an argument that does not fit."""
    if tensors is None:
        return {}
    types = packing_types(inputs)
    if isinstance(tensors, str | Path):
        return _sharing(inputs, load_tensors(Path(tensors), types))
    declared = {t.name: t for t in types}
    for name in tensors:
        if name not in declared:
            raise UsageError(f"the program has no input `{name}`", hint=did_you_mean(name, declared))
    return _sharing(inputs, {name: _packed(array, declared[name], copy) for name, array in tensors.items()})


def _sharing(inputs: Sequence[TensorType], tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Return tensors of single elements, each at the places of the tensor that it is like. Raises `TensorError` for an entry
    elsewhere."""
    if not any(t.like for t in inputs):
        return tensors
    types = {t.name: t for t in inputs}
    shared = at_shared_places(types, tensors_to_blocks(types, tensors), tensors)
    return {name: tensor if shared[name].tile else shared[name] for name, tensor in tensors.items()}


def _packed(array: Any, declared: TensorType, copy: bool) -> Tensor:
    """Pack an array as declared, or take a tensor that is packed so. An error names the tensor."""
    try:
        if isinstance(array, Tensor):
            check_declared(array, declared)
            return array
        if is_torch(array):
            from fuseflow.frontend.source_values import packed_torch  # few programs in text form have inputs of PyTorch

            return packed_torch(array, declared)
        return pack_declared(array, declared, copy=copy)
    except FuseFlowError as error:
        raise FileError(f"tensor `{declared.name}`: {error.message}", hint=error.hint) from error


def as_sparsity(value: SparseSpec | str | Path | None) -> SparseSpec | Path | None:
    """Return the value of `ModelSpec.sparsity`: a spec as it is, that of a rule as `--sparsify` takes it, the spec in a YAML file, or the
    path of a directory."""
    if not isinstance(value, str | Path):
        return value
    from fuseflow.sparsity.spec import parse_sparsify, read_spec

    if isinstance(value, str) and "=" in value:
        return parse_sparsify(value)
    path = Path(value)
    return path if path.is_dir() else read_spec(path)


@contextmanager
def sparsified(model: Any, spec: ModelSpec, *, owned: bool) -> Iterator[Any]:
    """Yield a model that is sparse as its spec says, or the model itself without such a spec. Inside the block, random numbers
    follow the seed of the spec. A model that is not `owned` is the user's, and is copied.

    Raise `SparsityError` for a spec that does not fit the model, and `FrontendError` for a model that has no weights to be named.
    """
    if not spec.sparsity:
        yield model
        return
    import torch

    if not isinstance(model, torch.nn.Module):
        hint = "a `torch.nn.Module` has weights and intermediates with names"
        raise FrontendError(f"a {type(model).__name__} cannot be made sparse", hint=hint)
    from fuseflow.sparsity.weights import replica

    sparse = model if owned else replica(model)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(spec.seed)
        _make_sparse(sparse, spec)
        yield sparse


def _make_sparse(model: Any, spec: ModelSpec) -> None:
    from fuseflow.sparsity.application import sparsify
    from fuseflow.sparsity.saved import load_sparsity
    from fuseflow.sparsity.spec import SparseSpec

    match spec.sparsity:
        case SparseSpec():
            sparsify(model, spec.sparsity)
        case Path():
            load_sparsity(model, spec.sparsity)
        case unknown:
            hint = "give a `SparseSpec`, or the path of a directory"
            raise SparsityError(f"`{unknown!r}` does not say what is sparse", hint=hint)
