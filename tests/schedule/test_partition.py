"""Regions grow so that they can run one after the other, and whether an Einsum may join one costs no search."""

from __future__ import annotations

from random import Random

import networkx as nx
import pytest

import fuseflow.schedule.regions
from fuseflow.einsum.nodes import Access, Apply, Einsum, Program, TensorType
from fuseflow.einsum.parse import parse
from fuseflow.schedule.partition import Partition, RegionDraft, unique_names
from fuseflow.schedule.regions import grown_regions


def random_program(seed: int, count: int) -> Program:
    """Einsums of one index, each of which reads one to three tensors before it."""
    random = Random(seed)
    names = ["X", *(f"T{n}" for n in range(count))]
    einsums = []
    for n in range(1, count + 1):
        read = random.sample(names[max(0, n - 8) : n], k=min(n, random.randint(1, 3)))
        body = Access(read[0], ("i",))
        for name in read[1:]:
            body = Apply("add", (body, Access(name, ("i",))))
        einsums.append(Einsum(names[n], ("i",), body))
    return Program((TensorType("X", (4,)),), tuple(einsums), (names[-1],))


@pytest.mark.parametrize("seed", range(20))
def test_an_einsum_may_join_what_none_of_its_operands_needs(seed: int) -> None:
    """The bits say what a search of the graph of regions says, for regions that grow at random."""
    random, program = Random(seed), random_program(seed, 60)
    partition, drafts, home = Partition(program), list[RegionDraft](), dict[str, RegionDraft]()
    needs: nx.DiGraph[RegionDraft] = nx.DiGraph()
    for einsum in program.einsums:
        read = [home[name] for name in einsum.operands if name in home]
        joinable = [d for d in drafts if not any(nx.has_path(needs, d, r) for r in read if r is not d)]
        assert [d for d in drafts if partition.may_join(einsum, d)] == joinable
        assert partition.first_labelled(einsum, "any") is next((d for d in drafts if d in joinable), None)
        if joinable and random.random() < 0.7:
            draft = random.choice(joinable)
            partition.join(einsum, draft)
        else:
            partition.open(einsum, "any")
            draft = partition.labelled("any")[-1]
            drafts.append(draft)
            needs.add_node(draft)
        needs.add_edges_from((r, draft) for r in read if r is not draft)
        home[einsum.name] = draft
    position = {name: n for n, region in enumerate(partition.regions()) for name in region.einsums}
    assert all(position[name] <= position[e.name] for e in program.einsums for name in e.operands if name in position)


def test_regions_of_one_label_are_numbered() -> None:
    assert unique_names(["a", "a-2", "a", "a", "b"]) == ["a", "a-2", "a-3", "a-4", "b"]


def test_no_search_goes_over_all_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 192 decoders, 74,303 searches of the graph of regions took nine tenths of the time of lowering."""
    lines = ["tensor X0[2, 6] dense", "tensor W[6, 6] dense"]
    for n in range(120):
        lines.append(f"H{n}[i, a, b] = X{n}[i, a*2 + b]")
        lines.append(f"X{n + 1}[i, a*2 + b] = relu(H{n}[i, a, b])")
    program = parse("\n".join([*lines, "output X120"]))
    tested = list[str]()
    may_join = Partition.may_join
    monkeypatch.setattr(Partition, "may_join", lambda self, e, region: (tested.append(e.name), may_join(self, e, region))[1])
    monkeypatch.setattr(nx, "has_path", None)
    alone = frozenset(e.name for e in program.einsums if e.name.startswith("H"))
    monkeypatch.setattr(fuseflow.schedule.regions, "lone_einsums", lambda *_: alone)
    assert len(grown_regions(program, (), layerwise=False)) == 240
    assert len(tested) <= 4 * len(program.einsums)
