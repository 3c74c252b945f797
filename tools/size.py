"""The lines of each room, and how many more they are than where this branch left the main branch.

    python tools/size.py [--base REVISION] [--all]

Counts all lines of text files that git tracks. Rooms are the folders and files in `fuseflow`, and the folders beside it; data of tests and
rows of figures are rooms of their own. Rooms that have as many lines as before are printed with `--all`.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
MAIN = ("origin/main", "main", "HEAD")
"""What a branch is compared with: the first of these that is there."""
TOTALS = {"the package": ("fuseflow/",), "tests": ("tests/",), "tools and evaluation": ("tools/", "evaluation/")}
APART = ("tests/data", "evaluation/rows")


def git(*words: str, may_fail: bool = False) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=not may_fail)
    return done.stdout.strip()


def base_revision() -> str:
    """Where this branch left the main branch."""
    found = (git("merge-base", main, "HEAD", may_fail=True) for main in MAIN)
    return next(revision for revision in found if revision)


def lines(revision: str | None) -> Counter[str]:
    """The lines of each file in a revision, or of the working tree."""
    found = git("grep", "-I", "--count", "", *([revision] if revision else []))
    counts = (line.removeprefix(f"{revision}:").rpartition(":") for line in found.splitlines())
    return Counter({file: int(number) for file, _, number in counts})


def room(file: str) -> str:
    """The room of a file: one part of its path, in the package two."""
    parts = file.split("/")
    if len(parts) == 1:
        return "beside the folders"
    two = "/".join(parts[:2])
    return two if parts[0] == "fuseflow" or two in APART else parts[0]


def by_room(files: Counter[str]) -> Counter[str]:
    """The lines of each room, and of what has a bound in all."""
    found = Counter[str]()
    for file, number in files.items():
        found[room(file)] += number
        for total, starts in TOTALS.items():
            if file.startswith(starts) and room(file) not in APART:
                found[f"{total} in all"] += number
    return found


@click.command(help=__doc__.partition("\n")[0])
@click.option("--base", help="What is compared, in place of where this branch left the main branch.")
@click.option("--all", "everything", is_flag=True, help="Print rooms that have as many lines as before, too.")
def main(base: str | None, everything: bool) -> None:
    base = base or base_revision()
    before, now = by_room(lines(base)), by_room(lines(None))
    click.echo(f"{'lines':>9}  {'more':>8}  than {base[:8]}")
    for name in sorted({*before, *now}, key=lambda name: (name.endswith(" in all"), name)):
        if everything or before[name] != now[name] or name.endswith(" in all"):
            click.echo(f"{now[name]:9,}  {now[name] - before[name]:+8,}  {name}")


if __name__ == "__main__":
    main()
