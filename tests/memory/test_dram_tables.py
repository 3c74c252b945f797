"""The model of DRAM against its reference interpreter, on tables and requests that are drawn at random."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import dram_reference
import numpy as np
import pytest
from dram import table_of

from fuseflow.memory.dram_table import CHANNEL, Distance, DramTable, faults
from fuseflow.memory.mapping import MAPPINGS, decode_addresses
from fuseflow.memory.memory import Memory
from fuseflow.memory.models import Dram

DATA = Path(__file__).parents[1] / "data" / "dram"
BASES = [
    table_of(config, f"{path.parent.name} {name}")
    for path in sorted(DATA.glob("*/config.json"))
    for name, config in json.loads(path.read_text()).items()
]


def drawn_table(random: Random) -> DramTable:
    """A table with the commands and scopes of a standard, but other sizes, distances, queues and refreshes."""
    base = random.choice(BASES)
    levels = tuple((name, random.choice((1, 2, 4))) for name, _ in base.levels)
    inner = base.lpddr5
    if inner is not None:
        clock = inner.data_clock and replace(
            inner.data_clock, after_read=random.randint(1, 30), after_write=random.randint(1, 30)
        )
        inner = replace(inner, activation=random.randint(1, 8), data_clock=clock)
    distances = tuple(_drawn(random, distance, base) for distance in base.distances)
    if random.random() < 0.3:
        distances += (Distance(CHANNEL, ("PREpb",), ("RD",), random.randint(1, 9)),)
    table = replace(
        base, levels=levels, distances=distances, lpddr5=inner, read_latency=random.randint(1, 60),
        read_queue=random.randint(1, 70), write_queue=random.randint(1, 70),
    )  # fmt: skip
    refreshing = table.least("REFpb" if table.refresh == "per-bank" else "REFab", table.activate)
    period = random.randint(20, 400) if table.refresh == "per-bank" else refreshing + random.randint(400, 2000)
    return replace(table, refresh_period=period)


def _drawn(random: Random, distance: Distance, base: DramTable) -> Distance:
    """A distance of up to twice the cycles. ACT1 to RD is longer than to ACT2, and a PREab comes after a PRE's clock."""
    cycles = random.randint(distance.cycles // 2, 2 * distance.cycles) if random.random() < 0.7 else distance.cycles
    if distance.cycles > 200:
        cycles = distance.cycles // random.randint(1, 4)
    return replace(distance, cycles=max(cycles, 8 if "ACT1" in distance.first else 2))


def drawn_requests(random: Random, table: DramTable, count: int) -> tuple[Any, Any, Any]:
    """The addresses of few or many banks and rows, arrivals with gaps and bursts, and which requests write."""
    rows, banks = random.choice((1, 2, 8, 1000)), random.choice((1, 2, table.banks, table.banks))
    writes, gap = random.choice((0.0, 0.2, 0.5, 1.0)), random.choice((0, 1, 4, 20))
    arrival, address, at = [], [], 0
    for _ in range(count):
        at += random.randint(0, 2 * gap) if random.random() < 0.98 else random.randint(0, 3000)
        arrival.append(at)
        place = random.randrange(rows) * table.banks + random.randrange(min(banks, table.banks))
        address.append((place << table.column_bits | random.randrange(4)) * table.transaction)
    return np.array(address), np.array(arrival), np.array([int(random.random() < writes) for _ in range(count)])


def compare(seed: int, count: int) -> None:
    random = Random(seed)
    table = drawn_table(random)
    compare_requests(table, random, count)


def compare_requests(table: DramTable, random: Random, count: int) -> None:
    address, arrival, write = drawn_requests(random, table, count)
    rule = MAPPINGS["RoBaRaCoCh"]
    places, unit = decode_addresses(rule(table), table, 1, address), address // table.transaction
    done, accepted, counts = dram_reference.complete(table, 1, places, unit, arrival, write)
    memory = Memory(Dram(1, rule, table), ports=1)
    memory.issue_all(0, address, table.transaction, write, arrival)
    while (memory.ports["answered"] < memory.ports["issued"]).any():
        memory.advance(memory.cycle + random.randint(1, 4000))
    found = memory.requests(0)
    assert np.array_equal(found["done"], done), table
    assert np.array_equal(found["accepted"], accepted), table
    (channel,) = memory.model.channels()
    for name in ("hits", "misses", "conflicts", "forwarded", "absorbed"):
        assert getattr(channel, name) == counts[name], table


def base(name: str) -> DramTable:
    return next(table for table in BASES if table.name == name)


def messages(table: DramTable) -> list[str]:
    return [fault.message for fault in faults(table)]


def test_the_recorded_tables_have_no_faults() -> None:
    assert not any(messages(table) for table in BASES)


def test_tables_for_which_the_model_lacks_a_rule_are_refused() -> None:
    lpddr5, hbm3, hbm4 = base("lpddr5 A"), base("hbm3 A"), base("hbm4 A")
    assert lpddr5.lpddr5 is not None
    late = replace(lpddr5, lpddr5=replace(lpddr5.lpddr5, activation=16))
    assert messages(late) == [f"ACT2 may come 16 cycles after ACT1, but a {then} 15 cycles after it" for then in ("RD", "WR")]
    early = tuple(replace(d, cycles=1) if "PREpb" in d.first and "PREab" in d.then else d for d in hbm3.distances)
    assert messages(replace(hbm3, distances=early)) == ["PREab may not follow PREpb after 1 cycles"]
    one_stack = tuple((name, 1 if name == "sid" else size) for name, size in hbm4.levels)
    (message,) = messages(replace(hbm4, levels=one_stack))
    assert message == "a refresh takes 1,118 cycles, but with one stack the next round begins after 488"


@pytest.mark.parametrize("seed", range(20))
def test_random_tables(seed: int) -> None:
    compare(seed, 300)


@pytest.mark.parametrize("name", [table.name for table in BASES if table.refresh == "all-bank"])
def test_a_refresh_of_all_banks_where_there_is_one(name: str) -> None:
    """It closes the bank by PREab, and not by PRE, whose distances are others."""
    table = base(name)
    one_bank = replace(table, levels=tuple((level, 1) for level, _ in table.levels), refresh_period=2000)
    distances = tuple(replace(d, cycles=9 * d.cycles) if d.first == ("PREab",) else d for d in one_bank.distances)
    compare_requests(replace(one_bank, distances=distances), Random(name), 300)


@pytest.mark.slow
def test_more_random_tables() -> None:
    for seed in range(20, 1000):
        compare(seed, 1000)
