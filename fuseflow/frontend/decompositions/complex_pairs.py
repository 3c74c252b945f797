"""Complex numbers as pairs of real ones: each operator on complex tensors becomes operators on their real and imaginary parts.

No Einsum holds complex numbers, but a model may compute with them on the way, as Fourier layers do. Its outputs must be real.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree

from fuseflow.errors import FrontendError
from fuseflow.frontend.decompositions.fourier import TRANSFORMS, transformed, transforms
from fuseflow.frontend.decompositions.pair_arithmetic import Pair, PairArithmetic, Part
from fuseflow.frontend.positions.selections import Selections, described
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.aten_operators import VIEWS
from fuseflow.frontend.trace.dependence import Memories, remove_unused
from fuseflow.frontend.trace.refusals import refusal

aten = torch.ops.aten

_LINEAR = VIEWS - {"to", "_to_copy", "type_as"} | {
    *("slice", "select", "narrow", "unbind", "split", "split_with_sizes", "chunk", "tensor_split", "diagonal", "tril", "triu"),
    *("cat", "concat", "stack", "hstack", "vstack", "roll", "flip", "repeat", "tile", "fft_fftshift", "fft_ifftshift"),
    *("index", "index_select", "gather", "sum", "mean", "neg", "cumsum", "diff", "numpy_T", "mT"),
}
"""Operators whose real part of the result depends on the real parts of the operands only, in the same way, and so for the
imaginary part."""
_MULTILINEAR = frozenset(["mul", "matmul", "mm", "bmm", "einsum", "dot", "mv"])
_MADE = frozenset(["zeros", "zeros_like", "ones", "ones_like", "empty", "empty_like", "full"])
_HINT = "compute with `.real` and `.imag`, or outside the model"
_COPIES = frozenset(["conj", "_conj", "view_as_real", "resolve_conj", "resolve_neg", "reshape", "contiguous", "flatten"])
"""Operators that may share memory with their operand in PyTorch, where their forms on pairs have memory of their own."""


def separate_complex(selections: Selections) -> list[FrontendError]:
    """Replace, in place, complex values and the operators that read them. Return an error for each operator without a form on
    pairs, and for complex outputs. New arguments then replace these values, so that their users are checked, too."""
    graph = selections.traced.graph_module.graph
    if not any(_is_complex(node) for node in graph.nodes):
        return []
    pass_ = _Pass(selections)
    for node in list(graph.nodes):
        if any(_is_complex(operand) for operand in (node, *node.all_input_nodes)):
            with graph.inserting_before(node):
                pass_.visit(node)
    remove_unused(selections.traced)
    _remove_unused_arguments(selections)
    return pass_.refusals


def _is_complex(node: Node) -> bool:
    """Return whether a value is a complex tensor, or a list of such."""
    return any(isinstance(value, Tensor) and value.is_complex() for value in pytree.tree_leaves(node.meta.get("val")))


def _remove_unused_arguments(selections: Selections) -> None:
    arguments = selections.traced.arguments
    for node in [node for node in arguments if _is_complex(node) and not node.users]:
        del arguments[node]
        node.graph.erase_node(node)


class _Pass:
    """A walk over a graph that maps every complex value to its pair: the nodes of its real and its imaginary part."""

    def __init__(self, selections: Selections) -> None:
        self._selections = selections
        self.refusals: list[FrontendError] = []
        self._pairs: dict[Node, Pair] = {}
        graph = selections.traced.graph_module.graph
        self._memories = Memories(graph)
        self._positions = {node: position for position, node in enumerate(graph.nodes)}

    def visit(self, node: Node) -> None:
        """Add the calls that compute the real and imaginary parts of a node, or replace the node if its value is real."""
        if node.op != "call_function":
            self._visit_output(node)
            return
        if self._selections.dependences.get(node) == "structure":
            self._visit_known(node)
            return
        if any(self._pair(operand) is None for operand in node.all_input_nodes):
            return  # the operand is refused
        name = fx_origin.short_name(node.target)
        parts = None if name in _COPIES and self._is_written_later(node) else self._parts(node, name)
        if parts is None:
            problem = f"complex numbers in `{fx_origin.shown_operator(node)}`, which has no form on pairs of real numbers"
            self.refusals.append(refusal(node, problem, _HINT))
            parts = self._stand_in(node), self._stand_in(node)
        if _is_complex(node):
            real, imaginary = (self._whole(node, part) for part in parts)
            self._pairs[node] = real, imaginary
        else:
            assert isinstance(parts[0], Node), "what gives real numbers gives a tensor"
            node.replace_all_uses_with(parts[0])

    def _visit_output(self, node: Node) -> None:
        if node.op == "output":
            for value in node.all_input_nodes:
                if _is_complex(value) and self._pair(value) is not None:
                    hint = "return `torch.view_as_real` of it"
                    self.refusals.append(refusal(value, "an output of complex numbers", hint))
                    node.replace_input_with(value, self._stand_in(value))

    def _stand_in(self, node: Node) -> Node:
        """Return a new argument of zeros that replaces a part of the value of a refused node."""
        value = node.meta["val"]
        if not isinstance(value, Tensor):
            raise self.refusals[-1]
        zeros = torch.zeros(1, dtype=value.real.dtype).expand(value.shape)
        return self._selections.argument(f"blocked.{node.name}", zeros)

    def _visit_known(self, node: Node) -> None:
        """Make an argument of real numbers that are computed from known complex ones. Known complex numbers become two arguments
        where they are used."""
        numbers = self._selections.known(node)
        if numbers is not None and not numbers.is_complex():
            name = fx_origin.short_name(node.target)
            node.replace_all_uses_with(self._selections.argument(name, numbers.resolve_neg().contiguous()))

    def _is_written_later(self, node: Node) -> bool:
        writers = self._memories.writers(self._memories.root(node))
        return any(self._positions[writer] > self._positions[node] for writer in writers)

    def _whole(self, node: Node, part: Part) -> Part:
        """Return a part in the shape of the value of the node: a part made from a number or a smaller operand is broadcast."""
        value = node.meta["val"]
        if part is None or not isinstance(value, Tensor):
            return part
        if not isinstance(part, Node):
            return self._at(node).call(_filled, list(value.shape), part, value.dtype.to_real())
        return part if described(part).shape == value.shape else self._at(node).call(aten.expand.default, part, list(value.shape))

    def _parts(self, node: Node, name: str) -> Pair | None:
        """Return the real and the imaginary part of the value of a node, or None if its operator has no form on pairs."""
        if node.target is operator.getitem:
            return self._taken(node)
        if name in TRANSFORMS:
            return self._transformed(node, name)
        if name in _MADE:
            return self._made(node)
        if name in _LINEAR:
            return self._linear(node)
        if name in _MULTILINEAR or (name in ("add", "sub", "rsub", "div") and not node.kwargs and len(node.args) == 2):
            return self._arithmetic(node, name)
        handler = _HANDLERS.get(name)
        return None if handler is None else handler(self, node)

    # Operands ---------------------------------------------------------------------------------------------------------

    def _pair(self, operand: object) -> Pair | None:
        """Return the real and the imaginary part of an operand, or None for a complex value without parts."""
        if isinstance(operand, complex):
            return operand.real, operand.imag
        if not isinstance(operand, Node) or not _is_complex(operand):
            return operand, None  # type: ignore[return-value]  # a number or a real value
        if operand not in self._pairs:
            tensor = self._numbers(operand)
            if tensor is None:
                return None
            self._pairs[operand] = self._split(operand, tensor)
        return self._pairs[operand]

    def _numbers(self, node: Node) -> Tensor | None:
        argument = self._selections.traced.arguments.get(node)
        tensor = self._selections.known(node) if argument is None else argument.tensor
        return tensor if tensor is not None and tensor.layout == torch.strided and not tensor.is_meta else None

    def _split(self, node: Node, tensor: Tensor) -> Pair:
        """Return two new arguments, for the real and the imaginary part, instead of a complex argument or known complex value."""
        selections = self._selections
        argument = selections.traced.arguments.get(node)
        name = fx_origin.short_name(node.target) if argument is None else argument.name
        sides = (("real", tensor.real), ("imaginary", tensor.imag))
        nodes = [selections.argument(f"{name}_{part}", side.resolve_neg().contiguous()) for part, side in sides]
        for part in nodes:
            selections.dependences[part] = selections.dependences[node]
        return nodes[0], nodes[1]

    def _operands(self, node: Node) -> list[Pair]:
        """Return the real and imaginary parts of the operands of a call, in order. Numbers that are no tensors have one part."""
        pairs = [self._pair(operand) for operand in node.args]
        assert all(pair is not None for pair in pairs), "a node is visited if its operands have parts"
        return [pair for pair in pairs if pair is not None]

    # Operators --------------------------------------------------------------------------------------------------------

    def _at(self, node: Node) -> PairArithmetic:
        return PairArithmetic(self._selections, node)

    def _transformed(self, node: Node, name: str) -> Pair | None:
        real, imaginary = self._operands(node)[0]
        for transform in transforms(node, name):
            assert isinstance(real, Node) and not isinstance(imaginary, float)
            real, imaginary = transformed(self._selections, node, transform, real, imaginary)
        return real, imaginary

    def _made(self, node: Node) -> Pair | None:
        """Return the parts of a new tensor of zeros or of one number. Each part is its own memory, which may be written to."""
        shape, dtype = list(described(node).shape), described(node).dtype.to_real()
        name = fx_origin.short_name(node.target)
        number = complex(node.args[1]) if name == "full" else 1 + 0j if name.startswith("ones") else 0j  # type: ignore[arg-type]
        real, imaginary = (self._at(node).call(_filled, shape, part, dtype) for part in (number.real, number.imag))
        return real, imaginary

    def _linear(self, node: Node) -> Pair | None:
        return self._side(node, 0), self._side(node, 1)

    def _side(self, node: Node, side: int) -> Node | None:
        """Return the call of an operator on the real (`side` 0) or the imaginary parts (1) of its operands, or None if all are
        0."""
        nodes = [operand for operand in node.all_input_nodes if _is_complex(operand) or described(operand).is_floating_point()]
        parts = {operand: self._parts_of(operand)[side] for operand in nodes}
        if all(part is None for part in parts.values()):
            return None
        present = {o: p if isinstance(p, Node) else self._at(node).zeros(self._parts_of(o)[1 - side]) for o, p in parts.items()}
        args = map_arg(node.args, lambda operand: present.get(operand, operand))
        kwargs = map_arg(node.kwargs, lambda operand: present.get(operand, operand))
        return self._selections.computed(node, node.target, tuple(args), **kwargs)  # type: ignore[arg-type]

    def _taken(self, node: Node) -> Pair | None:
        """Return the parts of an element of a list of tensors."""
        source, position = node.args
        assert isinstance(source, Node) and isinstance(position, int)
        real, imaginary = (self._element(node, part, position) for part in self._parts_of(source))
        return real, imaginary

    def _element(self, node: Node, values: Part, position: int) -> Part:
        if not isinstance(values, Node):
            return None
        element = node.graph.call_function(operator.getitem, (values, position))
        element.meta = {**node.meta, "val": values.meta["val"][position]}
        self._selections.dependences[element] = "data"
        return element

    def _parts_of(self, node: Node) -> Pair:
        pair = self._pair(node)
        assert pair is not None, "a node is visited if its operands have parts"
        return pair

    def _arithmetic(self, node: Node, name: str) -> Pair | None:
        if name == "einsum":
            equation, operands = node.args[:2]
            assert isinstance(operands, Sequence)
            pairs = [self._parts_of(operand) for operand in operands if isinstance(operand, Node)]
            at = self._at(node)
            return at.multilinear(pairs, lambda *parts: at.call(aten.einsum.default, equation, list(parts)))
        x, y = self._operands(node)[:2]
        at = self._at(node)
        match name:
            case "add":
                return at.add(x[0], y[0]), at.add(x[1], y[1])
            case "sub":
                return at.subtract(x[0], y[0]), at.subtract(x[1], y[1])
            case "rsub":
                return at.subtract(y[0], x[0]), at.subtract(y[1], x[1])
            case "div":
                return at.quotient(x, y)
            case "mul":
                return at.product(x, y)
            case _:
                target: Any = node.target
                return at.multilinear([x, y], lambda *parts: at.call(target, *parts))

    def _conjugate(self, node: Node) -> Pair | None:
        ((real, imaginary), *_) = self._operands(node)
        return real, self._at(node).negative(imaginary)

    def _magnitude(self, node: Node) -> Pair | None:
        at = self._at(node)
        ((real, imaginary), *_) = self._operands(node)
        if imaginary is None:
            return at.call(aten.abs.default, real), None
        return at.call(aten.sqrt.default, at.square_of_magnitude((real, imaginary))), None

    def _real(self, node: Node) -> Pair | None:
        real, imaginary = self._operands(node)[0]
        return (self._at(node).zeros(imaginary) if real is None else real), None

    def _imaginary(self, node: Node) -> Pair | None:
        real, imaginary = self._operands(node)[0]
        return (self._at(node).zeros(real) if imaginary is None else imaginary), None

    def _power(self, node: Node) -> Pair | None:
        exponent = 2 if len(node.args) == 1 else node.args[1]
        if not isinstance(exponent, int) or not 1 <= exponent <= 8:
            return None
        base = self._operands(node)[0]
        result = base
        for _ in range(exponent - 1):
            result = self._at(node).product(result, base)
        return result

    def _reciprocal(self, node: Node) -> Pair | None:
        return self._at(node).quotient((1.0, None), self._operands(node)[0])

    def _exponential(self, node: Node) -> Pair | None:
        ((real, imaginary), *_) = self._operands(node)
        size = None if real is None else self._at(node).call(aten.exp.default, real)
        return self._at(node).polar(1.0 if size is None else size, imaginary)

    def _polar(self, node: Node) -> Pair | None:
        (size, _), (angle, _) = self._operands(node)[:2]
        return self._at(node).polar(size, angle)

    def _joined(self, node: Node) -> Pair | None:
        (real, _), (imaginary, _) = self._operands(node)[:2]
        return real, imaginary

    def _viewed_as_complex(self, node: Node) -> Pair | None:
        ((x, _), *_) = self._operands(node)
        real, imaginary = (self._at(node).call(aten.select.int, x, -1, side) for side in (0, 1))
        return real, imaginary

    def _viewed_as_real(self, node: Node) -> Pair | None:
        pair = self._operands(node)[0]
        parts = [part if isinstance(part, Node) else self._at(node).zeros(pair[0] or pair[1]) for part in pair]
        return self._at(node).call(aten.stack.default, parts, -1), None

    def _converted(self, node: Node) -> Pair | None:
        if not _is_complex(node):
            return None  # which drops the imaginary part, with a warning
        dtype = described(node).dtype.to_real()
        real, imaginary = (
            self._at(node).call(aten.to.dtype, part, dtype) if isinstance(part, Node) else None
            for part in self._operands(node)[0]
        )
        return real, imaginary

    def _written(self, node: Node) -> Pair | None:
        """Return the parts of a copy into existing memory, each part into its own. None for a target that is no memory."""
        target, source = self._operands(node)[:2]
        if not isinstance(target[0], Node) or not isinstance(target[1], Node):
            return None
        parts = [part if isinstance(part, Node) else self._at(node).zeros(source[0] or source[1]) for part in source]
        real, imaginary = (self._at(node).call(aten.copy_.default, *sides) for sides in zip(target, parts, strict=True))
        return real, imaginary


def _filled(shape: list[int], number: float, dtype: torch.dtype) -> Tensor:
    return torch.full(shape, number, dtype=dtype)


_HANDLERS: dict[str, Callable[[_Pass, Node], Pair | None]] = {
    **dict.fromkeys(("conj", "_conj", "conj_physical"), _Pass._conjugate),
    **dict.fromkeys(("resolve_conj", "resolve_neg"), _Pass._linear),
    **dict.fromkeys(("pow", "square"), _Pass._power),
    **dict.fromkeys(("to", "_to_copy"), _Pass._converted),
    "abs": _Pass._magnitude,
    "real": _Pass._real,
    "imag": _Pass._imaginary,
    "reciprocal": _Pass._reciprocal,
    "exp": _Pass._exponential,
    "polar": _Pass._polar,
    "complex": _Pass._joined,
    "view_as_complex": _Pass._viewed_as_complex,
    "view_as_real": _Pass._viewed_as_real,
    "copy_": _Pass._written,
}
"""For each operator, by name, how the parts of its value are computed."""
