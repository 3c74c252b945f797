"""Dask runs a sweep on a cluster: here two worker processes of this machine, elsewhere whatever `dask scheduler` has.

    pip install 'dask[distributed]'
    python examples/dask_sweep.py               # 12 points, 15 seconds of a core

Each thread of a worker measures one point at a time. The machines of a cluster need the same fuseflow, and the files at the same paths.
"""

from __future__ import annotations

from pathlib import Path

import click
from distributed import LocalCluster

import fuseflow as ff

SPACE = ff.DesignSpace.of(
    {
        "model": str(Path(__file__).parents[1] / "models" / "gcn.py"),
        "data": "karate",
        "machine": [
            ff.load_machine("rda", {"memory": memory}).model_copy(update={"name": memory}) for memory in ("hbm2", "ddr4-3200")
        ],
        "vary": {"fuse": ["none", "layerwise", "full"], "par": [{}, {"i": 4}]},
        "mode": "simulate",
    }
)


@click.command()
@click.option("--workers", default=2, show_default=True)
def main(workers: int) -> None:
    print(f"{len(SPACE)} points over {', '.join(SPACE.axes)}")
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
        sweep = ff.sweep(SPACE, scheduler=cluster.scheduler_address)
    cycles = sweep.to_xarray().cycles
    print(cycles.min("par").to_pandas())
    print("the fewest:", f"{int(cycles.min()):,}", cycles.attrs["units"])
    print(repr(sweep.schedules[sweep.best]))


if __name__ == "__main__":
    main()
