"""Sampled products: a product that one statement masks is computed in that statement, at the places of the mask alone.

    T[i, j] = sum(k) A[i, k] * B[j, k]
    S[i, j] = T[i, j] * 0.5
    G[i, j] = where(P[i, j], S[i, j], -inf)      ->    G[i, j] = where(P[i, j], (sum(k) A[i, k] * B[j, k]) * 0.5, -inf)

Fusion of the statements gives the same. So this is for cuts that do not fuse them, in which `T` is computed everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from itertools import chain

from fuseflow.einsum.format_inference import Presence, Scope, infer, presence
from fuseflow.einsum.index_names import fresh_indices, substitute
from fuseflow.einsum.nodes import Access, Einsum, Expr, Index, Keep, Program, Reduce, free_indices, map_accesses, walk
from fuseflow.einsum.verify import shapes_and_extents


def sampled_products(program: Program, masks: Collection[str]) -> Program:
    """Return a program in which products are computed where a mask has an entry. Masks are the inputs of these names, results of
    `keep`, and what is computed with them. A product that something else reads stays, as does one that is an output.

    >>> from fuseflow.einsum.parse import parse
    >>> from fuseflow.einsum.text import show_einsum
    >>> text = "tensor P[2, 2] csr\\n tensor A[2, 3]\\n T[i, j] = sum(k) A[i, k] * A[j, k]\\n G[i, j] = P[i, j] * T[i, j]\\n output G"
    >>> [show_einsum(einsum) for einsum in sampled_products(parse(text), ["P"]).einsums]
    ['G[i, j] = P[i, j] * (sum(k) A[i, k] * A[j, k])']
    """
    chosen = set(masks)
    for einsum in program.einsums:
        if isinstance(einsum.body, Keep) or not chosen.isdisjoint(einsum.operands):
            chosen.add(einsum.name)
    return _Products(program, chosen).sampled() if chosen else program


class _Products:
    """The products of a program, and the statements that mask them: those that read a sparse tensor, all of whose are `chosen`."""

    def __init__(self, program: Program, chosen: Collection[str]) -> None:
        self._program, self._chosen = program, chosen
        self._types = infer(program).declared
        self._reads = Counter(access.tensor for einsum in program.einsums for access in einsum.accesses)

    def sampled(self) -> Program:
        read = {*self._program.outputs}
        einsums: list[Einsum] = []
        for einsum in reversed(self._program.einsums):
            if einsum.name in read or not self._reads[einsum.name]:
                einsums.append(self._with_products(einsum) if self._is_mask(einsum) else einsum)
                read.update(einsums[-1].operands)
        kept = {einsum.name for einsum in einsums}
        tensors = tuple(t for t in self._program.tensors if t.name not in self._program.defined or t.name in kept)
        return replace(self._program, tensors=tensors, einsums=tuple(reversed(einsums)))

    def _is_mask(self, einsum: Einsum) -> bool:
        sparse = {name for name in einsum.operands if not self._is_dense(name)}
        folds = any(isinstance(node, Reduce | Keep) for node in walk(einsum.body))
        return bool(sparse) and sparse <= set(self._chosen) and not folds and self._types[einsum.name].dtype == "f32"

    def _with_products(self, einsum: Einsum) -> Einsum:
        extents = shapes_and_extents(self._program)[1][einsum.name]
        scope = Scope(self._types, {name: self._types[name].fill for name in einsum.operands}, extents)
        partial = {v for v in free_indices(einsum.body) if presence(einsum.body, v, scope) is Presence.PATTERN}
        taken = set(free_indices(einsum.body))

        def inlined(access: Access) -> Expr:
            is_whole = partial.isdisjoint(access.names) or not self._is_product(access)
            return access if is_whole else self._body(access, taken)

        return replace(einsum, body=map_accesses(inlined, einsum.body))

    def _is_product(self, access: Access) -> bool:
        """Return whether an access, the only one of its tensor, reads a sum, or what is computed of one element by element. Types other
        than f32 would be rounded otherwise in one statement."""
        name, einsum = access.tensor, self._program.defined.get(access.tensor)
        if (
            einsum is None
            or self._reads[name] > 1
            or name in self._program.outputs
            or not (self._is_dense(name) and access.is_plain)
        ):
            return False
        if not Access(name, einsum.indices).is_plain or self._types[name].dtype != "f32":
            return False
        if isinstance(einsum.body, Reduce):
            return not any(isinstance(node, Reduce) for node in walk(einsum.body.body))
        inside = {type(node) for node in walk(einsum.body)}
        return inside.isdisjoint((Reduce, Keep)) and any(map(self._is_product, einsum.accesses))

    def _body(self, access: Access, taken: set[str]) -> Expr:
        """Return what an access of a product reads, with the names of its sums that are not `taken`, to which they are added."""
        einsum = self._program.defined[access.tensor]
        names: dict[str, Index] = dict(zip(map(str, einsum.indices), access.indices, strict=True))
        if isinstance(einsum.body, Reduce):
            for bound in einsum.body.over:
                names[bound] = next(name for name in chain((bound,), fresh_indices()) if name not in taken)
                taken.add(str(names[bound]))
            return substitute(einsum.body, names)

        def inlined(inner: Access) -> Expr:
            return self._body(inner, taken) if self._is_product(inner) else inner

        return map_accesses(inlined, substitute(einsum.body, names))

    def _is_dense(self, name: str) -> bool:
        format = self._types[name].format
        assert format is not None, "every tensor has one after inference"
        return format.all_dense
