"""Where the time of the test suite goes: processor seconds by folder, file or function, from what `pytest -p cpu_times` wrote.

    PYTHONPATH=tests/support python -m pytest -p cpu_times --cpu-times times.jsonl
    python tools/bench/suite.py times.jsonl [--by function] [--before earlier.jsonl] [--top 20]

Prints a line for each folder of tests, and the tests that take most. `--by file` and `--by function` print the `--top` files or functions
that take most instead: the cases of a parametrized test are one function. With `--before`, all are compared with those of an earlier run.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import click

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


def read(path: Path) -> dict[str, float]:
    """Processor seconds by test."""
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {line["test"]: line["processor"] for line in lines}


def folder(test: str) -> str:
    """Two folders deep: `tests/native/test_kernel_library.py::test_x` is of `tests/sim`."""
    return "/".join(test.partition("::")[0].split("/")[:-1][:2])


GROUPS: dict[str, Callable[[str], str]] = {
    "folder": folder,
    "file": lambda test: test.partition("::")[0],
    "function": lambda test: test.partition("[")[0],
}


def grouped(seconds: Mapping[str, float], group: Callable[[str], str]) -> defaultdict[str, float]:
    total: defaultdict[str, float] = defaultdict(float)
    for test, spent in seconds.items():
        total[group(test)] += spent
    return total


@click.command(help=__doc__.partition("\n")[0])
@click.argument("times", type=FILE)
@click.option("--before", type=FILE, help="Times of an earlier run, for a second column.")
@click.option("--by", default="folder", show_default=True, type=click.Choice(list(GROUPS)), help="What is added up.")
@click.option(
    "--top", default=20, show_default=True, type=click.IntRange(0), help="How many tests to name, or files or functions."
)
def main(times: Path, before: Path | None, by: str, top: int) -> None:
    seconds = read(times)
    earlier = read(before) if before else {}
    now, then = grouped(seconds, GROUPS[by]), grouped(earlier, GROUPS[by])
    names = sorted({*now, *then}, key=lambda name: -max(now[name], then[name]))
    for name in names if by == "folder" else names[:top]:
        click.echo(f"{now[name]:8.1f} s" + f"  before {then[name]:8.1f} s" * bool(earlier) + f"  {name}")
    click.echo(
        f"{sum(now.values()):8.1f} s" + f"  before {sum(then.values()):8.1f} s" * bool(earlier) + f"  {len(seconds)} tests"
    )
    for test in sorted(seconds, key=lambda test: -seconds[test])[: top if by == "folder" else 0]:
        click.echo(f"{seconds[test]:8.2f} s  {test}")


if __name__ == "__main__":
    main()
