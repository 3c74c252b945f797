"""Where the time of the test suite goes: processor seconds by folder and file, from what `pytest -p cpu_times` wrote.

    PYTHONPATH=tests/support python -m pytest -p cpu_times --cpu-times times.jsonl
    python tools/bench/suite.py times.jsonl [--before earlier.jsonl] [--top 20]

Prints a line for each folder of tests, and the tests that take most. With `--before`, folders are compared with those of an earlier run.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import click

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


def read(path: Path) -> dict[str, float]:
    """Processor seconds by test."""
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {line["test"]: line["processor"] for line in lines}


def folder(test: str) -> str:
    """Two folders deep: `tests/sim/native/test_jit.py::test_x` is of `tests/sim`."""
    return "/".join(test.partition("::")[0].split("/")[:-1][:2])


def by_folder(seconds: Mapping[str, float]) -> defaultdict[str, float]:
    total: defaultdict[str, float] = defaultdict(float)
    for test, spent in seconds.items():
        total[folder(test)] += spent
    return total


@click.command(help=__doc__.partition("\n")[0])
@click.argument("times", type=FILE)
@click.option("--before", type=FILE, help="Times of an earlier run, for a second column.")
@click.option("--top", default=20, show_default=True, type=click.IntRange(0), help="How many tests to name.")
def main(times: Path, before: Path | None, top: int) -> None:
    seconds = read(times)
    earlier = read(before) if before else {}
    now, then = by_folder(seconds), by_folder(earlier)
    for name in sorted({*now, *then}, key=lambda name: -max(now[name], then[name])):
        click.echo(f"{now[name]:8.1f} s" + f"  before {then[name]:8.1f} s" * bool(earlier) + f"  {name}")
    click.echo(
        f"{sum(now.values()):8.1f} s" + f"  before {sum(then.values()):8.1f} s" * bool(earlier) + f"  {len(seconds)} tests"
    )
    for test in sorted(seconds, key=lambda test: -seconds[test])[:top]:
        click.echo(f"{seconds[test]:8.2f} s  {test}")


if __name__ == "__main__":
    main()
