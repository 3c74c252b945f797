"""Points on a Dask cluster: one at a time in each thread of its workers, in a process of its own, as here (`pool`).

Dask moves tasks and outcomes, and sends the tasks of a worker that is gone to others. What the points read must be at the same paths
on every machine.
"""

from __future__ import annotations

import queue
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

from distributed import Client, KilledWorker, WorkerPlugin, as_completed, get_worker

from fuseflow.errors import FuseFlowError, SweepError
from fuseflow.sweep.digests import code_version
from fuseflow.sweep.point import Point, Task, TaskOutcome
from fuseflow.sweep.pool import Pool

PLUGIN = "fuseflow"
MAX_SUBMITTED = 1000
"""Tasks that the scheduler has at a time."""


class ProcessPlugin(WorkerPlugin):
    """On every worker: pools of one process, one for each point that is measured at a time. They stay, and keep traced models."""

    name = PLUGIN

    def setup(self, worker: Any) -> None:
        self.idle: queue.SimpleQueue[Pool] = queue.SimpleQueue()
        self.made: list[Pool] = []

    def teardown(self, worker: Any) -> None:
        for pool in self.made:
            pool.close()

    def measure(self, task: Task) -> TaskOutcome:
        try:
            pool = self.idle.get_nowait()
        except queue.Empty:
            pool = Pool(1)
            self.made.append(pool)
        try:
            return next(outcome for _, outcome in pool.run([task]))
        finally:
            self.idle.put(pool)


def measure_on_worker(task: dict[str, Any], wanted: str) -> dict[str, Any]:
    """What runs on a worker; `wanted` is the fuseflow of the sweep."""
    if code_version() != wanted:
        raise SweepError(
            f"a worker of the cluster has fuseflow {code_version()}, not {wanted}", hint="install the same on all machines"
        )
    made = Task(Point(**task["point"]), task["mode"], task["limit"])
    processes: Any = get_worker().plugins[PLUGIN]
    return asdict(processes.measure(made))


class DaskRunner:
    def __init__(self, address: str, timeout: float = 30) -> None:
        """Raises `SweepError` if there is no cluster, or none that knows fuseflow."""
        try:
            self.client = Client(address, timeout=timeout, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            hint = "give the address that `dask scheduler` prints, as in `--scheduler tcp://host:8786`"
            raise SweepError(f"no Dask scheduler answers at `{address}`: {error}", hint=hint) from error
        try:
            self.client.register_plugin(ProcessPlugin(), name=PLUGIN)
        except Exception as error:
            self.client.close()
            raise SweepError(
                f"the cluster at `{address}` cannot run fuseflow: {error}", hint="install the same fuseflow on all its machines"
            ) from error

    def learn(self, source: str, mode: str, peak: int) -> None:
        """Memory is each worker's own affair: how many points it runs at a time is its number of threads."""

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, TaskOutcome]]:
        coming, sent = iter(tasks), dict[Any, Task]()
        finished = as_completed(loop=self.client.loop)

        def send(number: int) -> None:
            for task in islice(coming, number):
                future = self.client.submit(
                    measure_on_worker, asdict(task), code_version(), key=f"fuseflow-{task.key}", pure=False
                )
                sent[future.key] = task
                finished.add(future)

        send(MAX_SUBMITTED)
        try:
            for future in finished:
                task = sent.pop(future.key)
                yield task, _outcome(task, future)
                send(1)
        finally:
            if sent:
                self.client.cancel([self.client.futures[key] for key in sent if key in self.client.futures])

    def close(self) -> None:
        self.client.unregister_worker_plugin(PLUGIN)
        self.client.close()


def _outcome(task: Task, future: Any) -> TaskOutcome:
    """What a worker found, or that there is none any more that could. A result that was lost with its worker, between the news of it
    and now, is computed again."""
    try:
        return TaskOutcome(**future.result())
    except FuseFlowError:
        raise
    except KilledWorker:
        return TaskOutcome(task.key, reason="crash", error="error[crash]: every worker that had it was lost")
    except Exception as error:
        return TaskOutcome(task.key, reason="internal", error=f"internal error: {type(error).__name__}: {error}")
