"""The description of an exported program: JSON that PyTorch makes a graph of.

Making the graph, PyTorch evaluates expressions of sizes, looks targets up by name, imports classes that containers name, and writes names
into Python code. Each such text is checked here against what `torch.export` writes, and any other text is refused. Guards, which PyTorch
would execute, are left out: the program is run once, on tensors whose sizes are checked.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

import torch

from fuseflow.errors import FileError, did_you_mean

Json = Any

_NAME = re.compile(r"[\w.+\-]*")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PLAIN_CONTAINERS = ("builtins.tuple", "builtins.list", "builtins.dict", None)
_SIZE_FUNCTIONS = frozenset(
    """
    Symbol Integer Rational Float Add Mul Pow Max Min Mod FloorDiv ModularIndexing Where PythonMod CleanDiv CeilToInt FloorToInt
    CeilDiv IntTrueDiv FloatTrueDiv TruncToFloat TruncToInt RoundToInt ToFloat Identity IsNonOverlappingAndDenseIndicator
    Equality Unequality StrictLessThan LessThan StrictGreaterThan GreaterThan And Or Not
    """.split()  # noqa: SIM905, as in a table
)
_SIZE_NAMES = frozenset({"true", "false", "True", "False", "oo", "int_oo"})
_LONGEST_EXPRESSION, _LARGEST_EXPONENT, _MOST_POWERS = 2000, 8, 3
_OTHER_TARGETS = re.compile(
    r"_operator\.(getitem|add|sub|mul|floordiv|truediv|mod|eq|ne|lt|le|gt|ge|neg|and_|or_|not_)"
    r"|torch\.sym_(not|float|int|max|min|sum|sqrt|ite)|math\.(ceil|floor|trunc)"
    r"|torch\.ops\.higher_order\.(wrap_with_set_grad_enabled|wrap_with_autocast)"
)
_FORBIDDEN_OPERATORS = frozenset({"from_file"})
"""Operators of ATen that read or write files."""


def checked_description(content: bytes, label: str) -> Json:
    """Return the description of a program with nothing in it that could run. Raise `FileError` for anything else."""
    try:
        program = json.loads(content)
        if not isinstance(program, dict):
            raise TypeError("it is no object")
        program["guards_code"] = []
        module = program["graph_module"]
        module["metadata"] = {}
        module["treespec_namedtuple_fields"] = {}
        root, *parts = module["module_call_graph"]
        signature = root["signature"]
        protocol, tree = json.loads(signature["in_spec"])
        signature["in_spec"] = json.dumps([protocol, _plain(tree, label)])
        # The containers of the outputs, which may be of any class, hold no numbers: they become one tuple.
        leaf: Json = {"type": None, "context": None, "children_spec": []}
        leaves = [leaf] * _count_leaves(json.loads(signature["out_spec"])[1])
        signature["out_spec"] = json.dumps([1, {"type": "builtins.tuple", "context": "null", "children_spec": leaves}])
        module["module_call_graph"] = [root, *({"fqn": part["fqn"], "signature": None} for part in parts)]
        _check(program, "", label)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise FileError(f"{label} has a malformed description of its graph: {type(error).__name__}: {error}") from error
    return program


def _check(value: Json, key: str, label: str) -> None:
    """Check every text below a value. `key` is the key of the value in the object around it."""
    match key, value:
        case "metadata", dict():  # Messages need to know where an operator came from, and nothing needs the rest.
            kept = {name: value[name] for name in ("stack_trace", "nn_module_stack") if isinstance(value.get(name), str)}
            value.clear()
            value |= {name: _CONTROL.sub("", text) for name, text in kept.items()}
        case _, dict():
            for name, part in value.items():
                _check_name(name, label)
                _check(part, name, label)
        case _, list():
            for part in value:
                _check(part, key, label)
        case "expr_str", str():
            if len(value) > _LONGEST_EXPRESSION or not _is_size(value):
                raise FileError(f"{label} has an expression of sizes that `torch.export` does not write: {_shown(value)}")
        case "target", str():
            _check_target(value, label)
        case "in_spec" | "out_spec", str():
            pass  # They were made anew.
        case "as_string", str():  # an argument of an operator, such as the equation of an einsum
            if not value.isprintable():
                raise FileError(f"{label} has an argument that is no text: {_shown(value)}")
        case _, str():
            _check_name(value, label)


def _check_name(text: str, label: str) -> None:
    if not _NAME.fullmatch(text):
        raise FileError(f"{label} has a name or a text that `torch.export` does not write: {_shown(text)}")


def _check_target(target: str, label: str) -> None:
    """Check that the target of a node is an operator that computes. Other functions of PyTorch do anything, even load code."""
    if _OTHER_TARGETS.fullmatch(target):
        return
    prefix, _, name = target.rpartition("torch.ops.aten.")
    operator, _, overload = name.partition(".")
    if prefix or operator in _FORBIDDEN_OPERATORS or "." in overload or not overload:
        raise FileError(f"{label} calls {_shown(target)}, which is no operator of ATen that computes")
    packet = getattr(torch.ops.aten, operator, None)
    overloads: list[str] = packet.overloads() if isinstance(packet, torch._ops.OpOverloadPacket) else []  # type: ignore[no-untyped-call]
    if overload not in overloads:
        near = did_you_mean(overload, overloads) if overloads else did_you_mean(operator, dir(torch.ops.aten))
        message = f"{label} calls {_shown(target)}, which this PyTorch ({torch.__version__}) does not have"
        raise FileError(message, hint=near)


def _is_size(text: str) -> bool:
    """Return whether an expression holds symbols, numbers and arithmetic alone, since PyTorch evaluates it as Python."""
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError, MemoryError):
        return False
    powers = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Pow"]
    return all(map(_is_arithmetic, nodes)) and len(powers) <= _MOST_POWERS and all(map(_has_small_exponent, powers))


def _is_arithmetic(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in _SIZE_FUNCTIONS
        case ast.Name(id=name):
            return name in _SIZE_FUNCTIONS | _SIZE_NAMES
        case ast.Constant(value=str(text)):
            return text.isidentifier()
        case ast.Constant(value=value):
            return isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 1 << 63)
        case ast.Expression() | ast.keyword() | ast.Load() | ast.UnaryOp(op=ast.USub()) | ast.USub():
            return True
        case _:
            return False


def _has_small_exponent(power: ast.Call) -> bool:
    match power.args:
        case [_, ast.Call(func=ast.Name(id="Integer"), args=[exponent])]:
            try:
                return abs(int(ast.literal_eval(exponent))) <= _LARGEST_EXPONENT
            except (ValueError, TypeError):
                return False
        case _:
            return False


def _plain(tree: Json, label: str) -> Json:
    """Return the structure of inputs, which must be of tuples, lists and dictionaries. PyTorch would import the classes of others."""
    if tree["type"] not in _PLAIN_CONTAINERS:
        message = f"{label} has inputs in a container of type {_shown(str(tree['type']))}"
        raise FileError(message, hint="export a model that takes tensors in tuples, lists and dictionaries")
    context = None if tree["context"] is None else json.loads(tree["context"])
    if not (context is None or (isinstance(context, list) and all(isinstance(name, str) for name in context))):
        raise FileError(f"{label} has inputs by names that are no texts: {_shown(str(context))}")
    for name in context or ():
        _check_name(name, label)
    children = [_plain(child, label) for child in tree["children_spec"]]
    return {"type": tree["type"], "context": None if tree["type"] is None else json.dumps(context), "children_spec": children}


def _count_leaves(tree: Mapping[str, Json]) -> int:
    return 1 if tree["type"] is None else sum(map(_count_leaves, tree["children_spec"]))


def _shown(text: str) -> str:
    """Return a text of a file as a message may hold it."""
    return f"`{_CONTROL.sub('', text[:60])}`" + (" ..." if len(text) > 60 else "")
