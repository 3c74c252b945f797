"""Draw files of the package by a seed, for the newcomer's test: write down what each holds from its path, README and the glossary alone.

    python tools/newcomer_draw.py --seed 5

Prints 20 paths. The draws that were made so far stand in tests/data/newcomer, with the guesses beside the facts.
"""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]


@click.command(help=__doc__.partition("\n")[0])
@click.option("--seed", required=True, type=int, help="of the draw")
@click.option("--count", default=20, show_default=True, help="how many files")
def main(seed: int, count: int) -> None:
    patterns = ["fuseflow/*.py", "fuseflow/**/*.py", "dialects/*.py"]
    listing = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = sorted({file for file in listing.split() if not file.endswith("__init__.py") and "pb2" not in file})
    click.echo("\n".join(random.Random(seed).sample(files, count)))


if __name__ == "__main__":
    main()
