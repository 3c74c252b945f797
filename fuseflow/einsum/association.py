"""The association of products: a chain of products is computed in another order, as the section `associate` of a schedule says it.

In exact arithmetic (A X) W and A (X W) are equal, and one of them may be much less work. The chain `A (X W)` of the result T1 means:

    T0[i, f] = sum(k) A[i, k] * X[k, f]             T1.X_W[k, h] = sum(f) X[k, f] * W[f, h]
    T1[i, h] = sum(f) T0[i, f] * W[f, h]     ->     T1[i, h] = sum(k) A[i, k] * T1.X_W[k, h]

A chain are the factors of a result, and the factors of intermediates between them that nothing else reads. Sums are rounded in another
order then, so nothing is associated anew unless the user asks for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeAlias, assert_never

from fuseflow.einsum.chain import Chain, Group, factors, show
from fuseflow.einsum.index_names import unused_name
from fuseflow.einsum.nodes import (
    Access,
    Apply,
    Const,
    Einsum,
    Expr,
    Keep,
    Program,
    Reduce,
    accesses,
    children,
    free_indices,
    index_names,
    map_children,
    plain_names,
    walk,
)
from fuseflow.errors import ProgramError, did_you_mean

Pairs: TypeAlias = "Access | tuple[Pairs, Pairs]"
"""A product of factors: an access to a single factor, or a pair of two products."""
MOST_FACTORS = 5
"""Chains of more factors are left as they are: they have too many orders."""


def associated(program: Program, name: str, chain: Chain) -> Program:
    """Return the program in which the products that end in the result `name` are computed in the order of a chain.

    Raises `ProgramError` with the reason where there is no such chain: where its factors are others, where something else than products
    stands between them, where an intermediate is an output or has other readers, and where two that are multiplied share no index.
    """
    if name not in program.defined:
        raise ProgramError("the program computes no such tensor", hint=did_you_mean(name, program.defined))
    einsum = program.defined[name]
    products = tuple(_products(einsum.body))
    if not products:
        raise ProgramError("it is no product of tensors", hint="name the result of the last product of the chain")
    refusals: list[ProgramError] = []
    for node in products:
        expansion = Expansion(program, einsum, frozenset(chain.factors))
        try:
            expansion.used.update(free_indices(node))  # also those that are summed around it
            expansion.add(node, {index: index for index in expansion.used})
            return _rewritten(program, einsum, node, expansion, chain)
        except ProgramError as error:
            refusals.append(error)
    raise refusals[0]


def _products(node: Expr) -> Iterator[Expr]:
    """Yield the outermost products in an expression that have two accesses or more."""
    if all(_multiplies(inner) for inner in walk(node)):
        if len(accesses(node)) > 1:
            yield node
        return
    for child in children(node):
        yield from _products(child)


def _multiplies(node: Expr) -> bool:
    match node:
        case Access() | Const() | Apply(op="mul") | Reduce(op="sum"):
            return True
        case _:
            return False


# The factors of a chain ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Expansion:
    """A product in the indices of one Einsum: its constants, and the accesses to its factors, `elements`. Intermediates that are
    not among the `named` tensors are expanded, as are those inside them. `expanded` has, for each of them, its indices and the
    accesses whose product it is."""

    program: Program
    einsum: Einsum
    named: frozenset[str]
    constants: list[float] = field(default_factory=list)
    elements: list[Access] = field(default_factory=list)
    expanded: dict[str, tuple[tuple[str, ...], list[Access]]] = field(default_factory=dict)
    used: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.used = {*free_indices(self.einsum.body), *(index for index in self.einsum.indices if isinstance(index, str))}

    def add(self, node: Expr, names: Mapping[str, str]) -> None:
        """Multiply with an expression. `names` maps its free indices to names in the Einsum of the product."""
        match node:
            case Const():
                self.constants.append(node.value)
            case Apply():
                for arg in node.args:
                    self.add(arg, names)
            case Reduce():
                inside: dict[str, str] = {}
                for index in node.over:
                    inside[index] = unused_name(index, self.used, "")
                    self.used.add(inside[index])
                self.add(node.body, {**names, **inside})
            case Access():
                self.add_element(node, names)
            case Keep():
                raise AssertionError("no product")
            case unknown:
                assert_never(unknown)

    def add_element(self, node: Access, names: Mapping[str, str]) -> None:
        if not all(isinstance(index, str) for index in node.indices):
            raise ProgramError(f"it reads `{node.tensor}` at an index that is split or has an offset", hint="leave it as it is")
        element = Access(node.tensor, tuple(names[str(index)] for index in node.indices))
        if node.tensor in self.named or node.tensor not in self.program.defined:
            self.elements.append(element)
            return
        einsum = self.program.defined[node.tensor]
        self.refuse_kept(einsum)
        start = len(self.elements)
        self.add(einsum.body, dict(zip(map(str, einsum.indices), element.names, strict=True)))
        self.expanded[einsum.name] = element.names, self.elements[start:]

    def refuse_kept(self, einsum: Einsum) -> None:
        """Raise `ProgramError` for an intermediate that must stay: it has other readers, is an output, of a narrow type, or no product."""
        readers = sum(access.tensor == einsum.name for e in self.program.einsums for access in e.accesses)
        others = [node for node in walk(einsum.body) if not _multiplies(node)]
        if others:
            what = next((f"`{node.op}`" for node in others if isinstance(node, Apply | Reduce)), "a `keep`")
            why = f"it has {what} in it, and products are not moved past that"
        elif not all(isinstance(index, str) for index in einsum.indices):
            why = "its indices are split"
        elif einsum.name in self.program.outputs:
            why = "it is an output of the program"
        elif (declared := self.program.declared.get(einsum.name)) is not None and declared.dtype not in ("f32", "f64"):
            why = f"its values are rounded to {declared.dtype}"
        elif readers > 1:
            why = f"it is read at {readers} places"
        else:
            return
        raise ProgramError(f"`{einsum.name}` stands between the factors: {why}", hint=f"name `{einsum.name}` as a factor")


# The program in another order ------------------------------------------------------------------------------------------------


def _rewritten(program: Program, einsum: Einsum, node: Expr, expansion: Expansion, chain: Chain) -> Program:
    pairs = _pairs(chain.root, _by_tensor(expansion.elements, chain))
    writer, free = ChainWriter(program, einsum, expansion.expanded), free_indices(node)
    body, names = writer.product(pairs, frozenset(free))
    over = tuple(index for index in names if index not in free)
    body = Reduce("sum", over, body) if over else body
    for constant in expansion.constants:
        body = Apply("mul", (Const(constant), body))
    body = _replaced(einsum.body, node, body)
    loops = {*index_names(einsum.indices), *plain_names(body)}
    final = replace(einsum, body=body, order=tuple([v for v in einsum.order if v in loops]))
    at, written = program.positions[einsum.name], {e.name for e in writer.einsums}
    before = [e for e in program.einsums[:at] if e.name not in expansion.expanded]
    gone = expansion.expanded.keys() - written
    tensors = tuple(t for t in program.tensors if t.name not in gone)
    return replace(program, tensors=tensors, einsums=(*before, *writer.einsums, final, *program.einsums[at + 1 :]))


def _by_tensor(elements: Sequence[Access], chain: Chain) -> dict[str, list[Access]]:
    """Return the accesses to each factor, in the order of the program. Raises `ProgramError` for a chain of other factors."""
    wanted, present = Counter(chain.factors), Counter(element.tensor for element in elements)
    listed = ", ".join(f"`{element.tensor}`" for element in elements)
    for name in wanted - present:
        why = f"`{name}` is no factor of it" + (", or not so often" if present[name] else "")
        raise ProgramError(why, hint=f"it has {listed}")
    for name in present - wanted:
        raise ProgramError(f"`{name}` is a factor of it, too", hint=f"it has {listed}")
    return {name: [element for element in elements if element.tensor == name] for name in present}


def _pairs(group: Group, elements: dict[str, list[Access]]) -> Pairs:
    """Return a group with its factors replaced by accesses. The accesses of a factor are used up from left to right."""
    if isinstance(group, str):
        return elements[group].pop(0)
    left = _pairs(group[0], elements)
    return left, _pairs(group[1], elements)


def _elements(pairs: Pairs) -> tuple[Access, ...]:
    """Return the accesses in a group."""
    return (pairs,) if isinstance(pairs, Access) else (*_elements(pairs[0]), *_elements(pairs[1]))


def _group(pairs: Pairs) -> Group:
    return pairs.tensor if isinstance(pairs, Access) else (_group(pairs[0]), _group(pairs[1]))


def _indices(pairs: Pairs) -> frozenset[str]:
    """Return all indices of the accesses in a group."""
    return frozenset(name for element in _elements(pairs) for name in element.names)


@dataclass(slots=True)
class ChainWriter:
    """A writer of the Einsums of a chain that ends in `einsum`: one for each pair, but for the last. A pair that is already among
    the `expanded` Einsums of the program keeps its name and the order of its indices."""

    program: Program
    einsum: Einsum
    expanded: Mapping[str, tuple[tuple[str, ...], list[Access]]]
    einsums: list[Einsum] = field(default_factory=list)

    def product(self, pairs: Pairs, outside: frozenset[str]) -> tuple[Expr, tuple[str, ...]]:
        """Return the product of a pair, and the indices of the product. `outside` are the indices that others have."""
        assert isinstance(pairs, tuple)
        left = self.read(pairs[0], outside | _indices(pairs[1]))
        right = self.read(pairs[1], outside | _indices(pairs[0]))
        if not set(left.names) & set(right.names):
            first, second = (show(_group(part)) for part in pairs)
            why = f"`{first}` and `{second}` share no index, so that their product has an entry for every two of theirs"
            raise ProgramError(why, hint="multiply factors that share an index")
        return Apply("mul", (left, right)), tuple(dict.fromkeys((*left.names, *right.names)))

    def read(self, pairs: Pairs, outside: frozenset[str]) -> Access:
        """Return an access to a factor, or to the result of a pair, for which it adds an Einsum. Indices not in `outside` are summed."""
        if isinstance(pairs, Access):
            return pairs
        body, names = self.product(pairs, outside)
        kept = tuple(index for index in names if index in outside)
        over = tuple(index for index in names if index not in outside)
        same = (
            n
            for n, (own, elements) in self.expanded.items()
            if {*own} == {*kept} and Counter(elements) == Counter(_elements(pairs))
        )
        name = next(same, None)
        if name is None:
            label = "_".join(factor.tensor.replace(".", "_") for factor in _elements(pairs))
            taken = {*self.program.defined, *self.program.declared, *(e.name for e in self.einsums)}
            name = unused_name(f"{self.einsum.name}.{label}", taken)
        else:
            kept = self.expanded[name][0]
        self.einsums.append(Einsum(name, kept, Reduce("sum", over, body) if over else body, self.einsum.location))
        return Access(name, kept)


def _replaced(node: Expr, old: Expr, new: Expr) -> Expr:
    return new if node is old else map_children(lambda child: _replaced(child, old, new), node)


# All orders of all chains -----------------------------------------------------------------------------------------------------


def chain_orders(program: Program) -> dict[str, tuple[Chain, ...]]:
    """Return the other orders of each chain, by the result that it ends in. They are legal."""
    inner = set[str]()
    orders: dict[str, tuple[Chain, ...]] = {}
    for einsum in reversed(program.einsums):
        if einsum.name in inner:
            continue
        expansion = Expansion(program, einsum, frozenset())
        group = _chain(einsum.body, expansion, inner)
        if group is None or not 3 <= len(leaves := factors(group)) <= MOST_FACTORS:
            continue
        legal: list[Chain] = []
        for tree in _trees(leaves):
            if not isinstance(tree, str) and tree != group:
                with suppress(ProgramError):
                    associated(program, einsum.name, Chain(tree))
                    legal.append(Chain(tree))
        if legal:
            orders[einsum.name] = tuple(legal)
    return dict(sorted(orders.items(), key=lambda entry: program.positions[entry[0]]))


def _chain(node: Expr, expansion: Expansion, inner: set[str]) -> Group | None:
    """Return the factors of a product, in pairs in the order of computation. The product is the expression itself, or the only
    one inside it; None if there is none. The names of expanded intermediates are added to `inner`."""
    match node:
        case Access():
            einsum = expansion.program.defined.get(node.tensor)
            if einsum is None:
                return node.tensor
            try:
                expansion.refuse_kept(einsum)
            except ProgramError:
                return node.tensor
            inner.add(einsum.name)
            return _chain(einsum.body, expansion, inner)
        case Reduce() | Keep():
            return _chain(node.body, expansion, inner)
        case Apply(op="mul"):
            parts = [part for arg in node.args if (part := _chain(arg, expansion, inner)) is not None]
            return (parts[0], parts[1]) if len(parts) == 2 else parts[0] if len(parts) == 1 else None
        case Apply():
            products = [arg for arg in node.args if not isinstance(arg, Access)]
            return _chain(products[0], expansion, inner) if len(products) == 1 else None
        case Const():
            return None
        case unknown:
            assert_never(unknown)


def _trees(leaves: tuple[str, ...]) -> Iterator[Group]:
    """Yield all ways to multiply factors in pairs without a change of their order."""
    if len(leaves) == 1:
        yield leaves[0]
    for cut in range(1, len(leaves)):
        yield from product(_trees(leaves[:cut]), _trees(leaves[cut:]))
