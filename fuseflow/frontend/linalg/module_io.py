"""Linalg modules of MLIR: reading, running pass pipelines and printing. MLIR's diagnostics become fuseflow's errors. PyTorch is not
loaded."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from torch_mlir import ir
from torch_mlir.passmanager import PassManager

from fuseflow.dialects.sandboxed_parser import InvalidModuleError, canonical_text
from fuseflow.dialects.text_screen import screen_text
from fuseflow.errors import FrontendError, Span, TensorError
from fuseflow.frontend.foreign_errors import without_addresses
from fuseflow.frontend.linalg.locations import Origin, from_location
from fuseflow.tensors import Format

NAME_ATTRIBUTE = "samml.name"
"""The attribute of an argument that has the name of the tensor in the user's model."""
FORMAT_ATTRIBUTE = "samml.format"
"""The attribute of an argument that has the storage format of the tensor, where its encoding cannot express the format."""

DTYPE_ATTRIBUTE = "samml.dtype"
"""The attribute of an argument that has the element type of the tensor, where the type in MLIR does not say it."""

MAIN = "main"
"""The name of the function that is the model."""
PROGRAM = "samml.program"
"""The attribute of a module that was written from a program, with the name of that program: each operation with a name is an Einsum."""
INDICES = "samml.indices"
"""The attribute of an operation that has the names of its loops, the outermost first."""
OVER = "samml.over"
"""The attribute of a reduction that has its indices as the program has them, where that is not the order of the loops."""
ORDER = "samml.order"
"""The attribute that has the loop order of an Einsum of several operations, or of the region of a function, where maps leave it open."""
UNORDERED = "samml.unordered"
"""The attribute of an Einsum whose loops nobody has ordered."""
DECLARED = "samml.declared"
"""The attribute of a result whose type is declared, and not inferred."""
FILL = "samml.fill"
"""The attribute that has the implicit value of a tensor, if that is not 0."""
PATH = "samml.path"
"""The attribute of an Einsum that has the path of its module in the user's model."""
OPERATOR = "samml.operator"
"""The attribute of the last of the operations that an operator is composed of, with the name of the operator."""

ARGUMENT_ATTRIBUTES = (NAME_ATTRIBUTE, FORMAT_ATTRIBUTE, DTYPE_ATTRIBUTE)

ORDERED_ATTRIBUTE = "samml.ordered"
"""The attribute of a generic operation in a text whose loop order is the user's."""

CLEANUP_PIPELINE = "builtin.module(func.func(linalg-generalize-named-ops,linalg-fold-unit-extent-dims),canonicalize,cse)"
"""The pipeline that cleans up modules without encodings. Its unit-dimension pass does not support encodings."""

GENERALIZE_PIPELINE = "builtin.module(func.func(linalg-generalize-named-ops),canonicalize,cse)"
"""The pipeline that turns named Linalg operations into generic ones in modules with encodings."""


_DIALECTS = ("arith", "bufferization", "dlti", "linalg", "memref", "sparse_tensor", "tensor", "torch")
"""The dialects whose types and attributes a Linalg module may have. MLIR's parser ends the process on some types of other dialects."""


def new_context() -> Any:
    """Return a new MLIR context that knows torch-mlir's dialects."""
    context = ir.Context()
    # `torch_mlir.dialects.torch` has it too, and loads thousands of classes.
    import_module("torch_mlir._mlir_libs._torchMlir").register_dialect(context)
    return context


def text_of(attributes: Any, key: str) -> str:
    """Return the text of an attribute, or '' if there is none. Raise `FrontendError` if it is no text."""
    if key not in attributes:
        return ""
    try:
        return str(ir.StringAttr(attributes[key]).value)
    except ValueError:
        raise FrontendError(f"attribute `{key}` is {attributes[key]}", hint="it is a text, in quotes") from None


def words_of(attributes: Any, key: str) -> tuple[str, ...]:
    """Return the texts of an attribute. Raise `FrontendError` if it is no list of texts."""
    try:
        return tuple(str(ir.StringAttr(word).value) for word in ir.ArrayAttr(attributes[key]))
    except ValueError:
        hint = 'it is a list of texts, as in `["i", "j"]`'
        raise FrontendError(f"attribute `{key}` is {attributes[key]}", hint=hint) from None


def arguments_of(function: Any) -> list[tuple[Any, Any]]:
    """Return the arguments of a function, each with its attributes."""
    arguments = function.body.blocks[0].arguments
    attributes = function.attributes.get("arg_attrs", [{}] * len(arguments))
    return list(zip(arguments, attributes, strict=True))


def refuse_ignored(functions: Iterable[Any], file: str) -> None:
    """Raise `FrontendError` for attributes that mean something only in a module that says which program it is."""
    for function in functions:
        stated = [function.attributes, *function.attributes.get("arg_attrs", ())]
        for key in (ORDER, FILL):
            if any(key in attributes for attributes in stated):
                hint = f'say `module attributes {{{PROGRAM} = "NAME"}}`, or leave it out'
                span = from_location(function.location, file).span
                raise FrontendError(f"`{key}` is read in a module with `{PROGRAM}` alone", hint=hint, span=span)


def stated_format(name: str, text: str, rank: int) -> Format:
    """Return the format that `FORMAT_ATTRIBUTE` of a tensor says. Raise `FrontendError` if it is none for `rank` dimensions."""
    try:
        return Format.parse(text, rank)
    except TensorError as error:
        raise FrontendError(f"tensor `{name}`, attribute `{FORMAT_ATTRIBUTE}`: {error.message}", hint=error.hint) from None


