"""Softmaxes and norms, found by structure: Einsums that read a tensor again together with a reduction of it.

Such a tensor is needed twice, before and after the reduction. If the Einsums ran one by one, the tensor would be written to memory in
between. So they stay together even where nothing is fused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from fuseflow.einsum.index_names import substitute_tensors
from fuseflow.einsum.nodes import (
    Einsum,
    Program,
    Reduce,
    Split,
    accesses,
    free_indices,
    index_names,
    walk,
)


def softmax_groups(program: Program) -> tuple[tuple[str, ...], ...]:
    """Return the groups, each in program order; they are disjoint.

    An Einsum closes a group if it reads a tensor X and something made from a reduction of X, without leaving the index space of X (so a
    residual connection around a matmul is no group). The group is everything on the paths from X to it. Groups are merged where one starts
    from a result of the other, directly or through unary pointwise Einsums: max and sum of a softmax, mean and variance of a norm.

    >>> from fuseflow.einsum.parse import parse
    >>> softmax_groups(parse('''
    ... tensor S[4, 4] dense
    ... m[i] = max(j) S[i, j]
    ... E[i, j] = exp(S[i, j] - m[i])
    ... d[i] = sum(j) E[i, j]
    ... Y[i, j] = E[i, j] / d[i]
    ... Z[i, j] = relu(Y[i, j])
    ... output Z
    ... '''))
    (('m', 'E', 'd', 'Y'),)
    """
    representative = _same(program)
    groups = _groups(_merged(program, representative))
    group_of = {name: n for n, group in enumerate(groups) for name in group}
    members: list[list[str]] = [[] for _ in groups]
    for einsum in program.einsums:
        if (n := group_of.get(representative[einsum.name])) is not None:
            members[n].append(einsum.name)
    return tuple(map(tuple, members))


def _same(program: Program) -> dict[str, str]:
    """Return, for every tensor, the first one with an equal definition: a norm may compute its mean twice."""
    representative = {t.name: t.name for t in program.inputs}
    first = dict[tuple[object, ...], str]()
    for einsum in program.einsums:
        body = substitute_tensors(einsum.body, representative)
        representative[einsum.name] = first.setdefault((einsum.indices, body), einsum.name)
    return representative


def _merged(program: Program, representative: Mapping[str, str]) -> Program:
    """Return the program with only the first of equal Einsums."""
    einsums = tuple(
        replace(e, body=substitute_tensors(e.body, representative)) for e in program.einsums if representative[e.name] == e.name
    )
    return replace(program, einsums=einsums, tensors=tuple(t for t in program.tensors if representative[t.name] == t.name))


def _groups(program: Program) -> tuple[tuple[str, ...], ...]:
    """Return the groups of a program without equal Einsums."""
    defined, groups = program.defined, list[set[str]]()
    for root, members in _reconvergences(program):
        link = _link(root, groups, defined)
        adjoining = [g for g in groups if g & (members | link)]
        groups = [g for g in groups if g not in adjoining] + [members.union(link, *adjoining)]
    position = {e.name: n for n, e in enumerate(program.einsums)}
    ordered = [tuple(sorted(group, key=position.__getitem__)) for group in groups]
    return tuple(sorted(ordered, key=lambda group: position[group[0]]))


@dataclass(frozen=True, slots=True)
class _DerivedTensor:
    """A tensor that is made from the root: the dimensions of the root along which its own run, and whether a reduction is between."""

    dimensions: tuple[int, ...]
    reduced: bool


def _reconvergences(program: Program) -> Iterator[tuple[str, set[str]]]:
    """Yield every tensor from which a group starts, with the Einsums of the group, in program order."""
    roots = {t.name: len(t.shape) for t in program.inputs} | {e.name: len(e.indices) for e in program.einsums}
    readers = defaultdict[str, list[int]](list)
    for position, einsum in enumerate(program.einsums):
        for name in einsum.operands:
            readers[name].append(position)
    facts = [_EinsumFacts.of(einsum) for einsum in program.einsums]
    for root, rank in roots.items():
        if members := _reconverging(program, root, rank, readers, facts):
            yield root, members - {root}


def _reconverging(
    program: Program, root: str, rank: int, readers: Mapping[str, list[int]], facts: Sequence[_EinsumFacts]
) -> set[str]:
    """Return the Einsums on the paths from a tensor to Einsums that close a group. `readers` has the positions of the Einsums
    that read a tensor; only readers of a derived tensor are visited, in program order. `facts` are the facts of the Einsums, by
    position. An Einsum that closes a group reads the root, so that no Einsum behind the last reader of the root matters."""
    derived = {root: _DerivedTensor(tuple(range(rank)), False)}
    members = set[str]()
    waiting = list(readers.get(root, ()))  # ascending, and so a heap
    end = waiting[-1] if waiting else -1
    last = -1
    while waiting:
        position = heappop(waiting)
        if position == last:
            continue
        last, einsum = position, program.einsums[position]
        step = _derive(einsum, facts[position], derived)
        if step is None:
            continue
        derived[einsum.name] = step
        for reader in readers.get(einsum.name, ()):
            if reader <= end:
                heappush(waiting, reader)
        if _closes(einsum, root, derived):
            members |= _between(einsum.name, derived, program.defined)
    return members


@dataclass(frozen=True, slots=True)
class _EinsumFacts:
    """The facts about an Einsum that any derivation needs: the indices of its left side, all of its indices, the groups of
    indices that are together in its body or in the body of a reduction, and whether it reduces or its left side has a split."""

    left: tuple[str, ...]
    names: frozenset[str]
    scopes: tuple[tuple[str, ...], ...]
    reduces: bool
    splits: bool

    @classmethod
    def of(cls, einsum: Einsum) -> _EinsumFacts:
        left = index_names(einsum.indices)
        bodies = [node.body for node in walk(einsum.body) if isinstance(node, Reduce)]
        return cls(
            left=left,
            names=frozenset(left).union(*(a.names for a in einsum.accesses)),
            scopes=tuple(free_indices(body) for body in (einsum.body, *bodies)),
            reduces=bool(bodies),
            splits=any(isinstance(i, Split) for i in einsum.indices),
        )


def _derive(einsum: Einsum, facts: _EinsumFacts, derived: Mapping[str, _DerivedTensor]) -> _DerivedTensor | None:
    """Return what `einsum` makes of tensors derived from the root, or None if it reads none of them or leaves the root's index space."""
    reads = [a for a in einsum.accesses if a.tensor in derived]
    if not reads or facts.splits or any(isinstance(i, Split) for a in reads for i in a.indices):
        return None
    along = dict[str, int]()
    for access in reads:
        for index, dimension in zip(access.names, derived[access.tensor].dimensions, strict=True):
            if along.setdefault(index, dimension) != dimension:
                return None
    if not facts.names <= along.keys():
        return None
    if any(len({along[name] for name in scope}) < len(scope) for scope in facts.scopes):
        return None  # two indices along one dimension meet: an outer product or a matmul with itself
    reduced = facts.reduces or any(derived[a.tensor].reduced for a in reads)
    return _DerivedTensor(tuple(along[name] for name in facts.left), reduced)


