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
from fuseflow.frontend.decompositions.fourier import TRANSFORMS, FourierTransform
from fuseflow.frontend.decompositions.pair_arithmetic import Pair, PairArithmetic, Part
from fuseflow.frontend.positions.selections import Selections, described, first_operand
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import Memories, remove_unused
from fuseflow.frontend.trace.operator_support import VIEWS
from fuseflow.frontend.trace.refusals import refusal

aten = torch.ops.aten

_LINEAR = VIEWS - {"to", "_to_copy", "type_as"} | {
    *("slice", "select", "narrow", "unbind", "split", "split_with_sizes", "chunk", "tensor_split", "diagonal", "tril", "triu"),
    *("cat", "concat", "stack", "hstack", "vstack", "roll", "flip", "repeat", "tile", "fft_fftshift", "fft_ifftshift"),
    *("index", "index_select", "gather", "sum", "mean", "neg", "cumsum", "diff", "numpy_T", "mT", "resolve_conj", "resolve_neg"),
}
"""Operators whose real part of the result depends on the real parts of the operands only, in the same way, and so for the
imaginary part."""
_PADDING = {"pad": 3, "constant_pad_nd": 2}
"""How many arguments of an operator are before the number that it pads with, which is real."""
_MULTILINEAR = frozenset(["matmul", "mm", "bmm", "dot", "mv"])
_WITHOUT_OPTIONS = frozenset(["add", "sub", "rsub", "div"])
"""Operators that have a form on pairs if they have two operands and nothing else."""
_FORMS: dict[str, Callable[..., Pair | None]] = {
    "add": PairArithmetic.sum,
    "sub": PairArithmetic.difference,
    "rsub": lambda at, x, y: at.difference(y, x),
    "div": PairArithmetic.quotient,
    "mul": PairArithmetic.product,
    **dict.fromkeys(("conj", "_conj", "conj_physical"), PairArithmetic.conjugate),
    **dict.fromkeys(("pow", "square"), PairArithmetic.power),
    **dict.fromkeys(("to", "_to_copy"), PairArithmetic.converted),
    "abs": PairArithmetic.magnitude,
    "real": PairArithmetic.real,
    "imag": PairArithmetic.imaginary,
    "reciprocal": PairArithmetic.reciprocal,
    "exp": PairArithmetic.exponential,
    "polar": PairArithmetic.polar,
    "complex": PairArithmetic.joined,
    "view_as_complex": PairArithmetic.viewed_as_complex,
    "view_as_real": PairArithmetic.viewed_as_real,
    "copy_": PairArithmetic.written,
}
"""For each of the other operators, by name, how its value is computed from the pairs of its operands."""
_SEVERAL_DIMENSIONS = {f"fft_{name}{suffix}": name for name in ("fft", "ifft", "rfft", "irfft") for suffix in ("n", "2")}
_TRANSFORMS = frozenset((*TRANSFORMS, *_SEVERAL_DIMENSIONS))
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
    arguments = selections.traced.arguments
    for node in [node for node in arguments if _is_complex(node) and not node.users]:
        del arguments[node]
        graph.erase_node(node)
    return pass_.refusals


def _is_complex(node: Node) -> bool:
    """Return whether a value is a complex tensor, or a list of such."""
    return any(isinstance(value, Tensor) and value.is_complex() for value in pytree.tree_leaves(node.meta.get("val")))


