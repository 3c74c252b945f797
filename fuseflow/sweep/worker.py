"""The main program of a process that measures points. It reads tasks as lines of JSON, and writes outcomes to standard output.

Points are measured in a process of their own, because a point that takes too long or too much memory is ended together with its process.
The process ends when its standard input ends, so nothing goes on after a sweep is killed.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import signal
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from fuseflow.errors import DeadlockError, FuseFlowError
from fuseflow.sim.processors import PROCESSORS
from fuseflow.sweep.point import Point, code_version
from fuseflow.sweep.point_evaluation import SourceCache, measure

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_memory() -> int:
    """Return the most bytes of memory that this process had, since `reset_peak_memory` where the system can reset it."""
    try:
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def reset_peak_memory() -> None:
    """Reset the peak of this process, where the system can."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return


def measure_tasks(reader: IO[str], writer: IO[str]) -> None:
    """Measure the tasks of `reader` one after the other, and write an outcome for each to `writer`."""
    sources = SourceCache()
    _send(writer, code=code_version())
    for task in _tasks(reader):
        start = time.perf_counter()
        reset_peak_memory()
        try:
            point = Point(**task["point"])
            loaded = sources.get(point)
            _send(writer, loaded=task["key"])
            start = time.perf_counter()
            measured = measure(loaded, point, task["mode"], task["keep_run"])
            result: dict[str, Any] = {"values": measured.values, "run": b64encode(measured.run).decode()}
        except FuseFlowError as error:
            stuck = {"region": error.region} if isinstance(error, DeadlockError) else {}
            result = {"reason": error.code, "error": str(error), "values": stuck}
        except MemoryError:
            result = {"reason": "memory", "error": "error[memory]: this machine has not enough memory for that"}
        except Exception as error:  # raised by a model file or a fault of fuseflow: it becomes a row, and the sweep goes on
            result = {"reason": "internal", "error": f"internal error: {type(error).__name__}: {error}"}
        _send(writer, key=task["key"], seconds=round(time.perf_counter() - start, 4), peak=peak_memory(), **result)


def _send(writer: IO[str], **message: Any) -> None:
    writer.write(json.dumps(message) + "\n")
    writer.flush()


def _tasks(reader: IO[str]) -> Iterator[dict[str, Any]]:
    """Yield the tasks. A thread reads them, so that the end of the input ends the process even in the middle of a point."""
    tasks: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def listen() -> None:
        for line in reader:
            tasks.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        yield tasks.get()


def main() -> None:
    """Measure the tasks of standard input. Text that a model prints goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the sweep, which ends its workers
    PROCESSORS.limit = 1  # the sweep has a process like this one for each core
    writer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # text that a model file prints is no message
    reader = os.fdopen(os.dup(0), encoding="utf-8")
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    measure_tasks(reader, writer)


if __name__ == "__main__":
    main()
