"""Kernels are made ahead of time, all that any graph may need. Then a first run on a new machine compiles nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import FunctionType

import pytest
import single_floats
from engines import LIMITS, disagreements, on_engine
from memories import at_memory
from random_graphs import random_case

from fuseflow.memory.models import dram_kernels
from fuseflow.memory.table_files import preset, preset_names
from fuseflow.native.kernel_library import Library, library, package_store
from fuseflow.native.machine_code import Loader
from fuseflow.native.object_store import symbol_of
from fuseflow.native.processor import FEATURES_BY_LEVEL, has_levels, host, host_levels, levels_of
from fuseflow.native.sources import source_digest
from fuseflow.sim import load_machine
from fuseflow.sim.engine.ahead import all_kernels, is_made, make_all

needs_levels = pytest.mark.skipif(not has_levels(), reason="kernels are made ahead for x86-64 on Linux")
COMAL = load_machine("comal")
OF_DRAMS = ("fuseflow.memory.dram.advance_dram_", "fuseflow.memory.dram_threads.run_channels_")
"""What the names of kernels begin with that are specialized for the shape of a table."""
ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs" / "example"
FIRST_RUN = """
import json, sys
from fuseflow.cli.main import main
main(sys.argv[1:], standalone_mode=False)
print(json.dumps([name for name in sys.modules if name.partition(".")[0] in ("numba", "distutils")]))
"""


@pytest.fixture(scope="module")
def made() -> None:
    """The kernels of these sources, made ahead: what the build of the package did, unless the sources changed."""
    assert make_all(jobs=min(os.cpu_count() or 1, 4)) == len(all_kernels())


def first_run(folder: Path, *words: str) -> list[str]:
    """The modules of the compiler that a run loads whose user has no cache, no compiler and no linker, and the kernels that it kept."""
    home = folder / "home"
    home.mkdir()
    unset = ("FUSEFLOW_CACHE_DIR", "XDG_CACHE_HOME")
    variables = {name: value for name, value in os.environ.items() if name not in unset}
    variables |= {"PATH": str(folder / "nothing"), "HOME": str(home)}
    command = [sys.executable, "-c", FIRST_RUN, *words]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [*json.loads(done.stdout.splitlines()[-1]), *(str(kernel) for kernel in home.rglob("*.kernel"))]


@needs_levels
@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("machine", ["rda", "comal", "ideal"])
def test_a_first_run_compiles_nothing_and_needs_no_compiler(tmp_path: Path, machine: str) -> None:
    words = ["run", str(EXAMPLE / "spmm.ein"), "--tensors", str(EXAMPLE / "tensors.yaml"), "--engine", "fast", "-q"]
    assert first_run(tmp_path, *words, "--machine", machine) == []


@needs_levels
@pytest.mark.usefixtures("made")
def test_a_first_run_of_a_model_compiles_nothing(tmp_path: Path) -> None:
    loaded = first_run(tmp_path, "run", str(ROOT / "models" / "gcn.py"), "--engine", "fast", "-q")
    assert [name for name in loaded if not name.startswith("distutils")] == []  # which PyTorch loads


@needs_levels
@pytest.mark.usefixtures("made")
def test_every_kernel_loads_at_every_level_of_this_processor() -> None:
    for level in host_levels():
        loader = Loader(*host())
        for name, kernel in all_kernels().items():
            digest = source_digest(*kernel)
            code = package_store(level).read(digest)
            assert code is not None, name
            assert loader.load(code.code, symbol_of(digest)) != 0


@needs_levels
@pytest.mark.usefixtures("made")
def test_the_lowest_level_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    lowest = Library((package_store("x86-64-v2"),), library().own)
    for module in ("execute", "traced_run"):
        monkeypatch.setattr(f"fuseflow.sim.engine.{module}.library", lambda: lowest)
    monkeypatch.setattr(Library, "_compile", lambda *_: pytest.fail("a kernel was not made ahead"))
    for seed in range(30):
        assert not list(disagreements(random_case(seed, "small"), LIMITS[seed % len(LIMITS)])), seed
    assert lowest.addresses


@needs_levels
@pytest.mark.usefixtures("made")
def test_nothing_is_made_twice_and_old_kernels_go() -> None:
    old = package_store("x86-64-v3").folder / f"{'0' * 64}.kernel"
    old.write_bytes(b"of sources that are gone")
    times = {file: file.stat().st_mtime_ns for file in old.parent.glob("*.kernel") if file != old}
    make_all(jobs=1)
    assert {file: file.stat().st_mtime_ns for file in old.parent.glob("*.kernel")} == times


def test_all_kernels_that_random_graphs_need_are_known() -> None:
    others = set(library().addresses)  # other tests compile helpers by themselves
    for seed in range(150):
        case, limits = random_case(seed), LIMITS[seed % len(LIMITS)]
        comal = replace(case, graph=replace(case.graph, depths=()), machine=COMAL)
        for variant in (case, at_memory(case, seed), comal, *([single_floats.in_graph(case)] if seed % 3 == 0 else [])):
            on_engine(variant, limits)
    known = set(all_kernels())
    used = {name for name in library().addresses if name.startswith("fuseflow.")} - (others - known)
    drams = [dram_kernels(table) for name in preset_names() for table in preset(name).tables]
    assert {f"{kernel.__module__}.{kernel.__name__}" for of in drams for kernel in (of.advance, of.run)} <= known
    longer = {name for name in used if name.startswith(OF_DRAMS)}  # queues that no preset has
    assert used - longer <= known
    assert len(used) > 0.6 * len(known)


def test_a_kernel_of_changed_sources_is_not_taken() -> None:
    function, signature = all_kernels()["fuseflow.sim.engine.loop.sweep"]
    assert isinstance(function, FunctionType)
    changed = FunctionType(function.__code__, {**function.__globals__, "STUCK": 5})
    assert source_digest(changed, signature) != source_digest(function, signature)
    assert not is_made(source_digest(changed, signature))


def test_a_processor_has_the_levels_whose_features_it_has() -> None:
    v2, v3 = FEATURES_BY_LEVEL["x86-64-v2"], FEATURES_BY_LEVEL["x86-64-v3"]
    assert levels_of(dict.fromkeys((*v2, *v3), True)) == ("x86-64-v3", "x86-64-v2")
    assert levels_of({**dict.fromkeys((*v2, *v3), True), "avx2": False}) == ("x86-64-v2",)
    assert levels_of(dict.fromkeys(v3, True)) == ()
    v4 = FEATURES_BY_LEVEL["x86-64-v4"]
    assert levels_of(dict.fromkeys((*v2, *v3, *v4), True)) == ("x86-64-v4", "x86-64-v3", "x86-64-v2")
    assert levels_of({**dict.fromkeys((*v2, *v3, *v4), True), "avx512vl": False}) == ("x86-64-v3", "x86-64-v2")