def _closes(einsum: Einsum, root: str, derived: Mapping[str, _DerivedTensor]) -> bool:
    if root not in einsum.operands:
        return False
    if any(name != root and name in derived and derived[name].reduced for name in einsum.operands):
        return True
    reduced_reads = [a for node in walk(einsum.body) if isinstance(node, Reduce) for a in accesses(node) if a.tensor == root]
    all_reads = [a for a in einsum.accesses if a.tensor == root]
    return 0 < len(reduced_reads) < len(all_reads)  # a whole softmax denominator in one Einsum


def _between(name: str, derived: Mapping[str, _DerivedTensor], defined: Mapping[str, Einsum]) -> set[str]:
    """Return the Einsums from the root to `name`, with `name`."""
    members, pending = set[str](), [name]
    while pending:
        tensor = pending.pop()
        if tensor in derived and tensor in defined and tensor not in members:
            members.add(tensor)
            pending += defined[tensor].operands
    return members


def _link(root: str, groups: list[set[str]], defined: Mapping[str, Einsum]) -> set[str]:
    """Return `root` and the unary Einsums back from it to the result of the nearest group; empty if there is none."""
    chain = {root}
    name = root
    while not any(name in group for group in groups):
        if name not in defined or not _unary(defined[name]):
            return set()
        name = defined[name].operands[0]
        chain.add(name)
    return chain


def _unary(einsum: Einsum) -> bool:
    reads = {a.indices for a in einsum.accesses}
    if len(einsum.operands) != 1 or len(reads) != 1 or any(isinstance(n, Reduce) for n in walk(einsum.body)):
        return False
    indices = reads.pop()
    return not any(isinstance(i, Split) for i in indices) and sorted(map(str, indices)) == sorted(map(str, einsum.indices))
