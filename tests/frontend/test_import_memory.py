"""What an import takes in memory: it copies no weights, and a large graph is never dense."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MODELS = Path(__file__).parents[2] / "models"
IMPORT = """
import json, resource, sys
from fuseflow.frontend import import_model, load_model

model = load_model(sys.argv[1], sys.argv[2] or None, options=json.loads(sys.argv[3]))
sizes = {p.data_ptr(): p.nbytes for p in model.module.parameters() if str(p.layout) == "torch.strided"}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
imported = import_model(model.module, model.inputs, model.formats)
shared = sum(sizes.get(t.values.ctypes.data, 0) for t in imported.tensors.values())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"before": before, "peak": peak, "parameters": sum(sizes.values()) / 2**20, "shared": shared / 2**20}))
"""


def memory(model: str, data: str = "", **options: Any) -> dict[str, float]:
    """MB before and at the peak of an import in a process of its own, of the parameters, and of those that the program shares."""
    command = [sys.executable, "-c", IMPORT, str(MODELS / model), data, json.dumps(options)]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def test_weights_are_in_memory_once() -> None:
    found = memory("gpt_bigbird.py", small=True)
    assert found["shared"] == found["parameters"] > 0


@pytest.mark.slow
def test_the_weights_of_twelve_decoders_are_in_memory_once() -> None:
    found = memory("gpt_bigbird.py")
    assert found["shared"] == found["parameters"] > 320
    assert found["peak"] - found["before"] < found["parameters"] + 100  # what a small model takes is about 180


@pytest.mark.slow
def test_a_large_graph_is_never_dense() -> None:
    assert memory("gcn.py", "synthetic:collab")["peak"] < 1500
