"""Another Python is one that runs, and it gets what this one has, with libraries of CUDA that only say that there is no driver."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import second_python as tool

OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
OTHER = next(version for version in tool.VERSIONS if version != OWN)


def command(folder: Path, version: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"python{version}"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_name_that_runs_nothing_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'shims'}:{tmp_path / 'bin'}")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    command(tmp_path / "shims", OTHER, "echo no such version >&2; exit 127")
    assert tool.second_python() is None
    command(tmp_path / "bin", OTHER, f"echo {OWN}")  # it runs, and is another than its name says
    assert tool.second_python() is None
    runs = command(tmp_path / "pyenv" / "versions" / f"{OTHER}.1" / "bin", OTHER, f"echo {OTHER}")
    assert tool.second_python() == runs
    first = command(tmp_path / "bin", OTHER, f"echo {OTHER}")
    assert tool.second_python() == first


def test_this_version_is_no_second_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    command(tmp_path, OWN, f"echo {OWN}")
    assert tool.second_python() is None


def test_it_has_the_versions_of_this_python() -> None:
    versions = dict(line.split("==") for line in tool.installed_versions())
    assert {"torch", "torch-mlir", "numpy", "numba", "markupsafe"} <= versions.keys()  # the last is needed by jinja2
    assert versions["numpy"] == __import__("numpy").__version__
    assert "+" not in versions["torch"]
    assert "fuseflow" not in versions and "pytest" not in versions
    assert not [name for name in versions if name.startswith(("nvidia", "cuda"))]


@pytest.mark.skipif(bool(tool.lacking_programs()) or sys.platform != "linux", reason="needs cc, ldd and nm")
def test_libraries_that_are_missing_say_that_there_is_no_driver(tmp_path: Path) -> None:
    """A library calls two that are gone, one by a symbol with a version and as data."""
    real, libraries = tmp_path / "real", tmp_path / "lib" / "python3.12" / "site-packages" / "torch" / "lib"
    real.mkdir()
    libraries.mkdir(parents=True)
    (real / "blas.c").write_text("int cublasCreate(void) { return 0; }")
    (real / "blas.map").write_text("libcublas.so.13 { cublasCreate; };")
    (real / "nccl.c").write_text("int ncclSend(void) { return 0; }")
    (real / "torch.c").write_text(
        "int cublasCreate(void); int ncclSend(void); int (*table[])(void) = {cublasCreate};"
        "int first(void) { return table[0](); } int second(void) { return ncclSend(); }"
    )
    cc = ["cc", "-shared", "-fPIC", "-o"]
    script = f"-Wl,--version-script={real / 'blas.map'}"
    subprocess.run([*cc, real / "libcublas.so.13", real / "blas.c", script, "-Wl,-soname,libcublas.so.13"], check=True)
    subprocess.run([*cc, real / "libnccl.so.2", real / "nccl.c", "-Wl,-soname,libnccl.so.2"], check=True)
    library = libraries / "libtorch.so"
    subprocess.run([*cc, library, real / "torch.c", real / "libcublas.so.13", real / "libnccl.so.2"], check=True)
    shutil.rmtree(real)
    with pytest.raises(OSError, match="cannot open shared object file"):
        ctypes.CDLL(str(library))
    folder = tool.stand_ins(tmp_path, tmp_path / "cuda")
    run = f"import ctypes; torch = ctypes.CDLL({str(library)!r}); print(torch.first(), torch.second())"
    done = subprocess.run(
        [sys.executable, "-c", run], env={"LD_LIBRARY_PATH": folder}, capture_output=True, text=True, check=False
    )
    assert done.stdout == "35 35\n", done.stderr


@pytest.mark.skipif(bool(tool.lacking_programs()) or sys.platform != "linux", reason="needs cc, ldd and nm")
def test_where_none_is_missing_none_is_made(tmp_path: Path) -> None:
    libraries = tmp_path / "lib" / "python3.12" / "site-packages" / "torch" / "lib"
    libraries.mkdir(parents=True)
    (tmp_path / "torch.c").write_text("int first(void) { return 1; }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", libraries / "libtorch.so", tmp_path / "torch.c"], check=True)
    assert tool.stand_ins(tmp_path, tmp_path / "cuda") == ""
