"""Which regions of the model families another reader of the public schema can load, and in how many cycles Comal runs them.

    python tools/interop.py --comal PATH [--only 'gcn/*'] [--json FILE]
    python tools/interop.py                       # without Comal: its columns stay empty, and the last line says so

Every region of the four families at small size, unfused, partially and fully fused, is written twice: in our own primitives and in public
ones. A region without a warning should load. If PATH is given, each such graph is run by it, as

    PATH --proto graph.bin --data FOLDER

which is the command line of the public simulator (https://github.com/stanford-ppl/comal). FOLDER holds the inputs of the region as text
fibertrees. It should print `Elapsed Cycles: N`, which is compared with the cycles of machine `comal`. The exit status is 1 if a region
without a warning does not run there, or takes other cycles.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

import fuseflow as ff
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.run.compiled import Compiled, CompiledRegion
from fuseflow.samml import protobuf
from fuseflow.sim.run import Simulation
from fuseflow.tensors import Tensor
from fuseflow.tensors.array_files import write_fibertree

ROOT = Path(__file__).resolve().parents[1]
GRAPH_DATA = "random:nodes=30,degree=3,features=12,density=0.2,seed=5"
FAMILIES = {
    "gcn": ModelSpec(ROOT / "models/gcn.py", data=GRAPH_DATA, options={"small": "true"}),
    "graphsage": ModelSpec(ROOT / "models/graphsage.py", data=GRAPH_DATA, options={"small": "true"}),
    "sae": ModelSpec(ROOT / "models/sae.py", options={"small": "true"}),
    "gpt": ModelSpec(ROOT / "models/gpt_bigbird.py", options={"small": "true", "part": "decoder"}),
}
GRANULARITIES = ("unfused", "partial", "full")
FORMS = ("own", "public")
CYCLES = re.compile(r"Elapsed Cycles: (\d+)")
LIMIT = 3600
"""Seconds that one graph may take in the public simulator."""


@dataclass(frozen=True, slots=True)
class Region:
    """A region in one form: what its message warns of, its cycles here, and its cycles in the public simulator. `failure` is what that
    simulator said last if it gave none; both are empty where it was not asked."""

    family: str
    granularity: str
    form: str
    name: str
    warnings: tuple[str, ...]
    cycles: int
    public_cycles: int | None = None
    failure: str = ""

    @property
    def key(self) -> str:
        return f"{self.family}/{self.granularity}/{self.form}/{self.name}"

    @property
    def wrong(self) -> bool:
        """Whether the region should run in the public simulator, was run there, and failed or took other cycles."""
        return not self.warnings and (bool(self.failure) or self.public_cycles not in (None, self.cycles))


@click.command(help=__doc__.partition("\n")[0])
@click.option("--comal", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="the public simulator")
@click.option("--only", default="*", help="families, granularities and forms, as in `gcn/*/public`")
@click.option("--json", "output", type=click.Path(dir_okay=False, path_type=Path), help="write every region to a file")
def main(comal: Path | None, only: str, output: Path | None) -> None:
    regions: list[Region] = []
    for point in product(FAMILIES, GRANULARITIES, FORMS):
        if fnmatchcase("/".join(point), only):
            regions += regions_of(*point, comal)
    if not regions:
        raise click.UsageError(f"no family, granularity and form is `{only}`")
    Console().print(table(regions))
    for region in filter(lambda region: region.wrong, regions):
        click.echo(f"{region.key}: {region.failure or f'{region.public_cycles} cycles there, {region.cycles} here'}")
    if comal is None:
        click.echo("skipped: no public simulator was run; `--comal PATH` names one")
    if output is not None:
        output.write_text(json.dumps([asdict(region) for region in regions], indent=1) + "\n", encoding="utf-8")
    sys.exit(any(region.wrong for region in regions))


def regions_of(family: str, granularity: str, form: str, comal: Path | None) -> Iterator[Region]:
    """Compile and run a family, and yield each of its regions."""
    schedule = ff.Schedule.load(ROOT / "schedules" / f"{family}_{granularity}.yaml").lower(primitives=form)
    simulated: list[tuple[CompiledRegion, Mapping[str, Tensor], Simulation]] = []
    compile_family(family, schedule).run(watch=lambda *run: simulated.append(run), dedup=False)
    for region, inputs, simulation in simulated:
        row = Region(family, granularity, form, region.name, protobuf.compatibility(region.graph), simulation.cycles)
        yield row if comal is None or row.warnings else run_in_comal(comal, row, protobuf.to_proto(region.graph), inputs)


def compile_family(family: str, schedule: ff.Schedule) -> Compiled:
    spec = FAMILIES[family]
    return ff.compile(spec.model, schedule=schedule, machine="comal", data=spec.data, options=spec.options)


def run_in_comal(comal: Path, row: Region, message: bytes, inputs: Mapping[str, Tensor]) -> Region:
    """Run a graph in the public simulator. Return the row with its cycles, or with what the simulator said last."""
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder, "graph.bin")
        graph.write_bytes(message)
        for name, tensor in inputs.items():
            write_fibertree(folder, name, tensor)
        try:
            command = [comal.resolve(), "--proto", graph, "--data", folder]
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=folder)
        except subprocess.TimeoutExpired:
            return replace(row, failure=f"it was not done after {LIMIT} seconds")
    cycles = CYCLES.search(done.stdout)
    if done.returncode or cycles is None:
        return replace(row, failure=" ".join((done.stderr or done.stdout).split())[:300] or f"exit status {done.returncode}")
    return replace(row, public_cycles=int(cycles[1]))


def table(regions: Iterable[Region]) -> Table:
    """Return a table with a row for each family, granularity and form."""
    points: dict[tuple[str, str, str], list[Region]] = {}
    for region in regions:
        points.setdefault((region.family, region.granularity, region.form), []).append(region)
    drawn = Table("family", "fusion", "primitives", box=None)
    for column in ("regions", "without a warning", "run in Comal", "equal cycles", "cycles there", "cycles here"):
        drawn.add_column(column, justify="right")
    for point, rows in points.items():
        there = [row for row in rows if row.public_cycles is not None]
        asked = bool(there) or any(row.failure for row in rows)
        figures = [
            len(there),
            sum(row.public_cycles == row.cycles for row in there),
            sum(row.public_cycles or 0 for row in there),
        ]
        drawn.add_row(
            *point,
            str(len(rows)),
            str(sum(not row.warnings for row in rows)),
            *(f"{figure:,}" if asked else "" for figure in figures),
            f"{sum(row.cycles for row in (there or rows)):,}",
        )
    return drawn


if __name__ == "__main__":
    main()