def require_called(functions: Mapping[str, Any], called: Collection[str], file: str) -> None:
    """Raise `FrontendError` for a function that is not among the called ones."""
    for name, function in functions.items():
        if name not in called:
            span = from_location(function.location, file).span
            raise FrontendError(f"nobody calls the function {name}", hint="call it or leave it out", span=span)


def require_read(call: Any, name: str) -> None:
    """Raise `FrontendError` for a result of a call of the function `name` that no operation reads."""
    for number, result in enumerate(call.results, 1):
        if not list(result.uses):
            raise FrontendError(f"nobody reads result {number} of the call of {name}", hint=f"return less from {name}")


def parse_module(text: str, file: str) -> Any:
    """Read a module and turn its named Linalg operations into generic ones. Raise `FrontendError` with the place in `file` for a text that
    does not parse or verify."""
    screen_text(text, file, _DIALECTS, FrontendError)
    message = f"{file} is not a valid MLIR module"
    with new_context() as context, _diagnostics(context, message, file):
        try:
            if re.search(rf"\b{PROGRAM}\s*=", text):  # it was written from a program, and passes would change what stands in it
                return ir.Module.parse(canonical_text(text))
            return ir.Module.parse(canonical_text(text, passes=GENERALIZE_PIPELINE, marks={"linalg.generic": ORDERED_ATTRIBUTE}))
        except InvalidModuleError as error:
            located = [(_origin(diagnostic.location, context, file), diagnostic.message) for diagnostic in error.diagnostics]
            raise _refusal(message, located, Span(file, 1)) from None


def parse_own_module(text: str) -> Any:
    """Read a module that fuseflow itself wrote, as it stands there. Raise `FrontendError` if it does not verify."""
    with new_context() as context, _diagnostics(context, "the text is not a valid MLIR module", ""):
        return ir.Module.parse(text)


def _origin(location: str, context: Any, file: str) -> Origin:
    """Return the origin of the text of a location. MLIR's Python reads none that stands alone."""
    return from_location(ir.Module.parse(f"module {{}} {location}", context).operation.location, file) if location else Origin()


def run_pipeline(module: Any, pipeline: str, step: str, file: str = "") -> None:
    """Run a pass pipeline on a module in place. Raise `FrontendError` if it fails; the message calls it `step`."""
    with module.context, _diagnostics(module.context, f"{step} failed in torch-mlir", file):
        PassManager.parse(pipeline).run(module.operation)


def verify_module(module: Any) -> None:
    """Raise `FrontendError` if a module does not verify."""
    with _diagnostics(module.context, "the Linalg does not verify", ""):
        module.operation.verify()


def print_module(module: Any) -> str:
    """Return the text of a module with names and locations. Of a large constant only a few numbers are printed."""
    return str(module.operation.get_asm(enable_debug_info=True, large_elements_limit=16, large_resource_limit=16))


def functions_of(module: Any) -> dict[str, Any]:
    """Return the functions of a module by name, in order."""
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    return {text_of(function.attributes, "sym_name"): function for function in functions}


def main_function(module: Any, file: str = "") -> Any:
    """Return the function that is the model: the only one, else `main`, else the only one that is not private. Raise `FrontendError` if
    there is none, or if it or one beside it has no body."""
    functions = functions_of(module)
    for name, function in functions.items():
        if not function.body.blocks:
            span = from_location(function.location, file).span
            raise FrontendError(f"the function {name} has no body", hint="give its definition", span=span)
    public = [name for name, function in functions.items() if text_of(function.attributes, "sym_visibility") != "private"]
    (*names,) = functions if len(functions) == 1 else ["main"] if "main" in functions else public
    if len(names) != 1:
        span = next((from_location(function.location, file).span for function in functions.values()), None)
        problem = f"the module has {len(functions)} functions" + (", and none of them is `main`" if functions else "")
        hint = "call the model, from inputs to outputs, `main`; each function that it calls is a fused region"
        raise FrontendError(problem, hint=hint, span=span)
    return functions[names[0]]


@contextmanager
def _diagnostics(context: Any, message: str, file: str) -> Iterator[None]:
    """Turn an MLIR error inside the block into a `FrontendError`. The error is at the place of the first diagnostic, and all
    diagnostics become notes."""
    diagnostics: list[tuple[Origin, str]] = []

    def collect(diagnostic: Any) -> bool:
        diagnostics.append((from_location(diagnostic.location, file), diagnostic.message))
        return True

    handler = context.attach_diagnostic_handler(collect)
    try:
        yield
    except ir.MLIRError as error:
        diagnostics += [(from_location(d.location, file), d.message) for d in error.error_diagnostics]
        raise _refusal(message, diagnostics or [(Origin(), str(error))], None) from error
    finally:
        handler.detach()


def _refusal(message: str, diagnostics: Sequence[tuple[Origin, str]], span: Span | None) -> FrontendError:
    """Return the error with the place of the first diagnostic that has one, or `span`, and all of them as notes."""
    spans = [origin.span for origin, _ in diagnostics if origin.span is not None]
    notes = [without_addresses(" ".join(text.split()))[:300] for _, text in diagnostics]
    paths = [origin.path for origin, _ in diagnostics if origin.path]
    place = f" at module `{paths[0]}`" if paths else ""
    return FrontendError(message + place, notes=notes, span=spans[0] if spans else span)
