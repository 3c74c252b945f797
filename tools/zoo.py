"""Compile and run models of the zoo, all or those that are named, and write what became of each into tests/zoo/table.jsonl.

    python tools/zoo.py [--jobs 2] [--fast] [--fresh] [--gradients] [NAME...]

With --gradients, the gradients of a training step are compared with those of PyTorch instead, and go into tests/zoo/gradients.jsonl.

The rows of models that were done before are kept in build/zoo, as long as neither fuseflow nor the zoo changes, so a run that was stopped
goes on. A model may take so many processor seconds and so much memory as the options say; what takes more has the verdict `limit`.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import resource
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, SimpleQueue

import click
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "zoo"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import zoo_gradients
import zoo_registry
import zoo_table
import zoo_verdict

ROOT = Path(__file__).resolve().parents[1]
ZOO = ROOT / "tests" / "zoo"
CONTEXT = multiprocessing.get_context("forkserver")
STORES = {False: ROOT / "build" / "zoo" / "rows.jsonl", True: ROOT / "build" / "zoo" / "gradients.jsonl"}
"""The files of rows that are done, of values and of gradients."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one model may take, and whether its gradients are asked for."""

    seconds: float
    gigabytes: float
    gradients: bool = False


@dataclass
class Store:
    """The rows of models that are done, one in each line of a file, under the digest of the code that they are about."""

    path: Path
    revision: str
    rows: dict[str, zoo_verdict.Row] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self) -> None:
        if self.path.exists():
            lines = [
                line for line in self.path.read_text().splitlines(keepends=True) if line.endswith("}\n")
            ]  # the last may be cut
            entries = [json.loads(line) for line in lines]
            self.rows |= {e["row"]["name"]: e["row"] for e in entries if e["revision"] == self.revision}

    def add(self, row: zoo_verdict.Row) -> None:
        with self.lock:
            self.rows[row["name"]] = row
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps({"revision": self.revision, "row": row}) + "\n")


def revision() -> str:
    """A digest of the code of fuseflow, of the zoo, and of the comparison of gradients."""
    digest = hashlib.sha256()
    comparison = ROOT / "tests" / "support" / "gradient_checks.py"
    for path in sorted([*(ROOT / "fuseflow").rglob("*.py"), *ZOO.glob("*.py"), comparison]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def answer(name: str, limits: Limits, pipe: Connection) -> None:
    """Send the row of a model. A model has a process of its own, because some libraries keep what one model made for the next."""
    import torch

    torch.set_num_threads(1)
    most = int(limits.gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    row = zoo_gradients.row if limits.gradients else zoo_verdict.row
    pipe.send(row(zoo_registry.all_models()[name]))


def row_of(model: zoo_registry.Model, limits: Limits) -> zoo_verdict.Row:
    """Run a model in a process, which is ended if it takes more than it may."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=answer, args=(model.name, limits, theirs), daemon=True)
    process.start()
    theirs.close()
    watched, wall = psutil.Process(process.pid), time.monotonic()
    try:
        while not ours.poll(0.2):
            late = time.monotonic() - wall > 10 * limits.seconds  # it waits for something
            if late or processor_seconds(watched) > limits.seconds:
                return ended(model, limits, "limit", f"took more than {limits.seconds:g} processor seconds")
        row: zoo_verdict.Row = ours.recv()
        return row
    except (EOFError, psutil.NoSuchProcess):
        process.join()
        return ended(model, limits, "crash", f"the process ended with exit code {process.exitcode}")
    finally:
        process.kill()
        process.join()


def processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


def ended(model: zoo_registry.Model, limits: Limits, verdict: str, reason: str) -> zoo_verdict.Row:
    if limits.gradients:
        return {"name": model.name, "family": model.family, "gradients": verdict, "reason": reason}
    levels = dict.fromkeys(zoo_registry.GRANULARITIES[model.family], verdict)
    return {"name": model.name, "family": model.family, "fast": model.fast, **levels, "reasons": {"all": reason}}


def run(models: Iterable[zoo_registry.Model], store: Store, jobs: int, limits: Limits) -> None:
    """Run all models that the store does not have."""
    queue: SimpleQueue[zoo_registry.Model] = SimpleQueue()
    for model in (m for m in models if m.name not in store.rows):
        queue.put(model)

    def work() -> None:
        with suppress(Empty):
            while True:
                row = row_of(queue.get_nowait(), limits)
                store.add(row)
                columns = ("gradients",) if limits.gradients else zoo_registry.GRANULARITIES[row["family"]]
                click.echo(f"{row['family']:12}{row['name']:40}" + " ".join(row[g] for g in columns))

    threads = [threading.Thread(target=work) for _ in range(min(jobs, queue.qsize()))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@click.command(help=__doc__.partition("\n")[0])
@click.argument("names", nargs=-1)
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="Processes at once.")
@click.option("--fast", is_flag=True, help="Only the models that the suite runs.")
@click.option("--fresh", is_flag=True, help="Run models again that were done before.")
@click.option("--seconds", default=120.0, show_default=True, help="Processor seconds for each model.")
@click.option("--gigabytes", default=6.0, show_default=True, help="Memory for each process.")
@click.option("--gradients", is_flag=True, help="Compare gradients instead of values.")
def main(names: tuple[str, ...], jobs: int, fast: bool, fresh: bool, seconds: float, gigabytes: float, gradients: bool) -> None:
    multiprocessing.set_forkserver_preload(["zoo_verdict", "zoo_gradients", *zoo_registry.FILES])
    models = zoo_registry.all_models()
    if unknown := sorted(set(names) - set(models)):
        raise click.UsageError(f"the zoo has no model {', '.join(unknown)}")
    chosen = [m for m in models.values() if (not names or m.name in names) and (m.fast or not fast)]
    store = Store(STORES[gradients], revision())
    store.read()
    for model in chosen if fresh else ():
        store.rows.pop(model.name, None)
    run(chosen, store, jobs, Limits(seconds, gigabytes, gradients))
    rows = {model.name: store.rows[model.name] for model in chosen}
    table = zoo_gradients if gradients else zoo_table
    kept = {name: row for name, row in zoo_table.read(table.TABLE).items() if name in models}
    table.TABLE.write_text(zoo_table.text({**kept, **rows}.values()))
    click.echo(table.summary(rows.values()))


if __name__ == "__main__":
    main()
