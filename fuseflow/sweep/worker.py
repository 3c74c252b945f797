"""A process that measures points: tasks come as lines of JSON on standard input, outcomes go to standard output.

It is a process of its own because a point may take too long or too much memory, and then only it is ended; it speaks JSON because
whoever started it may be another program on the way (a worker of a cluster). It ends when its standard input does: if the sweep is
killed, nothing goes on behind it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import threading
import time
from collections.abc import Iterator
from typing import IO, Any

from fuseflow.errors import FuseFlowError
from fuseflow.sweep.digests import code_version
from fuseflow.sweep.measurement import MEASURES, SourceCache
from fuseflow.sweep.memory_budget import peak_memory, reset_peak_memory
from fuseflow.sweep.point import Point


def measure_tasks(reader: IO[str], writer: IO[str]) -> None:
    sources = SourceCache()
    _send(writer, code=code_version())
    for task in _tasks(reader):
        start = time.perf_counter()
        reset_peak_memory()
        try:
            point = Point(**task["point"])
            loaded = sources.of(point)
            _send(writer, loaded=task["key"])
            start = time.perf_counter()
            found: dict[str, Any] = {"values": MEASURES[task["mode"]](loaded, point)}
        except FuseFlowError as error:
            found = {"reason": error.code, "error": str(error)}
        except MemoryError:
            found = {"reason": "memory", "error": "error[memory]: this machine has not enough memory for that"}
        except Exception as error:  # of a model file's code, or a fault of fuseflow: a row, and the sweep goes on
            found = {"reason": "internal", "error": f"internal error: {type(error).__name__}: {error}"}
        _send(writer, key=task["key"], seconds=round(time.perf_counter() - start, 4), peak=peak_memory(), **found)


def _send(writer: IO[str], **message: Any) -> None:
    writer.write(json.dumps(message) + "\n")
    writer.flush()


def _tasks(reader: IO[str]) -> Iterator[dict[str, Any]]:
    """The tasks one by one, read by a thread, so that the end of the input ends the process in the middle of a point, too."""
    waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def listen() -> None:
        for line in reader:
            waiting.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        yield waiting.get()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the sweep, which ends its workers
    writer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a model file prints is no message
    reader = os.fdopen(os.dup(0), encoding="utf-8")
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    measure_tasks(reader, writer)


if __name__ == "__main__":
    main()
