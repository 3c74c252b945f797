"""Whether threads of the engine touch the same memory at the same time: without a compiler, kernels are plain Python, and every access to
memory goes through `records.py`. It is noted here, with its thread and the number of meetings of all threads before it. Two threads may
use a word between the same two meetings only if both read it."""

from __future__ import annotations

import ctypes
import threading
from collections import defaultdict
from typing import Any

from fuseflow.native import records
from fuseflow.sim.engine import team, threaded_loop

WORD = 8


class Watch:
    """The accesses of all threads since they last met, by word: the threads that read it and that wrote it."""

    def __init__(self) -> None:
        self.read: dict[int, set[int]] = defaultdict(set)
        self.written: dict[int, set[int]] = defaultdict(set)
        self.races: list[str] = []
        self.meetings = 0
        self.barrier: threading.Barrier | None = None
        self.lock = threading.Lock()

    def note(self, address: int, writes: bool, what: str) -> None:
        me, word = threading.get_ident(), address // WORD
        with self.lock:
            others = (self.read[word] | self.written[word] if writes else self.written[word]) - {me}
            if others and self.barrier is not None:
                self.races.append(f"{what} after {self.meetings} meetings")
            (self.written if writes else self.read)[word].add(me)

    def forget(self) -> None:
        self.meetings += 1
        self.read.clear()
        self.written.clear()

    def meet(self, barrier: int, threads: int) -> None:
        """In place of the spinning one."""
        with self.lock:
            if self.barrier is None or self.barrier.parties != threads:
                self.barrier = threading.Barrier(threads, action=self.forget)
        self.barrier.wait()


def watched(watch: Watch) -> None:
    """From now on, note every access to memory through records and arrays."""
    load, store, pointer = records.Load.__call__, records.Store.__call__, records.Pointer.__call__

    def noted_load(self: records.Load, address: int, i: int) -> Any:
        watch.note(address + ctypes.sizeof(records.C_TYPES[self.scalar]) * i, False, f"load {self.scalar}")
        return load(self, address, i)

    def noted_store(self: records.Store, address: int, i: int, value: Any) -> None:
        watch.note(address + ctypes.sizeof(records.C_TYPES[self.scalar]) * i, True, f"store {self.scalar}")
        store(self, address, i, value)

    class Noted:
        """A record whose fields are noted."""

        def __init__(self, view: Any, address: int, type_: Any) -> None:
            vars(self).update(_view=view, _address=address, _type=type_)

        def __getattr__(self, name: str) -> Any:
            watch.note(self._address + getattr(self._type, name).offset, False, f"read of {name}")
            return getattr(self._view, name)

        def __setattr__(self, name: str, value: Any) -> None:
            watch.note(self._address + getattr(self._type, name).offset, True, f"write of {name}")
            setattr(self._view, name, int(value) if isinstance(value, bool) else value)

    def noted_pointer(self: records.Pointer, address: int) -> Any:
        return Noted(pointer(self, address), address, self.view)

    records.Load.__call__, records.Store.__call__, records.Pointer.__call__ = noted_load, noted_store, noted_pointer  # type: ignore[method-assign]


def watch_team(watch: Watch) -> None:
    """From now on, a team of threads runs without a compiler, and meets at `watch`."""
    watched(watch)
    turn = team.Team.turn

    def watched_turn(self: team.Team, budget: int) -> tuple[int, int]:
        watch.forget()  # what this thread alone did before
        try:
            return turn(self, budget)
        finally:
            watch.forget()
            watch.barrier = None

    team.Team.turn = watched_turn  # type: ignore[method-assign]
    team.COMPILED = True
    threaded_loop.meet = watch.meet
