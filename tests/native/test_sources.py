"""The digest of a kernel changes with everything that the kernel is made of, and with nothing else."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from fuseflow.native import sources
from fuseflow.native.signatures import ELEMENTWISE, KERNEL, SWEEP
from fuseflow.native.sources import KernelError, bytecode_digest, parts_of, source_digest
from fuseflow.sim.engine.kernels.elementwise_functions import elementwise
from fuseflow.sim.engine.kernels.levels import run_root

SOURCE = """
from fuseflow.native.records import Record, get_int, inline
STEP = 3
STATE = Record("count total")
state_at = STATE.at
@inline
def twice(value: int) -> int:
    return 2 * value
def kernel(address: int) -> int:
    s = state_at(address)
    s.total += twice(get_int(address, 0)) + STEP
    return 0
"""


def module(folder: Path, text: str, name: str = "a_kernel") -> ModuleType:
    """Return the module of a file with this text, read anew."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)  # bytecode of a text of the same length and second
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    sources._file_digest.cache_clear()
    return loaded


def digest(folder: Path, text: str) -> str:
    return source_digest(module(folder, text).kernel, KERNEL)


def test_equal_sources_have_equal_digests_wherever_they_are(tmp_path: Path) -> None:
    assert digest(tmp_path / "one", SOURCE) == digest(tmp_path / "other", SOURCE)


@pytest.mark.parametrize(
    ("old", "new"), [("STEP = 3", "STEP = 4"), ("2 * value", "3 * value"), ("count total", "total count"), ("@inline\n", "")]
)
def test_another_number_helper_record_or_mark_has_another_digest(tmp_path: Path, old: str, new: str) -> None:
    assert digest(tmp_path, SOURCE) != digest(tmp_path, SOURCE.replace(old, new))


def test_another_signature_name_or_meaning_has_another_digest() -> None:
    assert source_digest(run_root, KERNEL) != source_digest(run_root, SWEEP)
    assert source_digest(elementwise("add", "f64"), ELEMENTWISE) != source_digest(elementwise("mul", "f64"), ELEMENTWISE)


def test_a_helper_in_another_file_counts(tmp_path: Path) -> None:
    text = SOURCE.replace("@inline\ndef twice(value: int) -> int:\n    return 2 * value\n", "from a_helper import twice\n")
    digests = set()
    for factor in (2, 3):
        module(tmp_path, f"def twice(value):\n    return {factor} * value\n", "a_helper")
        digests.add(digest(tmp_path, text))
    assert len(digests) == 2


def test_a_kernel_that_was_edited_in_memory_only_is_told_by_its_bytecode(tmp_path: Path) -> None:
    old = module(tmp_path, SOURCE).kernel
    new = module(tmp_path, SOURCE.replace("+ STEP", "- STEP")).kernel
    assert bytecode_digest(old) != bytecode_digest(new)
    assert bytecode_digest(old) == bytecode_digest(module(tmp_path, SOURCE).kernel)


def test_digests_are_the_same_in_another_process() -> None:
    script = (
        "from fuseflow.native.sources import *; from fuseflow.native.signatures import KERNEL\n"
        "from fuseflow.sim.engine.kernels.levels import run_root\n"
        "print(source_digest(run_root, KERNEL), bytecode_digest(run_root), sep='|')"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert printed == f"{source_digest(run_root, KERNEL)}|{bytecode_digest(run_root)}"


def test_what_cannot_be_compiled_is_named(tmp_path: Path) -> None:
    broken = module(tmp_path, SOURCE.replace("STEP = 3", "STEP = [3]")).kernel
    with pytest.raises(KernelError, match="uses `STEP`, a list"):
        parts_of(broken)


def test_an_attribute_that_is_called_like_something_else_does_not_matter(tmp_path: Path) -> None:
    kernel = module(tmp_path, SOURCE + "total = []\n").kernel
    assert isinstance(kernel, FunctionType)
    assert all("total" not in line for line in parts_of(kernel).lines if not line.startswith("state_at"))
