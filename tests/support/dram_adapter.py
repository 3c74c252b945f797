"""The project's model of DRAM, and its reference, as the checker of the golden data wants them.

    PYTHONPATH=.:tests/support python ../shared/golden/dram/check.py all dram_adapter:complete [--only c1_]

`complete_in_chunks` advances the memory in random steps instead of in one go, `complete_in_threads` as several threads do, and
`interpret` asks the reference.
"""

from __future__ import annotations

from typing import Any

import dram_reference
from dram import table_of
from memory_runs import Cycles, Ints, issue, run, run_in_chunks, run_in_threads

from fuseflow.memory.dram_table import DramTable
from fuseflow.memory.mapping import MAPPINGS, decode_addresses
from fuseflow.memory.memory import Memory
from fuseflow.memory.models import Dram

COUNTS = {
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
    counts = {name: sum(int(record[field]) for record in records) for field, name in {**COUNTS, **refreshes}.items()}
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