class _Pass:
    """A walk over a graph that maps every complex value to its pair: the nodes of its real and its imaginary part."""

    def __init__(self, selections: Selections) -> None:
        self._selections = selections
        self.refusals: list[FrontendError] = []
        self._pairs: dict[Node, Pair] = {}
        self._memories = Memories(selections.traced.graph_module.graph)

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
        writers = self._memories.writers(self._memories.root(node)) if name in _COPIES else []
        parts = None if any(writer > node for writer in writers) else self._parts(node, name)
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

    def _whole(self, node: Node, part: Part) -> Part:
        """Return a part in the shape of the value of the node: a part made from a number or a smaller operand is broadcast."""
        value, at = node.meta["val"], PairArithmetic(self._selections, node)
        if part is None or not isinstance(value, Tensor):
            return part
        if not isinstance(part, Node):
            return at.filled(value.shape, part, value.dtype)
        return part if described(part).shape == value.shape else at.call(aten.expand.default, part, list(value.shape))

    def _parts(self, node: Node, name: str) -> Pair | None:
        """Return the real and the imaginary part of the value of a node, or None if its operator has no form on pairs."""
        at, target = PairArithmetic(self._selections, node), node.target
        if target is operator.getitem:
            return self._taken(node)
        if name in _MADE:
            number = complex(node.args[1]) if name == "full" else 1 + 0j if name.startswith("ones") else 0j  # type: ignore[arg-type]
            made = described(node)
            return at.filled(made.shape, number.real, made.dtype), at.filled(made.shape, number.imag, made.dtype)
        if name in _LINEAR:
            return self._side(at, 0), self._side(at, 1)
        if name in _PADDING:
            return self._side(at, 0), self._side(at, 1, _PADDING[name])
        if name == "einsum":
            equation, operands = node.args[:2]
            assert isinstance(operands, Sequence)
            pairs = [self._parts_of(operand) for operand in operands]
            return at.multilinear(pairs, lambda *parts: at.call(aten.einsum.default, equation, list(parts)))
        pairs = [self._parts_of(operand) for operand in node.args]
        if name in _TRANSFORMS:
            return _transformed(at, name, pairs[0])
        if name in _MULTILINEAR:
            return at.multilinear(pairs, lambda *parts: at.call(target, *parts))  # type: ignore[arg-type]
        if name not in _FORMS or (name in _WITHOUT_OPTIONS and (node.kwargs or len(pairs) != 2)):
            return None
        return _FORMS[name](at, *pairs)

    def _pair(self, operand: object) -> Pair | None:
        """Return the real and the imaginary part of an operand, or None for a complex value without parts."""
        if isinstance(operand, complex):
            return operand.real, operand.imag
        if not isinstance(operand, Node) or not _is_complex(operand):
            return operand, None  # type: ignore[return-value]  # a number or a real value
        if operand not in self._pairs:
            argument = self._selections.traced.arguments.get(operand)
            tensor = self._selections.known(operand) if argument is None else argument.tensor
            if tensor is None or tensor.layout != torch.strided or tensor.is_meta:
                return None
            self._pairs[operand] = self._split(operand, tensor)
        return self._pairs[operand]

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

    def _parts_of(self, operand: object) -> Pair:
        """Return the real and imaginary parts of an operand of a node that is visited. Numbers that are no tensors have one part."""
        pair = self._pair(operand)
        assert pair is not None, "a node is visited if its operands have parts"
        return pair

    def _side(self, at: PairArithmetic, side: int, count: int | None = None) -> Node | None:
        """Return the call of an operator on the real (`side` 0) or the imaginary parts (1) of its operands, or None if all are 0. It has
        the first `count` arguments."""
        node = at.node
        nodes = [operand for operand in node.all_input_nodes if _is_complex(operand) or described(operand).is_floating_point()]
        pairs = {operand: self._parts_of(operand) for operand in nodes}
        if all(pair[side] is None for pair in pairs.values()):
            return None
        present = {operand: at.side(pair, side) for operand, pair in pairs.items()}
        args, kwargs = map_arg((node.args[:count], node.kwargs), lambda operand: present.get(operand, operand))
        return self._selections.computed(node, node.target, tuple(args), **kwargs)  # type: ignore[arg-type]

    def _taken(self, node: Node) -> Pair:
        """Return the parts of an element of a list of tensors."""
        source, position = node.args
        assert isinstance(position, int)
        real, imaginary = (self._element(node, part, position) for part in self._parts_of(source))
        return real, imaginary

    def _element(self, node: Node, values: Part, position: int) -> Part:
        if not isinstance(values, Node):
            return None
        element = node.graph.call_function(operator.getitem, (values, position))
        element.meta = {**node.meta, "val": values.meta["val"][position]}
        self._selections.dependences[element] = "data"
        return element


# Fourier transforms -----------------------------------------------------------------------------------------------------------


def _transformed(at: PairArithmetic, name: str, pair: Pair) -> Pair:
    """Return the parts of the operator `name` of numbers with the parts `pair`. Raise `FrontendError` if a matrix would be too large."""
    options: list[Any] = [*at.node.args[1:], None, None, None]
    sizes, dims, norm, *_ = options
    rank = described(first_operand(at.node)).dim()
    for transform, length, dim in _steps(name, rank, sizes, dims):
        extent = described(next(part for part in pair if isinstance(part, Node))).shape[dim]
        n = length or (2 * (extent - 1) if TRANSFORMS[transform][1] == "half" else extent)
        pair = FourierTransform(at, transform, n, dim, norm).of(pair)
    return pair


def _steps(name: str, rank: int, sizes: Any, dims: Any) -> list[tuple[str, int | None, int]]:
    """Return the transforms along single dimensions that an operator of this name is made of, in order: its operator, how many
    elements of its dimension it takes (None for all), and that dimension."""
    if name in TRANSFORMS:
        return [(name, sizes, (-1 if dims is None else dims) % rank)]
    kind = _SEVERAL_DIMENSIONS[name]
    if dims is None:
        dims = range(-2 if name.endswith("2") else -(rank if sizes is None else len(sizes)), 0)
    lengths = [None] * len(dims) if sizes is None else [None if size == -1 else size for size in sizes]
    *places, last = [(length, dim % rank) for length, dim in zip(lengths, dims, strict=True)]
    others = "fft_fft" if kind in ("fft", "rfft") else "fft_ifft"
    whole = [(others, *place) for place in places]
    final = (f"fft_{kind}", *last)
    return [final, *whole] if kind == "rfft" else [*whole, final]
