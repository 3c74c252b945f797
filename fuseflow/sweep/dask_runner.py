"""A runner on a Dask cluster: each thread of its workers measures one point at a time, in a process of its own as in `pool`.

Dask moves tasks and outcomes, and sends the tasks of a lost worker to other workers. The files that points read must have the same paths
on every machine.
"""

from __future__ import annotations

import queue
import socket
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

from distributed import Client, KilledWorker, WorkerPlugin, as_completed, get_worker

from fuseflow.errors import FuseFlowError, SweepError
from fuseflow.sweep.point import Point, Task, TaskOutcome, code_version
from fuseflow.sweep.pool import Pool

PLUGIN = "fuseflow"
"""The name of the plugin on the workers."""
_HINT = "give the address that `dask scheduler` prints, as in `--scheduler tcp://host:8786`"
MAX_SUBMITTED = 1000
"""The most tasks that the scheduler has at a time."""


class ProcessPlugin(WorkerPlugin):
    """A plugin on every worker that keeps pools of one process each, one for every point that is measured at a time. The
    processes keep traced models."""

    name = PLUGIN

    def setup(self, worker: Any) -> None:
        self.idle: queue.SimpleQueue[Pool] = queue.SimpleQueue()
        self.pools: list[Pool] = []

    def teardown(self, worker: Any) -> None:
        for pool in self.pools:
            pool.close()

    def measure(self, task: Task) -> TaskOutcome:
        """Measure a task in an idle pool, or in a new one."""
        try:
            pool = self.idle.get_nowait()
        except queue.Empty:
            pool = Pool(1)
            self.pools.append(pool)
        try:
            return next(outcome for _, outcome in pool.run([task]))
        finally:
            self.idle.put(pool)


def measure_on_worker(task: dict[str, Any], expected_code: str) -> dict[str, Any]:
    """Measure a task on a worker. Raises `SweepError` if the worker has another fuseflow than the sweep, `expected_code`."""
    if code_version() != expected_code:
        raise SweepError(
            f"a worker of the cluster has fuseflow {code_version()}, not {expected_code}", hint="install the same on all machines"
        )
    parsed = Task(Point(**task["point"]), task["mode"], task["limit"], task["keep_run"])
    processes: Any = get_worker().plugins[PLUGIN]
    return asdict(processes.measure(parsed))


class DaskRunner:
    """A runner of tasks on a Dask cluster."""

    def __init__(self, address: str, timeout: float = 30) -> None:
        """Connect to a cluster. Raises `SweepError` if none answers, or if it cannot run fuseflow."""
        _require_address(address, timeout)
        try:
            self.client = Client(address, timeout=timeout, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise SweepError(f"no Dask scheduler answers at `{address}`: {error}", hint=_HINT) from error
        try:
            self.client.register_plugin(ProcessPlugin(), name=PLUGIN)
        except Exception as error:
            self.client.close()
            raise SweepError(
                f"the cluster at `{address}` cannot run fuseflow: {error}", hint="install the same fuseflow on all its machines"
            ) from error

    @property
    def jobs(self) -> int:
        """The number of points that run at a time: one in each thread of a worker."""
        return max(1, sum(map(int, self.client.nthreads().values())))

    def learn(self, source: str, mode: str, peak: int) -> None:
        """Do nothing: each worker runs as many points at a time as it has threads, whatever memory they take."""

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, TaskOutcome]]:
        """Yield every task with its outcome, in the order in which they finish."""
        pending, submitted = iter(tasks), dict[Any, Task]()
        finished = as_completed(loop=self.client.loop)

        def send(number: int) -> None:
            for task in islice(pending, number):
                future = self.client.submit(
                    measure_on_worker, asdict(task), code_version(), key=f"fuseflow-{task.key}", pure=False
                )
                submitted[future.key] = task
                finished.add(future)

        send(MAX_SUBMITTED)
        try:
            for future in finished:
                task = submitted.pop(future.key)
                yield task, _outcome(task, future)
                send(1)
        finally:
            if submitted:
                self.client.cancel([self.client.futures[key] for key in submitted if key in self.client.futures])

    def close(self) -> None:
        """Remove the plugin from the workers and leave the cluster."""
        self.client.unregister_worker_plugin(PLUGIN)
        self.client.close()


def _require_address(address: str, timeout: float) -> None:
    """Raise `SweepError` if nothing can be reached at an address. (Dask tries again and again, and stays in its own threads after that.)"""
    scheme, separator, rest = address.rpartition("://")
    host, colon, port = rest.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise SweepError(f"`{address}` is no address of a Dask scheduler", hint=_HINT)
    if separator and scheme not in ("tcp", "tls"):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), min(timeout, 5)).close()
    except OSError as error:
        raise SweepError(f"no Dask scheduler answers at `{address}`: {error.strerror or error}", hint=_HINT) from error


def _outcome(task: Task, future: Any) -> TaskOutcome:
    """Return the outcome that a worker computed, or a failed outcome if all its workers were lost, or for an internal error.

    A result that was lost with its worker after the task finished is computed again.
    """
    try:
        return TaskOutcome(**future.result())
    except FuseFlowError:
        raise
    except KilledWorker:
        return TaskOutcome(task.key, reason="crash", error="error[crash]: every worker that had it was lost")
    except Exception as error:
        return TaskOutcome(task.key, reason="internal", error=f"internal error: {type(error).__name__}: {error}")
