"""The constants of the memory, against runs of the memory model alone: no graph, no node, and none of the estimate's code."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fuseflow.estimate.buffer_reuse import OwnLoop
from fuseflow.estimate.memory_load import ArrayLoad, MemoryLoad, shared_line_cycles, transfer_cycles
from fuseflow.estimate.memory_pace import memory_pace
from fuseflow.estimate.port_lines import PortLines
from fuseflow.estimate.port_waits import answer_cycles, strided_line_cycles
from fuseflow.machine.machine import Machine
from fuseflow.memory.settings import DramMemory
from fuseflow.memory.table_files import preset, preset_names
from fuseflow.sim import load_machine

RDA = load_machine("rda")
PACE = memory_pace(RDA)
PORTS, OUTSTANDING = 16, 32


def run_ports(
    address: Callable[[int, int], int], lines: int, ports: int, every: int = 0, machine: Machine = RDA
) -> tuple[int, int]:
    """Return the cycles in which ports read so many lines each, with at most 32 without an answer, and how many lines another port
    wrote: one for `every` lines that the first port read. `address` says which are read, by port and number."""
    controller = machine.controller()
    assert controller is not None
    memory = controller.make(ports + 1)
    requests: list[list[int]] = [[] for _ in range(ports)]
    cycle = written = 0
    while any(len(r) < lines for r in requests):
        for port, own in enumerate(requests):
            open_ = len(own) < OUTSTANDING or 0 <= memory.answer_cycle(port, own[len(own) - OUTSTANDING]) <= cycle
            if len(own) < lines and open_:
                own.append(memory.issue(port, address=address(port, len(own)) * 64, size=64, write=False, cycle=cycle))
                if every and len(own) % every == 0:
                    memory.issue(ports, address=(1 << 30) + written * 64, size=64, write=True, cycle=cycle)
                    written += 1
        cycle += 1
        memory.advance(cycle)
    memory.drain()
    return max(memory.answer_cycle(port, own[-1]) for port, own in enumerate(requests)), written


def cycles_of(address: Callable[[int, int], int], lines: int, ports: int = PORTS) -> int:
    return run_ports(address, lines, ports)[0]


def load_of(ports: int, each: int, array_lines: int, alike: float = 1.0, **settings: Any) -> MemoryLoad:
    """Return the load of ports that read so many lines each of an array of `array_lines` lines."""
    port = PortLines("", "", 0, "", each, 0, **settings)
    return MemoryLoad((ArrayLoad(0, port, ports, ports * each, each, 0, 0, alike, array_lines),), 0, 0, 0)


def test_lines_in_order_come_at_the_share_of_the_peak_that_is_stated():
    took = cycles_of(lambda port, n: n * PORTS + port, 1500)
    load = MemoryLoad((), 0, 0, 0)
    assert transfer_cycles(load, PORTS * 1500, PACE) == pytest.approx(took, rel=0.08)
    assert PORTS * 1500 * 64 / took / 256 == pytest.approx(PACE.in_order, rel=0.08)


def test_lines_anywhere_in_the_memory_take_the_cycles_of_a_row_more():
    rng = random.Random(0)
    took = cycles_of(lambda port, n: rng.randrange(1 << 26), 1000)
    assert transfer_cycles(MemoryLoad((), PORTS * 1000, 0, 0), PORTS * 1000, PACE) == pytest.approx(took, rel=0.35)


@pytest.mark.parametrize("lines", [1, 4, 8])
def test_an_array_of_few_lines_gives_eight_bytes_a_cycle_for_each(lines: int):
    rng = random.Random(0)
    took = cycles_of(lambda port, n: rng.randrange(lines), 60)
    load = load_of(PORTS, 60, lines)
    assert PACE.group_cycles == 8 and PORTS * 60 * 64 / took <= 8 * lines
    assert shared_line_cycles(load, PACE) == pytest.approx(took, rel=0.3)


def test_many_ports_crowd_the_queues():
    """Sixteen groups of sixteen ports read the same lines, one group apart from the other. The rate is fitted, not derived."""
    took = cycles_of(lambda port, n: port // 16 * 1003 + n, 60, ports=256)
    load = load_of(256, 60, 16_000, alike=16.0)
    assert took > 1.5 * transfer_cycles(load, 256 * 60, PACE)
    assert shared_line_cycles(load, PACE) == pytest.approx(took, rel=0.3)


def test_a_port_alone_waits_for_its_answers():
    took = cycles_of(lambda port, n: n, 1000, ports=1)
    assert answer_cycles(load_of(1, 1000, 1000), 0, PACE) == pytest.approx(took, rel=0.15)


@pytest.mark.parametrize(
    ("stride", "size"), [(8, 64), (12, 64), (16, 256), (48, 64), (64, 256), (89.5625, 16), (96, 64), (128, 256)]
)
def test_lines_evenly_apart_wait_for_the_bank_group_in_which_most_of_them_lie(stride: float, size: int):
    """A column of a row-major matrix: rows of 4,096 bytes put it into one bank group, and rows of 5,732 nearly anywhere."""
    took = cycles_of(lambda port, n: int(n % size * stride), 800, ports=1) / 800
    assert max(1.0, strided_line_cycles(PACE, OwnLoop(size, stride))) == pytest.approx(took, rel=0.15)


@pytest.mark.parametrize(("stride", "size"), [(256, 256), (512, 64), (512, 256), (1000, 64), (1000, 1024)])
def test_of_lines_in_many_rows_only_the_order_of_magnitude_is_known(stride: int, size: int):
    """Lines that a window of 32 does not show: the memory takes later ones of other groups first, or opens a row for each."""
    took = cycles_of(lambda port, n: n % size * stride, 800, ports=1) / 800
    assert took > 2 and strided_line_cycles(PACE, OwnLoop(size, stride)) == pytest.approx(took, rel=0.45)


@pytest.mark.parametrize(("stride", "run"), [(64, 2), (64, 4), (64, 16), (512, 16), (512, 512)])
def test_tiles_evenly_apart_wait_less_the_more_lines_they_have(stride: int, run: int):
    """Tiles of a column of tiles: each is a run of lines, which lie in different bank groups."""
    took = cycles_of(lambda port, n: n // run % 8 * stride + n % run, 800, ports=1) / 800
    assert max(1.0, strided_line_cycles(PACE, OwnLoop(8, stride, run))) == pytest.approx(took, rel=0.2)


@pytest.mark.parametrize(("ports", "again"), [(1, 3), (1, 8), (2, 5), (4, 3), (8, 5)])
def test_lines_that_are_asked_for_again_wait_for_the_bank_group_that_has_most_to_do(ports: int, again: int):
    """Each port asks for lines anywhere, `again` of them 16 times one after the other: no refresh is met."""
    rng, times, number = random.Random(2), 16, 3000 // (3 * ports + 8 // again)
    lines = [[line for _ in range(number) for line in times * rng.sample(range(512), again)] for _ in range(ports)]
    begin = [rng.randrange(times) * again for _ in range(ports)]
    took = cycles_of(lambda port, n: lines[port][begin[port] + n], number, ports)
    at_once = again * (1 + (OUTSTANDING / again - 1) / times)
    load = load_of(ports, number, 512, at_once=at_once)
    assert answer_cycles(load, 0, PACE) == pytest.approx(took, rel=0.2)


def test_a_write_closes_the_row_of_what_a_port_reads():
    """One line is written for two hundred that are read, in another row of the same bank."""
    rng, lines = random.Random(1), 2000
    took, written = run_ports(lambda port, n: rng.randrange(128), lines, 1, every=200)
    load = load_of(1, lines, 128)
    waits = answer_cycles(load, PACE.banks * written, PACE)
    assert waits == pytest.approx(took, rel=0.15)
    assert waits > answer_cycles(load, 0, PACE)


EVERY_REFRESH = [(name, table.refresh) for name in preset_names() for table in preset(name).tables]


@pytest.mark.parametrize(("name", "refresh"), EVERY_REFRESH)
def test_lines_in_order_and_lines_anywhere_of_every_memory_with_every_refresh(name: str, refresh: str):
    """Enough ports ask that the channels never wait for one."""
    machine, rng = load_machine("rda", {"memory": name, "memory.refresh": refresh}), random.Random(0)
    pace = memory_pace(machine)
    ports, each = (128, 200) if pace.peak > 512 else (16, 500)
    lines = ports * each
    took, _ = run_ports(lambda port, n: n * ports + port, each, ports, machine=machine)
    assert transfer_cycles(MemoryLoad((), 0, 0, 0), lines, pace) == pytest.approx(took, rel=0.25)
    took, _ = run_ports(lambda port, n: rng.randrange(1 << 24), each, ports, machine=machine)
    assert transfer_cycles(MemoryLoad((), lines, 0, 0), lines, pace) == pytest.approx(took, rel=0.45)


@pytest.mark.parametrize("ports", [1, 2, 4])
@pytest.mark.parametrize("name", sorted({name for name, refresh in EVERY_REFRESH if refresh == "per-bank"}))
def test_ports_wait_for_the_banks_that_are_refreshed_one_by_one(name: str, ports: int):
    """Ports ask for lines in order, and anywhere in one row of a bank of each bank group."""
    each, took = 6000, dict[str, list[int]]()
    for refresh in ("none", "per-bank"):
        machine = load_machine("rda", {"memory": name, "memory.refresh": refresh})
        pace, memory = memory_pace(machine), machine.memory
        assert isinstance(memory, DramMemory)
        rows = pace.groups * pace.channels * pace.row_bytes // 64 // dict(memory.dram.levels).get("sid", 1)
        anywhere = [random.Random(port).choices(range(rows), k=each) for port in range(ports)]
        in_order = [range(port, each * ports, ports) for port in range(ports)]
        took[refresh] = [run_lines(lines, machine) for lines in (in_order, anywhere)]
    assert pace.refresh is not None
    for plain, refreshed, near in zip(took["none"], took["per-bank"], (0.2, 0.1), strict=True):
        share = pace.refresh.pause(0.0, each / plain) / pace.refresh.period
        assert plain / (1 - share) == pytest.approx(refreshed, rel=near)
        assert refreshed > 1.03 * plain


def run_lines(lines: Sequence[Sequence[int]], machine: Machine) -> int:
    """Return the cycles in which each port reads its lines."""
    return run_ports(lambda port, n: lines[port][n], len(lines[0]), len(lines), machine=machine)[0]
