"""The names of the package: each is what it says, whichever module was imported before."""

import pkgutil
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import fuseflow.sparsity as sp


def test_no_name_is_that_of_a_module():
    """Importing a module would put it in the place of the function."""
    modules = {module.name for module in pkgutil.iter_modules(sp.__path__)}
    assert modules.isdisjoint(sp.__all__)
    for module in modules:
        import_module(f"fuseflow.sparsity.{module}")
    assert not [name for name in sp.__all__ if isinstance(getattr(sp, name), ModuleType)]


def test_every_name_is_listed_and_an_unknown_one_is_an_error():
    assert set(sp.__all__) <= set(dir(sp))
    assert not hasattr(sp, "nonsense")


def test_specs_are_read_without_pytorch():
    read = "sp.SparseSpec.from_yaml('weights: {w: {sparsifier: nm:2:4}}')"
    code = f"import sys, fuseflow.sparsity as sp; {read}; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
