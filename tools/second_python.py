"""Another Python than the one that runs, with the same versions of all packages that fuseflow needs, PyTorch among them."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

VERSIONS = ("3.12", "3.13", "3.11")
"""The versions of Python to look for, the best first: those that torch-mlir has builds for."""
CUDA = re.compile(r"(?:nvidia|cuda)-|triton$")
"""The packages of CUDA, as names of the index."""
CUDA_FUNCTION = re.compile(r"((?:__)?(?:cu|nccl|nvrtc|nvshmem)\w*)(?:@(\S+))? ")
"""A function of CUDA as `nm` writes it, and the version that the symbol has."""
NO_DRIVER = 35
"""`cudaErrorInsufficientDriver`, what functions of CUDA answer on a machine without a GPU."""
NEEDED_PROGRAMS = ("cc", "ldd", "nm")


def second_python() -> Path | None:
    """Return a Python of another version that runs and can make environments. A name in PATH may be a stand-in that runs nothing."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    script = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    for version in VERSIONS:
        for path in _candidates(version) if version != own else ():
            try:
                done = subprocess.run([path, "-c", script], capture_output=True, text=True, check=False, timeout=60)
            except (OSError, subprocess.TimeoutExpired):
                continue
            if done.returncode == 0 and done.stdout.strip() == version:
                return path
    return None


def _candidates(version: str) -> Iterator[Path]:
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders += sorted(pyenv.glob(f"versions/{version}*/bin"), reverse=True)
    yield from (folder / f"python{version}" for folder in folders if (folder / f"python{version}").is_file())


def installed_versions() -> list[str]:
    """Return the requirements that give another Python what is installed here of all that fuseflow needs, but for CUDA."""
    versions: dict[str, str] = {}
    waiting = ["fuseflow"]
    while waiting:
        package = waiting.pop()
        for requirement in map(Requirement, importlib.metadata.requires(package) or ()):
            name = canonicalize_name(requirement.name)
            wanted = requirement.marker is None or requirement.marker.evaluate()  # an extra's are not
            if wanted and name not in versions and CUDA.match(name) is None:
                versions[name] = importlib.metadata.version(name).partition("+")[0]  # of a build for some hardware
                waiting.append(name)
    return [f"{name}=={version}" for name, version in sorted(versions.items())]


def stand_ins(environment: Path, folder: Path) -> str:
    """Write libraries for those of CUDA that PyTorch in an environment needs and this machine lacks, and return their folder.

    Packages of PyTorch for Linux are built for CUDA, whose libraries are gigabytes. A run on the processor calls nothing in them but the
    question how many GPUs there are. Here every function of theirs answers that there is no driver. The folder is "" if none is needed.
    """
    files = [str(path) for path in sorted(environment.glob("lib/python*/site-packages/torch/lib/*.so"))]
    missing = {line.split()[0] for line in _printed(["ldd", *files]).splitlines() if line.endswith("not found")}
    if not missing:
        return ""
    functions_by_version = defaultdict(set)
    for line in _printed(["nm", "--dynamic", "--undefined-only", "--format=posix", *files]).splitlines():
        if match := CUDA_FUNCTION.match(line):
            functions_by_version[match[2]].add(match[1])
    folder.mkdir()
    names = sorted(set().union(*functions_by_version.values()))
    (folder / "cuda.c").write_text("".join(f"int {name}(void) {{ return {NO_DRIVER}; }}\n" for name in names), encoding="utf-8")
    versions = {version: "; ".join(sorted(names)) for version, names in functions_by_version.items() if version is not None}
    (folder / "cuda.map").write_text(
        "".join(f"{version} {{ {names}; }};\n" for version, names in versions.items()), encoding="utf-8"
    )
    script = f"-Wl,--version-script={folder / 'cuda.map'}"
    _printed(["cc", "-w", "-fno-builtin", "-shared", "-fPIC", "-o", str(folder / "cuda.so"), str(folder / "cuda.c"), script])
    for name in missing:
        (folder / name).symlink_to("cuda.so")
    return str(folder)


def lacking_programs() -> list[str]:
    """Return the programs that `stand_ins` needs and that are not there."""
    return [name for name in NEEDED_PROGRAMS if shutil.which(name) is None]


def _printed(command: Sequence[str]) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
