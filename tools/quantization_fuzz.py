"""Random programs in narrower types: do they compute what PyTorch's fake quantization says?

    python tools/quantization_fuzz.py [--programs 2000] [--seed 0]

Programs come from the generator of `tools/fuzz.py`, with views and many operands. `ff.quantize` narrows the factors of their products with
a small tolerance and with none, and the result is run in three fusions. Exit status 1 if a program differs, which is printed.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import click
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from quantization_fuzz import check_case
from random_programs import Case, cases, view_programs, wide_programs


@click.command(help=__doc__.splitlines()[0] if __doc__ else None)
@click.option("--programs", default=2000, show_default=True)
@click.option("--seed", "start", default=0, show_default=True)
def main(programs: int, start: int) -> None:
    numbers, scales = count(), list[int]()

    @seed(start)
    @settings(
        max_examples=programs, deadline=None, database=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck)
    )
    @given(st.one_of(cases(), cases(max_einsums=6), wide_programs(), view_programs()))
    def check(case: Case) -> None:
        scales.append(check_case(case, next(numbers)))

    check()
    narrowed = [number for number in scales if number]
    click.echo(f"{len(scales):,} programs, {len(narrowed):,} of them with {sum(narrowed):,} integer factors, 0 wrong")


if __name__ == "__main__":
    main()
