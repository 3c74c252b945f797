"""A plain interpreter of tables of DRAM, cycle by cycle: the reference for the model in `fuseflow/memory`.

In each cycle it does what the rules of a controller say. It looks at every request in the order of acceptance, and asks for each
command whether all distances of the table are kept. No cycle is skipped, and nothing is kept but requests, rows and past commands.
"""

from __future__ import annotations

from collections import namedtuple
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from fuseflow.memory.dram_table import Distance, DramTable

Ints = npt.NDArray[np.int64]
NEVER = -(1 << 40)
FOREVER = 1 << 40

COMMANDS = ("ACT", "PREpb", "PREab", "RD", "WR", "REFab", "REFpb", "CAS_RD", "CAS_WR", "ACT2")
ACT, PRE, PREAB, RD, WR, REFAB, REFPB, CAS_RD, CAS_WR, ACT2 = range(len(COMMANDS))
CONTROLLERS = ("generic_ddr", "hbm12", "hbm34", "lpddr5")
GENERIC, HBM12, HBM34, LPDDR5 = range(len(CONTROLLERS))
COUNTS = ("hits", "misses", "conflicts", "forwarded", "absorbed")
HITS, MISSES, CONFLICTS, FORWARDED, ABSORBED = range(len(COUNTS))
READS, WRITES, ACTIVE = 0, 1, 2
"""Where requests wait; the first two are also the modes."""

CLOCK, MODE, LAST_DATA, ARRIVED, COMPLETED, PENDING, SERVED, CAS, WCK, OPENING = range(10)
"""The state of a channel: the cycle; the mode; when the last data leave; how many requests left the FIFO, and are completed;
refreshes on the list, and those that left it; the request whose CAS was issued in the cycle before, or -1; the cycle from which a CAS
is needed; the bank between ACT1 and ACT2, or -1."""

Channel = namedtuple(
    "Channel",
    "controller latency activation after_read after_write room "
    "first then cycles window scope nodes ancestors "  # of distances; then the nodes of banks
    "refresh due turn low high "  # the refresh command; of each unit the cycle of its first refresh, the period, first and last bank
    "arrival unit bank row write accepted done begun "  # of requests
    "state queues lengths open_row opener opened_at past counts issued",
)


