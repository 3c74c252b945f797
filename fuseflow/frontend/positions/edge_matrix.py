"""Values of edges as matrices: a value with one element for each edge gets a row for the target and a column for the source of the edge.

For example, `(a[target] + b[source]).relu()` becomes `relu(P * a[:, None] + P * b[None, :])`, where `P` stores a one for every edge. So the
attention of a graph network over `edge_index` is the masked attention that it would be with a sparse adjacency matrix: it is stored at the
places of the edges, and a sum over the edges of a target is a sum over a row, which is fused with what computes the row.

The rewriting works on the traced graph, where an operator still is one node and arguments still are PyTorch's tensors, which can be moved
to other places. In an Einsum program the selections have become products like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.edge_spaces import (
    LINEAR,
    RESHAPES,
    SUMS,
    UNARY,
    EdgeSpace,
    is_leaf,
    next_edge_space,
    positions_of,
    scores_of_softmax,
    selected,
)
from fuseflow.frontend.positions.selection_operators import (
    at_edges,
    entries_at,
    extreme_along,
    extreme_at_edges,
    linear_of_edges,
    placed,
    product_along,
    scores_at_edges,
    weighted_rows,
)
from fuseflow.frontend.positions.selections import Selections, described
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import remove_unused
from fuseflow.frontend.trace.fx_origin import named

_KEEPS_ZERO = (
    UNARY
    | RESHAPES
    | SUMS
    | LINEAR
    | {
        *("add", "sub", "mul", "neg", "relu", "leaky_relu", "elu", "tanh", "abs", "sqrt", "gelu", "silu"),
    }
)
"""Operators whose result is zero where all operands are. Other results are set to zero beside the edges before a sum."""
_PRODUCTS = (torch.ops.aten.mul.Tensor, torch.ops.aten.mul_.Tensor)


def edges_to_matrices(selections: Selections) -> None:
    """Rewrite, in place, every value of edges that is reached by its targets and its sources alone. Others stay as they are."""
    while (space := next_edge_space(selections)) is not None:
        _EdgeMatrix(selections, space).rewrite()
        remove_unused(selections.traced)


@dataclass(slots=True)
class _EdgeMatrix:
    """The rewriting of one index over edges. `matrices` has the rewritten values, and `zero` those that are zero at places
    without an edge. `softmaxes` has the values that are a softmax over the edges of each target, with its scores."""

    selections: Selections
    space: EdgeSpace
    matrices: dict[Node, Node] = field(default_factory=dict)
    zero: set[Node] = field(default_factory=set)
    softmaxes: dict[Node, Node] = field(default_factory=dict)

    def rewrite(self) -> None:
        graph = self.selections.traced.graph_module.graph
        for node in self.space.dims:  # before any of them is rewritten
            softmax = scores_of_softmax(node)
            if softmax is not None and self.adds_up_rows(softmax[1]):
                self.softmaxes[node] = softmax[0]
        for node in list(graph.nodes):
            if node.op != "call_function" or is_leaf(self.selections, node):
                continue
            with graph.inserting_before(node):
                if node in self.space.dims:
                    self.matrices[node] = self.edge_value(node)
                elif (leaves := self.leaving(node)) is not None:
                    result = leaves
                    result.meta = {**node.meta, "val": node.meta["val"]}
                    node.replace_all_uses_with(result)

    def shape(self, node: Node) -> tuple[int, ...]:
        """Return the shape of a value of edges as a matrix."""
        shape, dim = described(node).shape, self.space.dims[node]
        return (*shape[:dim], *self.space.shape, *shape[dim + 1 :])

    def call(self, node: Node, target: Any, *args: Any, **kwargs: Any) -> Node:
        return self.selections.computed(node, target, args, **kwargs)

    # Operands

    def entries(self, name: str, values: Tensor) -> Node:
        """Return a new argument, a matrix that stores the numbers of each edge at the row and column of the edge."""
        if values.dim() == 1:
            return self.selections.matrix(self.space.target, self.space.source, values, self.space.shape, name)
        rest = tuple(values.shape[1:])
        inner = torch.cartesian_prod(*map(torch.arange, rest)).reshape(-1, len(rest)).t()
        edges = torch.stack((self.space.target, self.space.source)).repeat_interleave(inner.shape[1], 1)
        places = torch.cat((edges, inner.repeat(1, values.shape[0])))
        tensor = torch.sparse_coo_tensor(places, values.reshape(-1), (*self.space.shape, *rest)).coalesce()
        return self.selections.argument(name, tensor)

    def pattern(self, node: Node) -> Node:
        dtype = described(node).dtype
        ones = torch.ones(len(self.space.target), dtype=dtype if dtype.is_floating_point else torch.float32)
        return self.entries(named(node, "edges"), ones)

    def value(self, node: Node) -> Node:
        """Return the matrix of a value of edges. The matrix of a leaf, whose numbers are known, is a new argument."""
        if node not in self.matrices:  # a leaf
            dim, argument = self.space.dims[node], self.selections.traced.arguments.get(node)
            known = self.selections.known(node) if argument is None else argument.tensor
            assert known is not None
            matrix = self.entries(named(node, "edges") if argument is None else argument.name, known.movedim(dim, 0))
            if dim:
                matrix = self.call(node, torch.ops.aten.movedim.intlist, matrix, [0, 1], [dim, dim + 1])
            self.matrices[node] = matrix
            self.zero.add(matrix)
        return self.matrices[node]

    def zero_beside(self, node: Node) -> Node:
        """Return the matrix of a value of edges, with zeros at places without an edge."""
        matrix = self.value(node)
        return matrix if matrix in self.zero else self.at_edges(node, matrix, self.space.dims[node])

    def at_edges(self, node: Node, x: Node, dim: int) -> Node:
        return self.keep_zero(self.call(node, at_edges, self.pattern(x), x, dim))

    def spread(self, node: Node, x: Node) -> Node:
        """Return an operand `x` of `node` that does not depend on the edge as a matrix with the same numbers at every edge."""
        rank, dim = described(node).dim(), self.space.dims[node]
        shape = [1] * (rank - described(x).dim()) + list(described(x).shape)
        shape[dim : dim + 1] = [1, 1]
        wide = self.call(x, torch.ops.aten.reshape.default, x, shape)
        result = self.at_edges(x, wide, dim)
        return self.call(x, torch.ops.aten.ne.Scalar, result, 0) if described(x).dtype == torch.bool else result

    # Operators

    def edge_value(self, node: Node) -> Node:
        """Return the matrix of the value of edges that `node` computes. An operand is a matrix already, or equal at all edges."""
        dim, name = self.space.dims[node], fx_origin.short_name(node.target).rstrip("_")
        if node in self.softmaxes:
            return self.softmax(node, self.softmaxes[node], dim)
        if node.target is product_along:
            return self.gathered(node, dim)
        if node.target is entries_at:
            whole = node.args[1]
            assert isinstance(whole, Node)
            return self.at_edges(node, whole, 0)
        if name in LINEAR:
            return self.linear(node, dim)
        if name in RESHAPES:
            matrix = self.value(node.all_input_nodes[0])
            result = self.call(node, torch.ops.aten.reshape.default, matrix, list(self.shape(node)))
            return self.keep_zero(result, matrix)
        if name in SUMS:
            return self.summed(node)
        return self.pointwise(node, name)

    def pointwise(self, node: Node, name: str) -> Node:
        operands = {o: self.value(o) if o in self.space.dims else self.spread(node, o) for o in node.all_input_nodes}
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), operands.__getitem__)
        # Its operands may have other shapes than its result, into which an operator in place could not write.
        value = torch.empty(self.shape(node), dtype=described(node).dtype, device="meta")
        result = self.selections.valued(node, value, node.target, args, **kwargs)
        shifted = name in ("add", "sub") and any(isinstance(arg, int | float) for arg in node.args)
        if name == "mul" and not self.zero.isdisjoint(operands.values()):
            self.zero.add(result)
        elif name in _KEEPS_ZERO and not shifted:
            self.keep_zero(result, *operands.values())
        return result

    def keep_zero(self, result: Node, *operands: Node) -> Node:
        """Return a matrix, which is zero at places without an edge if all its operands are."""
        if self.zero.issuperset(operands):
            self.zero.add(result)
        return result

    def gathered(self, node: Node, dim: int) -> Node:
        """Return the matrix of rows that a gather takes by the target, or the source, of each edge. Edges are dimension `dim`."""
        matrix, x, _ = selected(node)
        positions = positions_of(self.selections.tensor_of(matrix), 0)
        assert positions is not None
        wide = self.call(node, torch.ops.aten.unsqueeze.default, x, dim + 1 if self.space.is_target(positions) else dim)
        return self.at_edges(node, wide, dim)

    def softmax(self, node: Node, scores: Node, dim: int) -> Node:
        masked = self.call(node, scores_at_edges, self.pattern(node), self.value(scores), dim, float("-inf"))
        return self.keep_zero(self.call(node, torch.ops.aten.softmax.int, masked, dim + 1))

    def linear(self, node: Node, dim: int) -> Node:
        x, weight = node.args[0], node.args[1]
        assert isinstance(x, Node) and isinstance(weight, Node)
        bias = node.args[2] if len(node.args) > 2 else node.kwargs.get("bias")
        result = self.keep_zero(self.call(node, linear_of_edges, self.zero_beside(x), weight))
        if not isinstance(bias, Node):
            return result
        return self.keep_zero(self.call(node, torch.ops.aten.add.Tensor, result, self.spread(node, bias)))

    def summed(self, node: Node) -> Node:
        operand = node.args[0]
        assert isinstance(operand, Node) and isinstance(node.args[1], list)
        place, rank = self.space.dims[operand], described(operand).dim()
        over = [d + (d > place) for d in (n % rank for n in node.args[1])]
        matrix = self.value(operand)
        result = self.call(node, node.target, matrix, over, *node.args[2:], **node.kwargs)
        return self.keep_zero(result, matrix)

    # What leaves the edges

    def leaving(self, node: Node) -> Node | None:
        """Return the replacement of a node that is no value of edges and is computed from one, or None for other nodes."""
        if node.target is placed:
            x = node.args[1]
            if not isinstance(x, Node) or x not in self.space.dims:
                return None
            return self.zero_beside(x)
        is_reduced = node.target in (product_along, extreme_along) and selected(node)[1] in self.space.dims
        return self.reduced(node) if is_reduced else None

    def adds_up_rows(self, matrix: Node) -> bool:
        """Return whether a selection adds up the edges of each target, and not the edges of each source."""
        positions = positions_of(self.selections.tensor_of(matrix), 1)
        return positions is not None and self.space.is_target(positions)

    def reduced(self, node: Node) -> Node:
        """Return a sum, a mean or an extreme over the edges of each target, or of each source, as a reduction of a matrix."""
        matrix, x, _ = selected(node)
        dim = self.space.dims[x]
        over = dim + 1 if self.adds_up_rows(matrix) else dim
        if node.target is extreme_along:
            _, empty, _, _, start, largest = node.args
            return self.call(node, extreme_at_edges, self.pattern(x), empty, self.value(x), dim, over, start, largest)
        entries = self.selections.tensor_of(matrix).to_sparse().coalesce()
        weights = entries.values()[torch.argsort(entries.indices()[1])]
        factors = self.factors(x) if over == dim + 1 else None
        if factors is not None:
            attention, features = factors
            return self.call(node, weighted_rows, self.weighted(x, self.value(attention), weights, dim), features)
        summands = self.weighted(x, self.value(x), weights, dim)
        return self.call(node, torch.ops.aten.sum.dim_IntList, summands, [over])

    def weighted(self, node: Node, matrix: Node, weights: Tensor, dim: int) -> Node:
        """Return the terms of a sum over edges: a matrix of edges times the `weights` of the edges, and zero elsewhere."""
        if matrix in self.zero and bool((weights == 1).all()):
            return matrix
        entries = self.entries(named(node, "adjacency"), weights)
        return self.call(node, at_edges, entries, matrix, dim)

    def factors(self, product: Node) -> tuple[Node, Node] | None:
        """Return the factors of a product of one number for each edge (and each head) with features of nodes, or None. Their sum
        over the sources is a product of matrices, in which the features of single edges do not appear."""
        if product.target not in _PRODUCTS or self.space.dims[product] != 0:
            return None
        for one, other in (product.args[:2], product.args[1::-1]):
            if not (isinstance(one, Node) and isinstance(other, Node)) or other.target is not product_along:
                continue
            matrix, features, _ = selected(other)
            positions = positions_of(self.selections.tensor_of(matrix), 0)
            is_by_source = positions is not None and not self.space.is_target(positions)
            has_one_number = described(one).shape == (*described(product).shape[:-1], 1) and described(product).dim() > 1
            if is_by_source and has_one_number and one in self.space.dims and described(other).shape == described(product).shape:
                return one, features
        return None
