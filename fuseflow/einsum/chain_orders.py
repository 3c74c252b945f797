"""The orders in which the chains of products of a program may be computed, as the section `associate` of a schedule says them.

A chain are the factors of a result, and the factors of intermediates between them that nothing else reads. `(A X) W` has one other order:

    T0[i, f] = sum(k) A[i, k] * X[k, f]
    T1[i, h] = sum(f) T0[i, f] * W[f, h]     ->     T1: A (X W)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from fuseflow.einsum.association import Expansion, associated
from fuseflow.einsum.chain import Chain, Group
from fuseflow.einsum.nodes import Access, Apply, Const, Expr, Keep, Program, Reduce
from fuseflow.errors import ProgramError

MOST_FACTORS = 5
"""Chains of more factors are left as they are: they have too many orders."""


def chain_orders(program: Program) -> dict[str, tuple[Chain, ...]]:
    """Return the other orders of each chain, by the result that it ends in. They are legal."""
    inner = set[str]()
    orders: dict[str, tuple[Chain, ...]] = {}
    for einsum in reversed(program.einsums):
        if einsum.name in inner:
            continue
        expansion = Expansion(program, einsum, frozenset())
        group = _chain(einsum.body, expansion, inner)
        if group is None or not 3 <= len(leaves := tuple(_leaves(group))) <= MOST_FACTORS:
            continue
        chains = (Chain(tree) for tree in _trees(leaves) if not isinstance(tree, str) and tree != group)
        legal = tuple(chain for chain in chains if _is_legal(program, einsum.name, chain))
        if legal:
            orders[einsum.name] = legal
    return dict(sorted(orders.items(), key=lambda entry: program.positions[entry[0]]))


def _is_legal(program: Program, name: str, chain: Chain) -> bool:
    try:
        associated(program, name, chain)
    except ProgramError:
        return False
    return True


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
            factors = [factor for arg in node.args if (factor := _chain(arg, expansion, inner)) is not None]
            return (factors[0], factors[1]) if len(factors) == 2 else factors[0] if len(factors) == 1 else None
        case Apply():
            products = [arg for arg in node.args if not isinstance(arg, Access)]
            return _chain(products[0], expansion, inner) if len(products) == 1 else None
        case Const():
            return None
        case unknown:
            assert_never(unknown)


def _leaves(group: Group) -> Iterator[str]:
    if isinstance(group, str):
        yield group
    else:
        for part in group:
            yield from _leaves(part)


def _trees(leaves: tuple[str, ...]) -> Iterator[Group]:
    """Yield all ways to multiply factors in pairs without a change of their order."""
    if len(leaves) == 1:
        yield leaves[0]
    for cut in range(1, len(leaves)):
        for left in _trees(leaves[:cut]):
            for right in _trees(leaves[cut:]):
                yield left, right
