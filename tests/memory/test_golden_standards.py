"""Completion, acceptance and commands of every request of all standards, against Ramulator 2.1: no tolerance, no averages.

`tests/data/dram` holds some of the traces; the full data, where they are, are checked by the slow tests. The README of each standard
says which distances its traces do not notice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dram_reference
import numpy as np
import pytest
from dram import table_of
from memory_runs import Cycles, Ints, issue, run, run_in_chunks, run_in_threads

from fuseflow.memory.dram_table import Distance, DramTable
from fuseflow.memory.mapping import MAPPINGS, decode_addresses
from fuseflow.memory.memory import Memory
from fuseflow.memory.models import Dram

RECORDED_AS = {
    **{name: name for name in ("hits", "misses", "conflicts", "forwarded", "absorbed")},
    "activations": "ACT",
    "closes": "PREpb",
    "closes_of_all": "PREab",
    "read_clocks": "CAS_RD",
    "write_clocks": "CAS_WR",
}
"""The names of recorded counts, by the fields of the record of a channel."""


def complete(trace: dict[str, Any], config: dict[str, Any], mapping: str) -> tuple[Ints, Ints, dict[str, int]]:
    """The completion and acceptance cycle of each request of a trace, and the counts."""
    done, accepted = run(memory_of(trace, config, mapping), trace)
    memory = memory_of(trace, config, mapping)  # recorded counts end with the last completion
    issue(memory, trace)
    memory.advance(int(done.max()))
    model: Any = memory.model
    records = [model.record(k) for k in range(trace["nch"])]
    refreshes = {"refreshes_done": "REFab" if config["refresh"] == "AllBank" else "REFpb"}
    counts = {name: sum(int(record[field]) for record in records) for field, name in {**RECORDED_AS, **refreshes}.items()}
    return done, accepted, counts


def complete_in_chunks(trace: dict[str, Any], config: dict[str, Any], mapping: str) -> Cycles:
    return run_in_chunks(memory_of(trace, config, mapping), trace)


def complete_in_threads(trace: dict[str, Any], config: dict[str, Any], mapping: str) -> Cycles:
    return run_in_threads(lambda ports: memory_of(trace, config, mapping, ports=ports), trace)


def interpret(trace: dict[str, Any], config: dict[str, Any], mapping: str) -> tuple[Ints, Ints, dict[str, int]]:
    """The same from the reference."""
    table, channels, address = table_of(config), trace["nch"], trace["addr"]
    places = decode_addresses(MAPPINGS[mapping](table), table, channels, address)
    unit = address // table.transaction
    done, accepted, counts = dram_reference.complete(table, channels, places, unit, trace["arr"], trace["rw"])
    return done, accepted, {name: count for name, count in counts.items() if name != "ACT2"}


def memory_of(
    trace: dict[str, Any], config: dict[str, Any], mapping: str, table: DramTable | None = None, ports: int = 1
) -> Memory:
    """A memory of the table of a configuration, or of another table."""
    return Memory(Dram(trace["nch"], MAPPINGS[mapping], table or table_of(config)), ports)


HOWS = pytest.mark.parametrize("how", [complete, complete_in_chunks, complete_in_threads], ids=lambda how: how.__name__)
ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "dram"
ALL = ROOT.parent / "shared" / "golden" / "dram"
FILES = {"RoBaRaCoCh": "ro", "MOP4CLXOR": "mop"}
COUNTS = (
    *("hits", "misses", "conflicts", "forwarded", "absorbed", "ACT", "PREpb", "PREab", "RD", "WR", "REFab", "REFpb"),
    *("CAS_RD", "CAS_WR", "end"),
)
CONFIGURATIONS = [
    *("ddr4 A", "ddr4 B", "ddr5 A", "ddr5 B", "lpddr5 A", "lpddr5 B", "lpddr5 C", "gddr6 A", "gddr6 B"),
    *("hbm2 B", "hbm3 A", "hbm3 B", "hbm3 C", "hbm4 A", "hbm4 B"),
]
Case = tuple[dict[str, Any], str, Any, Any, dict[str, int]]
"""A trace, its mapping, completions and acceptances from arrival, and counts."""

needs_all = pytest.mark.skipif(not ALL.is_dir(), reason="../shared/golden/dram is not here")


def config_of(configuration: str) -> dict[str, Any]:
    standard, name = configuration.split()
    config: dict[str, Any] = json.loads((DATA / standard / "config.json").read_text())[name]
    return config


def cases(folder: Path, configuration: str) -> Iterator[Case]:
    standard, config = configuration.split()
    size = config_of(configuration)["transaction_bytes"]
    with np.load(folder / standard / "traces.npz") as traces:
        for mapping, file in FILES.items():
            path = folder / standard / f"golden_{config}_{file}.npz"
            for key, golden in dict(np.load(path)).items() if path.exists() else ():
                name, what = key.split("/")
                if what == "lat":
                    arr, addr, rw = (traces[f"{name}/{part}"].astype(np.int64) for part in ("arr", "addr", "rw"))
                    trace = {"nch": int(traces[f"{name}/nch"]), "arr": arr, "addr": addr * size, "rw": rw}
                    with np.load(path) as rest:
                        counts = dict(zip(COUNTS, rest[f"{name}/stat"].tolist(), strict=True))
                        yield trace, mapping, golden.astype(np.int64), rest[f"{name}/q"].astype(np.int64), counts


def check(folder: Path, configuration: str, how: Any) -> None:
    found, config = 0, config_of(configuration)
    for trace, mapping, latency, queued, wanted in cases(folder, configuration):
        done, accepted, *counts = how(trace, config, mapping)
        assert np.array_equal(done - trace["arr"], latency)
        assert np.array_equal(accepted - trace["arr"], queued)
        assert all(found_counts == {name: wanted[name] for name in found_counts} for found_counts in counts)
        found += 1
    assert found >= 2


@HOWS
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_some_traces(configuration: str, how: Any) -> None:
    check(DATA, configuration, how)


@needs_all
@pytest.mark.slow
@HOWS
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_all_traces(configuration: str, how: Any) -> None:
    check(ALL, configuration, how)


@pytest.mark.slow
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_the_reference_completes_some_traces(configuration: str) -> None:
    check(DATA, configuration, interpret)


def single_distances(table: DramTable) -> list[Distance]:
    """The distances of a table, each from one command to one other."""
    pairs = {
        replace(distance, first=(first,), then=(then,))
        for distance in table.distances
        for first in distance.first
        for then in distance.then
    }
    return sorted(pairs, key=repr)


def is_noticed(configuration: str, table: DramTable) -> bool:
    config = config_of(configuration)
    for trace, mapping, latency, _, _ in cases(ALL, configuration):
        memory = memory_of(trace, config, mapping, table)
        memory.issue_all(0, trace["addr"], table.transaction, trace["rw"], trace["arr"])
        memory.drain()
        if not np.array_equal(memory.requests(0)["done"] - trace["arr"], latency):
            return True
    return False


def of_readme(distance: Distance) -> str:
    """A distance as the READMEs write it, such as `Rank siblings RD-RD 4`."""
    scope = "PC" if distance.scope == "pseudo_channel" else "".join(word.capitalize() for word in distance.scope.split("_"))
    kind = " siblings" * distance.siblings + " (any five)" * (distance.window == 4)
    pair = "-".join({"PREpb": "PRE", "ACT1": "ACT"}.get(command, command) for command in (*distance.first, *distance.then))
    return f"{scope}{kind} {pair} {distance.cycles}"


@needs_all
@pytest.mark.slow
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_every_distance_is_noticed_but_those_that_the_readme_lists(configuration: str) -> None:
    standard, name = configuration.split()
    readme = (ALL / standard / "README.md").read_text()
    ((count, of, unnoticed),) = re.findall(rf"^- {name}, (\d+) of (\d+) noticed: not (.*?)(?:;.*)?$", readme, re.MULTILINE)
    table = table_of(config_of(configuration))
    distances = single_distances(table)
    found = set()
    for k, distance in enumerate(distances):
        longer = replace(distance, cycles=distance.cycles + 1)
        if not is_noticed(configuration, replace(table, distances=(*distances[:k], longer, *distances[k + 1 :]))):
            found.add(of_readme(distance))
    assert found == set(unnoticed.split(", "))
    assert (len(distances) - len(found), len(distances)) == (int(count), int(of))


@needs_all
@pytest.mark.slow
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_every_other_number_is_noticed(configuration: str) -> None:
    table = table_of(config_of(configuration))
    assert not is_noticed(configuration, table)
    for name, more in (("read_queue", 1), ("write_queue", 1), ("refresh_period", 3), ("read_latency", 1)):
        assert is_noticed(configuration, replace(table, **{name: getattr(table, name) + more})), name
    if table.lpddr5 is not None:
        assert is_noticed(configuration, replace(table, lpddr5=replace(table.lpddr5, activation=table.lpddr5.activation + 1)))
