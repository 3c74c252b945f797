"""The key is read from a file and set on the command line, refused where it cannot be, and takes cycles on both simulators."""

from pathlib import Path

import numpy as np

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import MachineError
from fuseflow.machine.files import load_machine

Path("slow.yaml").write_text("name: slow\nslowdown: 3\n", encoding="utf-8")
assert load_machine("slow.yaml").settings["slowdown"] == 3
assert load_machine("ideal", {"slowdown": 2}).slowdown == 2
try:
    load_machine("ideal", {"slowdown": 0})
except MachineError as error:
    assert "slowdown: 0" in str(error)
else:
    raise AssertionError("a factor of 0 is accepted")

program = parse("""
tensor A[2, 8] dense
y[i] = sum(k) A[i, k]
output y
""")
tensors = {"A": np.ones((2, 8), dtype=np.float32)}
cycles = {}
for machine in ("ideal", "slow.yaml"):
    ran = {
        engine: ff.compile(program, tensors=tensors, machine=machine).run(engine=engine).cycles
        for engine in ("reference", "fast")
    }
    assert ran["reference"] == ran["fast"]
    cycles[machine] = ran["fast"]
assert cycles["slow.yaml"] > cycles["ideal"] + 8