def channel_of(table: DramTable, arrival: Ints, unit: Ints, bank: Ints, row: Ints, write: Ints) -> Any:
    """Return a channel at cycle 0, with all its requests in the FIFO."""
    n, banks, d = len(arrival), table.banks, table.distances
    names = ("channel", *(name for name, _ in table.levels))
    below = [prod(size for _, size in table.levels[k:]) for k in range(len(names))]
    ancestors = np.array([np.arange(banks) // count for count in below])
    due, low, high = _refreshes(table)
    turn = table.refresh_period * (len(low) if table.refresh == "per-bank" else 1)
    if table.refresh == "per-bank" and table.controller == "hbm34":
        turn //= table.levels[0][1]
    inner, clock = table.lpddr5, None if table.lpddr5 is None else table.lpddr5.data_clock
    return Channel(
        CONTROLLERS.index(table.controller),
        table.read_latency,
        0 if inner is None else inner.activation,
        FOREVER if clock is None else clock.after_read,
        FOREVER if clock is None else clock.after_write,
        np.array([table.read_queue, table.write_queue]),
        np.array([_bits(x.first) for x in d]),
        np.array([_bits(x.then) for x in d]),
        np.array([x.cycles for x in d]),
        np.array([x.window for x in d]),
        np.array([names.index(x.scope) for x in d]),
        np.array([[_looked_at(x, ancestors, names.index(x.scope), bank) for bank in range(banks)] for x in d]),
        ancestors,
        REFPB if table.refresh == "per-bank" else REFAB,
        due,
        turn,
        low,
        high,
        *(arrival, unit, bank, row, write, np.zeros(n, np.int64), np.full(n, -1), np.zeros(n, np.int64)),
        np.array([0, READS, 0, 0, 0, 0, 0, -1, FOREVER if clock is None else 0, -1]),
        np.zeros((3, max(banks, table.read_queue, table.write_queue)), np.int64),
        np.zeros(3, np.int64),
        np.full(banks, -1),
        np.full(banks, -1),
        np.zeros(banks, np.int64),
        np.full((len(names), banks, len(COMMANDS), 4), NEVER),
        np.zeros(len(COUNTS), np.int64),
        np.zeros(len(COMMANDS), np.int64),
    )


def _bits(commands: tuple[str, ...]) -> int:
    return sum(1 << COMMANDS.index(command.replace("ACT1", "ACT")) for command in commands)


def _looked_at(d: Distance, ancestors: Ints, level: int, bank: int) -> list[int]:
    """The nodes whose commands a distance counts from, for a command of a bank: its own node, or the others of the same parent. The list is
    filled up with -1."""
    own, count = ancestors[level, bank], ancestors[0].size
    if not d.siblings:
        return [own] + [-1] * (count - 1)
    siblings = set(ancestors[level, ancestors[level - 1] == ancestors[level - 1, bank]]) - {own}
    return [*siblings] + [-1] * (count - len(siblings))


def _refreshes(table: DramTable) -> tuple[Ints, Ints, Ints]:
    """The refreshes in order: in which cycle each is first due, and its first and last bank."""
    banks, (outer, size), period = table.banks, table.levels[0], table.refresh_period
    if table.refresh == "none":
        return np.array([FOREVER]), np.array([0]), np.array([0])
    if table.refresh == "all-bank":
        count = size if outer in ("rank", "pseudo_channel") else 1
        low = np.arange(count) * (banks // count)
        return np.zeros(count, np.int64) + period, low, low + banks // count - 1
    if table.controller == "hbm34":
        low = np.array([pc * (banks // size) + bank for bank in range(banks // size) for pc in range(size)])
        return (1 + np.arange(banks) // size) * period + np.arange(banks) % size, low, low
    return (1 + np.arange(banks)) * period, np.arange(banks), np.arange(banks)


@njit(cache=True)
def ready(c, command, bank):
    """Return whether all distances allow a command of a bank in this cycle."""
    for k in range(len(c.cycles)):
        if c.then[k] >> command & 1:
            for node in c.nodes[k, bank]:
                if node < 0:
                    break
                for first in range(len(c.issued)):
                    last = c.past[c.scope[k], node, first, c.window[k] - 1]
                    if c.first[k] >> first & 1 and c.state[CLOCK] < last + c.cycles[k]:
                        return False
    return True


@njit(cache=True)
def issue(c, command, low, high):
    """Note that a command of the banks `low` to `high` is issued in this cycle."""
    c.issued[command] += 1
    for level in range(len(c.ancestors)):
        for node in range(c.ancestors[level, low], c.ancestors[level, high] + 1):
            past = c.past[level, node, command]
            past[1:] = past[:-1].copy()
            past[0] = c.state[CLOCK]


@njit(cache=True)
def access(c, request):
    """Issue the RD or WR of a request, and complete it."""
    now, bank = c.state[CLOCK], c.bank[request]
    if c.opener[bank] == request:
        c.opener[bank] = -1
        remove(c, ACTIVE, request)
    else:
        if c.begun[request] == 0:
            c.counts[HITS] += 1
        remove(c, c.write[request], request)
    if c.write[request]:
        issue(c, WR, bank, bank)
        complete_request(c, request, now)
        if c.state[WCK] < FOREVER:
            c.state[WCK] = max(c.state[WCK], now + c.after_write)
    else:
        issue(c, RD, bank, bank)
        leave(c, request, now + c.latency)
        if c.state[WCK] < FOREVER:
            c.state[WCK] = max(c.state[WCK], now + c.after_read)


@njit(cache=True)
def leave(c, request, cycle):
    """Complete a read. Data leave in order."""
    c.state[LAST_DATA] = max(c.state[LAST_DATA], cycle)
    complete_request(c, request, c.state[LAST_DATA])


@njit(cache=True)
def complete_request(c, request, cycle):
    c.done[request] = cycle
    c.state[COMPLETED] += 1


@njit(cache=True)
def put(c, queue, request):
    c.queues[queue, c.lengths[queue]] = request
    c.lengths[queue] += 1


@njit(cache=True)
def remove(c, queue, request):
    k = 0
    while c.queues[queue, k] != request:
        k += 1
    for j in range(k, c.lengths[queue] - 1):
        c.queues[queue, j] = c.queues[queue, j + 1]
    c.lengths[queue] -= 1


@njit(cache=True)
def accept(c):
    """Accept the requests that arrived before this cycle, up to the first refused one."""
    last = c.state[CLOCK] - 1
    while c.state[ARRIVED] < len(c.arrival) and c.arrival[c.state[ARRIVED]] <= last:
        request = c.state[ARRIVED]
        queue, queued = c.write[request], False
        for k in range(c.lengths[WRITES]):
            queued |= c.unit[c.queues[WRITES, k]] == c.unit[request]
        if not queued and c.lengths[queue] == c.room[queue]:
            return
        c.accepted[request] = last
        c.state[ARRIVED] += 1
        if not queued:
            put(c, queue, request)
        elif queue == WRITES:
            c.counts[ABSORBED] += 1
            complete_request(c, request, last)
        else:
            c.counts[FORWARDED] += 1
            leave(c, request, last + 1)


@njit(cache=True)
def update_mode(c):
    reads, writes, room = c.lengths[READS], c.lengths[WRITES], c.room[WRITES]
    if c.state[MODE] == READS and (10 * writes > 8 * room or reads == 0):
        c.state[MODE] = WRITES
    elif c.state[MODE] == WRITES and 10 * writes < 2 * room and reads > 0:
        c.state[MODE] = READS


@njit(cache=True)
def access_of(c, request):
    return WR if c.write[request] else RD


@njit(cache=True)
def oldest_active(c):
    """Return the ready request that was accepted first, of those for which a row was opened, or -1."""
    best = -1
    for k in range(c.lengths[ACTIVE]):
        request = c.queues[ACTIVE, k]
        older = best < 0 or c.accepted[request] < c.accepted[best]
        if older and c.bank[request] != c.state[OPENING] and ready(c, access_of(c, request), c.bank[request]):
            best = request
    return best


@njit(cache=True)
def next_command(c, request):
    """Return the next command of a queued request, or -1 if its bank is pinned."""
    bank = c.bank[request]
    if bank == c.state[OPENING]:
        return -1
    if c.open_row[bank] == c.row[request]:
        return access_of(c, request)
    if c.open_row[bank] < 0:
        return ACT if c.state[OPENING] < 0 else -1
    return PRE if c.opener[bank] < 0 else -1


@njit(cache=True)
def oldest_queued(c, columns, pre, act):
    """Return the oldest request of the mode's queue whose next command is ready and is one of the kinds that are asked for, or -1."""
    for k in range(c.lengths[c.state[MODE]]):
        request = c.queues[c.state[MODE], k]
        command = next_command(c, request)
        wanted = (columns and command >= RD) or (pre and command == PRE) or (act and command == ACT)
        if wanted and ready(c, command, c.bank[request]):
            return request
    return -1


@njit(cache=True)
def serve(c, request):
    """Issue the next command of a queued request."""
    bank, command = c.bank[request], next_command(c, request)
    if command >= RD:
        access(c, request)
        return
    issue(c, command, bank, bank)
    if command == PRE:
        if c.begun[request] == 0:
            c.counts[CONFLICTS] += 1
        c.open_row[bank] = -1
    else:
        if c.begun[request] == 0:
            c.counts[MISSES] += 1
        c.open_row[bank] = c.row[request]
        c.opener[bank] = request
        remove(c, c.write[request], request)
        put(c, ACTIVE, request)
        if c.controller == LPDDR5:
            c.state[OPENING] = bank
            c.opened_at[bank] = c.state[CLOCK]
    c.begun[request] = 1


@njit(cache=True)
def refresh(c, only_close):
    """Issue the next command of the first pending refresh, if it is ready. Return whether one was issued."""
    k = c.state[SERVED] % len(c.low)
    low, high = c.low[k], c.high[k]
    is_open, is_pinned = False, False
    for bank in range(low, high + 1):
        is_open |= c.open_row[bank] >= 0
        is_pinned |= c.opener[bank] >= 0
    command = c.refresh
    if is_open:
        command = PRE if c.refresh == REFPB else PREAB
    if (only_close and not is_open) or is_pinned:
        return False
    for bank in range(low, high + 1):
        if not ready(c, command, bank):
            return False
    issue(c, command, low, high)
    c.open_row[low : high + 1] = -1
    if not is_open:
        c.state[SERVED] += 1
        c.state[PENDING] -= 1
    return True


@njit(cache=True)
def add_refreshes(c):
    """Put the refreshes that are due in this cycle on the list."""
    while True:
        k = c.state[SERVED] + c.state[PENDING]
        if c.due[k % len(c.due)] + k // len(c.due) * c.turn > c.state[CLOCK]:
            return
        c.state[PENDING] += 1


@njit(cache=True)
def tick_generic(c):
    """One command of any kind."""
    request = oldest_active(c)
    if request >= 0:
        access(c, request)
    elif c.state[PENDING] > 0:
        refresh(c, False)
    else:
        update_mode(c)
        request = oldest_queued(c, True, True, True)
        if request >= 0:
            serve(c, request)


@njit(cache=True)
def column_slot(c):
    request = oldest_active(c)
    if request >= 0:
        access(c, request)
    elif c.state[PENDING] == 0:
        update_mode(c)
        request = oldest_queued(c, True, False, False)
        if request >= 0:
            access(c, request)


@njit(cache=True)
def row_slot(c, only_close):
    if c.state[PENDING] > 0:
        refresh(c, only_close)
    else:
        update_mode(c)
        request = oldest_queued(c, False, True, not only_close)
        if request >= 0:
            serve(c, request)


@njit(cache=True)
def open_row(c):
    """Issue the ACT2 of the bank that is being opened."""
    issue(c, ACT2, c.state[OPENING], c.state[OPENING])
    c.state[OPENING] = -1


@njit(cache=True)
def tick_lpddr5(c):
    """One command of any kind. ACT2 comes when no other can, at the latest `activation` cycles after ACT1."""
    now, request, queued = c.state[CLOCK], c.state[CAS], False
    if request >= 0:
        c.state[CAS] = -1
        access(c, request)
        return
    opening = c.state[OPENING]
    if opening >= 0 and now >= c.opened_at[opening] + c.activation:
        open_row(c)
        return
    request = oldest_active(c)
    if request < 0 and c.state[PENDING] > 0:
        if refresh(c, False):
            return
    elif request < 0:
        update_mode(c)
        request, queued = oldest_queued(c, True, True, True), True
    if request < 0:
        if opening >= 0:
            open_row(c)
    elif queued and next_command(c, request) < RD:
        serve(c, request)
    elif now < c.state[WCK] or c.state[WCK] == FOREVER:
        access(c, request)
    elif opening >= 0 and now + 1 >= c.opened_at[opening] + c.activation:
        open_row(c)
    else:
        c.state[CAS] = request
        c.issued[CAS_WR if c.write[request] else CAS_RD] += 1


@njit(cache=True)
def run(c, end):
    """Run a channel up to a cycle, or, if `end` is negative, until all its requests are completed."""
    while c.state[CLOCK] < end or (end < 0 and c.state[COMPLETED] < len(c.done)):
        c.state[CLOCK] += 1
        now = c.state[CLOCK]
        accept(c)
        add_refreshes(c)
        if c.controller == GENERIC:
            tick_generic(c)
        elif c.controller == LPDDR5:
            tick_lpddr5(c)
        else:
            falling = c.controller == HBM34 and now % 2 == 0
            if not falling:
                column_slot(c)
            row_slot(c, falling)


def complete(table: DramTable, channels: int, places: tuple[Ints, Ints, Ints], unit: Ints, arrival: Ints, write: Ints) -> Any:
    """Return the completion and acceptance cycle of each request, and all counts up to the last completion. `places` are channel, bank and
    row of each."""
    done, accepted = np.zeros_like(arrival), np.zeros_like(arrival)
    chosen = [np.flatnonzero(places[0] == k) for k in range(channels)]
    states = [channel_of(table, *(np.ascontiguousarray(x[own]) for x in (arrival, unit, *places[1:], write))) for own in chosen]
    for own, state in zip(chosen, states, strict=True):
        run(state, -1)
        done[own], accepted[own] = state.done, state.accepted
    for state in states:
        run(state, done.max())
    counts = dict(zip(COUNTS, sum(state.counts for state in states).tolist(), strict=True))
    return done, accepted, counts | dict(zip(COMMANDS, sum(state.issued for state in states).tolist(), strict=True))
