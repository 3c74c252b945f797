"""`import fuseflow`, and the front end on its own, load no package that takes long, before something needs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SLOW = {
    "torch",
    "torch_mlir",
    "numba",
    "sympy",
    "networkx",
    "scipy.sparse",
    "scipy.optimize",
    "pydantic",
    "rich",
    "ruamel.yaml",
    "ortools",
    "pandas",
}


@pytest.mark.parametrize(
    ("statement", "needed"),
    [
        ("import fuseflow", set()),
        ("import fuseflow; fuseflow.FuseFlowError", set()),
        ("import fuseflow.frontend.import_cache.cache", {"ruamel.yaml", "pydantic"}),
        ("import fuseflow.frontend.sources", {"ruamel.yaml", "pydantic"}),
        ("import fuseflow.tensors.array_files, fuseflow.tensors.tensor_listing", {"ruamel.yaml", "pydantic"}),
        ("import fuseflow.sparsity.numpy_arrays, fuseflow.sparsity.grouped.grouping", set()),
        ("import fuseflow.training.spec", {"pydantic"}),
        ("import fuseflow.plan.plan, fuseflow.plan.block_costs", {"ruamel.yaml", "pydantic"}),
        ("import fuseflow.attributes", set()),
        ("import fuseflow.autoscheduler.budget.scheduler", {"ruamel.yaml", "pydantic"}),
        ("import fuseflow.compiler, fuseflow.run.compiled", {"ruamel.yaml", "pydantic"}),
    ],
)
def test_slow_packages_are_not_loaded(statement: str, needed: set[str]) -> None:
    code = f"{statement}\nimport sys; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not (SLOW - needed) & set(done.stdout.split())


@pytest.mark.parametrize(
    ("program", "loaded"),
    [
        ("from fuseflow.cli.main import main; main(['--version'], standalone_mode=False)", set()),
        ("import fuseflow as ff; ff.compile('docs/example/spmm.ein', tensors='docs/example/tensors.yaml')", set()),
        ("from fuseflow.cp_sat import CpSatProblem; CpSatProblem([1])", {"ortools"}),
    ],
)
def test_or_tools_is_loaded_by_who_asks_it_and_pandas_by_nobody(program: str, loaded: set[str]) -> None:
    code = f"{program}\nimport sys; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert {"ortools", "pandas"} & set(done.stdout.split()) == loaded
