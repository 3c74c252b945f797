"""The n:m mode of the generators: a case that was drawn, with some of the compressed levels of its inputs stored n:m.

What a seed draws stays as it is without this mode; with it, the same graph or program gets other formats afterwards. A group has few
coordinates. It stores as many as the fullest one of the tensor, or any number above, so there are groups with and without pads.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import replace
from itertools import zip_longest

from random_graphs import Case as GraphCase
from random_programs import Case as ProgramCase

from fuseflow.errors import GraphError, TensorError
from fuseflow.samml.verify import verify
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.levels import parse_level
from fuseflow.tensors.pack import repack

SHARE = 0.7
"""Of the levels that are compressed, those that become n:m."""
GROUPS = (1, 2, 3, 4, 5, 8)
"""The numbers of coordinates of a group."""


def in_graph(case: GraphCase, seed: int) -> GraphCase:
    """The case with n:m levels for compressed ones of what it reads, where it still verifies."""
    rng = random.Random(f"nm {seed}")
    for name in case.graph.inputs:
        decl = case.graph.declared[name]
        for p in _levels(decl.format, rng):
            stored = _with_nm(case.tensors[name], p, rng)
            declared = {**case.graph.declared, name: replace(decl, format=stored.format)}
            graph = replace(case.graph, tensors=tuple(declared[t.name] for t in case.graph.tensors))
            try:
                verify(graph)
            except GraphError:
                continue  # a locate keeps this level
            case, decl = replace(case, graph=graph, tensors={**case.tensors, name: stored}), declared[name]
    return case


def in_program(case: ProgramCase) -> ProgramCase:
    """The case with n:m levels for compressed ones of its inputs."""
    rng = random.Random(zlib.crc32(f"nm {case!r}".encode()))
    whole = bool(case.schedule.blocks) or case.schedule.vector > 1 or any(type_.block for type_ in case.program.tensors)
    declared, tensors = {type_.name: type_ for type_ in case.program.tensors}, dict(case.tensors)
    for name, tensor in case.tensors.items():
        type_ = declared.get(name)
        if type_ is None or type_.format is None or type_.format != tensor.format:
            continue
        for p in _levels(type_.format, rng):
            tensor = _with_nm(tensor, p, rng, whole)
        tensors[name], declared[name] = tensor, replace(type_, format=tensor.format)
    program = replace(case.program, tensors=tuple(declared[type_.name] for type_ in case.program.tensors))
    return replace(case, program=program, tensors=tensors)


def _levels(format: Format, rng: random.Random) -> list[int]:
    """Levels that become n:m. Those above singleton levels stay."""
    levels = enumerate(zip_longest(format.levels, format.levels[1:]))
    able = [p for p, (level, below) in levels if level.text == "compressed" and not (below and below.follows)]
    return [p for p in able if rng.random() < SHARE]


def _with_nm(tensor: Tensor, p: int, rng: random.Random, whole: bool = False) -> Tensor:
    """The tensor with level p stored n:m. If it is `whole`, everything fits: blocks, too, of which a group may hold more."""
    m, more = rng.choice(GROUPS), rng.random() < 0.4
    for n in range(m if whole else 1, m + 1):
        level = parse_level(f"nm({rng.randint(n, m) if more else n}:{m})")
        format = Format((*tensor.format.levels[:p], level, *tensor.format.levels[p + 1 :]), tensor.format.order)
        try:
            return repack(tensor, format)
        except TensorError:
            continue
    raise AssertionError(f"every group of {m} coordinates has room for {m}")
