"""The processor time of whole processes of `fuseflow simulate`, from start to end: a product of a 6 x 5 matrix and a vector, and one of two
sparse matrices with 20,000 rows and 200,000 entries. The import of numpy and scipy.sparse stands beside them.

    python tools/bench/start_up.py [--machine rda] [--runs 5]

Every process is run once before it is measured, so that kernels and bytecode are in their caches. The numbers are medians of user and
system time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from host import host
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum.parse import parse

IMPORTS = "import numpy, scipy.sparse"
SPMV = "tensor A[6, 5] csr\ntensor B[5]\nY[i] = sum(k) A[i, k] * B[k]\noutput Y\n"
SPMSPM = "tensor A[20000, 20000] csr\ntensor B[20000, 20000] csr\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y\n"


def saved(folder: Path, program: str, **tensors: np.ndarray | sparse.csr_array) -> list[str]:
    """Compile a program into a folder, and return the arguments that simulate its graph."""
    folder.mkdir()
    files = {}
    for name, tensor in tensors.items():
        if isinstance(tensor, np.ndarray):
            files[name] = f"{name}.npy"
            np.save(folder / files[name], tensor)
        else:
            files[name] = f"{name}.npz"
            sparse.save_npz(folder / files[name], tensor)
    listing = folder / "tensors.yaml"
    listing.write_text("".join(f"{name}: {{path: {file}}}\n" for name, file in files.items()), encoding="utf-8")
    ff.compile(parse(program), tensors=tensors, schedule=ff.Schedule.fuse("none")).save(folder / "out")
    graph = next((folder / "out").glob("*/graph.bin"))
    return ["-m", "fuseflow", "simulate", str(graph), "--tensors", str(listing), "-q"]


def processor_seconds(arguments: list[str], environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", default="rda")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    rng = np.random.default_rng(0)

    def matrix(rows: int, columns: int, density: float) -> sparse.csr_array:
        return sparse.csr_array(sparse.random_array((rows, columns), density=density, rng=rng, dtype=np.float32))

    with tempfile.TemporaryDirectory() as name:
        machine = ["--machine", arguments.machine]
        processes = {
            "imports": ["-c", IMPORTS],
            "spmv": saved(Path(name) / "spmv", SPMV, A=matrix(6, 5, 0.4), B=np.ones(5, np.float32)) + machine,
            "spmspm": saved(Path(name) / "spmspm", SPMSPM, A=matrix(20_000, 20_000, 5e-4), B=matrix(20_000, 20_000, 5e-4))
            + machine,
        }
        seconds = {}
        for process, words in processes.items():
            processor_seconds(words, environment)
            seconds[process] = statistics.median(processor_seconds(words, environment) for _ in range(arguments.runs))
    print(json.dumps({"machine": arguments.machine, "seconds": {k: round(v, 3) for k, v in seconds.items()}, "host": host()}))


if __name__ == "__main__":
    main()
