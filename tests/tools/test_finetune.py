"""examples/finetune.py: a BERT ends with all its linear layers at 2:4:4, and loses little to a dense one that was trained as long."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "finetune.py"


@pytest.mark.slow
def test_the_example_of_fine_tuning():
    result = subprocess.run([sys.executable, EXAMPLE], check=True, capture_output=True, text=True, timeout=600)
    layers = re.findall(r"^(\S+): nmg:2:4:4, ([\d,]+) of ([\d,]+) entries$", result.stdout, re.MULTILINE)
    assert len(layers) == 14
    kept = [(int(k.replace(",", "")), int(size.replace(",", ""))) for _, k, size in layers]
    assert all(2 * k == size for k, size in kept)
    dense, sparse = (
        float(re.search(rf"^{name}.*: ([\d.]+) nats$", result.stdout, re.MULTILINE)[1]) for name in ("dense after", "sparse")
    )
    assert sparse <= max(1.05 * dense, dense + 0.05)
    assert dense < 1.3
