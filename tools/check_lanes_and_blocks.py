"""Every model at its small size, fused in every way, on every number of lanes and in every block size: the outputs are PyTorch's.

    python tools/check_lanes_and_blocks.py [--only 'gcn.py/full/*'] [--machine ideal]

Prints a line for each that is wrong, or refused; the last line sums up. Exit status 1 if any is.
"""

from __future__ import annotations

import fnmatch
import sys
import time
from itertools import product
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from blocked_models import BLOCKED, BLOCKS, FUSE, LANES, compiled

from fuseflow.errors import FuseFlowError

TOLERANCE = 1e-5


@click.command(help=__doc__.partition("\n")[0])
@click.option("--only", default="*", metavar="PATTERN", help="MODEL/FUSE/LANES/BLOCK, as in gcn.py/full/4x2/16.")
@click.option("--machine", default="ideal", show_default=True)
def main(only: str, machine: str) -> None:
    start, count, worst, wrong = time.monotonic(), 0, 0.0, 0
    for model, fuse, lanes, block in product(BLOCKED, FUSE, LANES, BLOCKS):
        name = f"{model}/{fuse}/{'x'.join(map(str, lanes)) or 1}/{block}"
        if not fnmatch.fnmatchcase(name, only):
            continue
        count += 1
        try:
            check = compiled(model, fuse, lanes, block, machine).run().check
            error = check.max_rel_error if check else 0.0
            worst, said = max(worst, error), f"error {error:.1e}"
            failed = error > TOLERANCE
        except FuseFlowError as refused:
            said, failed = str(refused), True
        wrong += failed
        if failed:
            click.echo(f"{name}: {said}")
        elif count % 50 == 0:
            click.echo(f"{count} done, {time.monotonic() - start:.0f} s", err=True)
    click.echo(f"{count} on {machine}: {wrong} wrong, the largest error {worst:.1e}, {time.monotonic() - start:.0f} s")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
