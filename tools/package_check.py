"""Whether the package that others install is whole: builds it, installs it into an empty environment and tries it from another folder.

    python tools/package_check.py [--dist dist]

Builds the source distribution, and the wheel from that, into `--dist`. Compares the files of both with the files of this checkout, and the
wheel with a second one. Then installs the wheel into a temporary environment, which borrows only the dependencies of the Python that runs
this, and runs commands there: their data files, templates and machines must come out of the wheel. Beside that, a PyTorch model runs on
another version of Python, where there is one, with dependencies of its own. Exit status 1 at the first thing that is wrong.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TypeVar

import click
from second_python import installed_versions, lacking_programs, second_python, stand_ins

from fuseflow import __version__
from fuseflow.native.object_store import SUFFIX
from fuseflow.native.processor import FEATURES_BY_LEVEL, has_levels
from fuseflow.sim.engine.ahead import all_kernels

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[1]
AT_THE_TOP = (
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "NOTICE",
    "README.md",
    "pyproject.toml",
    "requirements.lock",
    "setup.py",
)
"""Files of a source distribution beside those of its folders."""
FOLDERS = ("fuseflow", "docs", "evaluation", "models", "schedules", "tests", "tools")
OBJECTS = "fuseflow/native/objects"
"""Where the kernels of a checkout are made."""
LEFT_BEHIND = ("__pycache__", SUFFIX, "docs/modules/")
"""What the paths have of files that Python and builds leave in a checkout, `make docs` among them."""
EXAMPLE = ("spmm.ein", "tensors.yaml", "A.mtx", "X.mtx")
"""A program of docs/example with its tensors."""


class Broken(click.ClickException):
    """The package is not what it should be; the message says in what."""


def files_below(folder: str) -> set[str]:
    """The files of a folder of the checkout, links to folders followed, without what Python and builds leave behind."""
    paths = glob.iglob(f"{folder}/**", root_dir=ROOT, recursive=True, include_hidden=True)
    return {path for path in paths if not any(left in path for left in LEFT_BEHIND) and (ROOT / path).is_file()}


def require(what: str, present: Iterable[str], wanted: Iterable[str]) -> None:
    """Raises `Broken` if a file that is wanted is not present."""
    missing = sorted(set(wanted) - set(present))
    if missing:
        raise Broken(f"{what} lacks {len(missing)} of the checkout's files: {', '.join(missing[:10])}")


def build(out: Path) -> tuple[Path, Path]:
    """The source distribution of the checkout, and the wheel that comes out of that source distribution alone."""
    shutil.rmtree(out, ignore_errors=True)
    execute([sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)], ROOT)
    (source,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return source, wheel


def check_files(source: Path, wheel: Path) -> None:
    """Nothing of the checkout was left out: not a module, and not a file that a module reads."""
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}  # without the folder NAME-VERSION
    require(source.name, names, {*AT_THE_TOP, *(path for folder in FOLDERS for path in files_below(folder))})
    with zipfile.ZipFile(wheel) as archive:
        require(wheel.name, archive.namelist(), files_below("fuseflow"))
        kernels = Counter(PurePosixPath(name).parent.name for name in archive.namelist() if name.endswith(SUFFIX))
        if has_levels() and kernels != dict.fromkeys(FEATURES_BY_LEVEL, len(all_kernels())):
            raise Broken(
                f"{wheel.name} has {dict(kernels)} kernels, not {len(all_kernels())} for each of {', '.join(FEATURES_BY_LEVEL)}"
            )
        strangers = {name.partition("/")[0] for name in archive.namelist()} - {"fuseflow"}
    if any(not name.endswith(".dist-info") for name in strangers):
        raise Broken(f"{wheel.name} would install more than fuseflow: {', '.join(sorted(strangers))}")


def check_tag(wheel: Path) -> None:
    """A wheel is for this platform where machine code is inside, and else for all. Every version of Python can use that code."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (about,) = (archive.read(name).decode().splitlines() for name in names if name.endswith(".dist-info/WHEEL"))
    pure = not any(name.endswith(SUFFIX) for name in names)
    tag = f"py3-none-{'any' if pure else sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    told = [line for line in about if line.startswith(("Tag:", "Root-Is-Purelib:"))]
    if sorted(told) != [f"Root-Is-Purelib: {str(pure).lower()}", f"Tag: {tag}"] or not wheel.stem.endswith(f"-{tag}"):
        raise Broken(f"{wheel.name} says `{', '.join(told)}`, and is {tag}, {'without' if pure else 'with'} machine code")


def check_repeated(source: Path, wheel: Path, folder: Path) -> None:
    """A second build gives the same files. It takes the kernels of this checkout, which were compiled at another time, if there are any."""
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    (project,) = folder.iterdir()
    if (ROOT / OBJECTS).is_dir():
        shutil.copytree(ROOT / OBJECTS, project / OBJECTS)
    execute([sys.executable, "-m", "build", "--wheel", "--outdir", str(folder / "dist"), str(project)], folder)
    (again,) = (folder / "dist").iterdir()
    first, second = digests(wheel), digests(again)
    if differing := sorted(name for name, _ in first.items() ^ second.items()):
        raise Broken(f"a second build of {wheel.name} differs in {', '.join(dict.fromkeys(differing[:10]))}")


def digests(wheel: Path) -> dict[str, str]:
    """The SHA-256 of each file of a wheel, and that of the whole wheel under its own name."""
    with zipfile.ZipFile(wheel) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents[wheel.name] = wheel.read_bytes()
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


def install(wheel: Path, environment: Path) -> Path:
    """The folder of the commands of a new environment that has the wheel, and sees the dependencies that are installed here.

    A `.pth` file adds folders behind the environment's own packages, and does not read the `.pth` files that are in them. So fuseflow can
    only come out of the wheel, also where this Python has it as an editable installation.
    """
    execute([sys.executable, "-m", "venv", str(environment)], ROOT)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(environment), "platbase": str(environment)}))
    borrowed = [folder for folder in sys.path if Path(folder).name in ("site-packages", "dist-packages")]
    (packages / "dependencies.pth").write_text("".join(f"{folder}\n" for folder in borrowed), encoding="utf-8")
    commands = environment / "bin"
    pip = [str(commands / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    execute([*pip, "install", "--no-deps", "--ignore-installed", str(wheel)], environment)
    return commands


def try_installed(wheel: Path, folder: Path) -> None:
    """Install the wheel into an environment of its own, and try it out there."""
    (folder / "work").mkdir()
    try_out(install(wheel, folder / "environment"), folder / "work")


def try_out(commands: Path, folder: Path) -> None:
    """Commands of the installed package, from a folder that is not a checkout."""
    for name in EXAMPLE:
        shutil.copy(ROOT / "docs" / "example" / name, folder)
    fuseflow = str(commands / "fuseflow")
    place = execute([str(commands / "python"), "-c", "import fuseflow; print(fuseflow.__file__)"], folder).strip()
    if not Path(place).is_relative_to(commands.parent):
        raise Broken(f"`import fuseflow` does not read what was installed, but {place}")
    printed = execute([fuseflow, "--version"], folder)
    if __version__ not in printed.split():
        raise Broken(f"`fuseflow --version` prints `{printed.strip()}`; the checkout has version {__version__}")
    execute([fuseflow, "doctor"], folder)
    if has_levels():
        require_no_compilation(commands, folder)
    program = ["run", "spmm.ein", "--tensors", "tensors.yaml"]
    for machine in ("ideal", "comal", "rda"):
        result = json.loads(execute([fuseflow, *program, "--machine", machine, "--json", "-"], folder))
        if not result["check"]["passed"]:
            raise Broken(f"the installed package computes wrong numbers on {machine}")
    execute([fuseflow, *program, "-o", "out"], folder)
    execute([fuseflow, "report", "out", "-o", "out.html"], folder)
    if "<html" not in (folder / "out.html").read_text(encoding="utf-8"):
        raise Broken("`fuseflow report` of the installed package writes no page")


def require_no_compilation(commands: Path, folder: Path) -> None:
    """Raises `Broken` if a first run compiles kernels: with an empty cache, and without a C compiler or linker."""
    (folder / "home").mkdir()
    arguments = ["run", "spmm.ein", "--tensors", "tensors.yaml", "--engine", "fast", "-q"]
    run = f"import sys; from fuseflow.cli.main import main; main({arguments!r}, standalone_mode=False)"
    script = f"{run}; assert 'numba' not in sys.modules"
    bare = {"HOME": str(folder / "home"), "PATH": str(folder / "home"), "XDG_CACHE_HOME": "", "FUSEFLOW_CACHE_DIR": ""}
    execute([str(commands / "python"), "-c", script], folder, bare)
    if kept := [*(folder / "home").rglob(f"*{SUFFIX}")]:
        raise Broken(f"the first run compiled {len(kept)} kernels")


def try_second_python(wheel: Path, folder: Path) -> str:
    """Run a PyTorch model on another version of Python, and say on which, or why on none."""
    python = second_python()
    if python is None:
        return "no second version of Python: none of 3.11, 3.12 and 3.13 runs here but this one"
    if lacking := lacking_programs():
        return f"no run on {python}: {', '.join(lacking)} are lacking, which make empty libraries in place of those of CUDA"
    environment, work = folder / "environment", folder / "work"
    work.mkdir()
    execute([str(python), "-m", "venv", str(environment)], folder)
    commands = environment / "bin"
    pip = [str(commands / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    try:
        execute([*pip, "install", "--no-deps", "--no-compile", *installed_versions()], folder)
    except Broken as error:
        return f"no run on {python}: what fuseflow needs cannot be installed for it: {str(error).splitlines()[-1]}"
    execute([*pip, "install", "--no-deps", "--no-compile", str(wheel)], folder)
    for path in (*(ROOT / "docs" / "example" / name for name in EXAMPLE), ROOT / "models" / "gcn.py"):
        shutil.copy(path, work)
    if has_levels():
        require_no_compilation(commands, work)
    libraries = {"LD_LIBRARY_PATH": stand_ins(environment, folder / "libraries")}
    execute([str(commands / "fuseflow"), "doctor"], work, libraries)
    result = json.loads(
        execute([str(commands / "fuseflow"), "run", "gcn.py", "--fuse", "layer1", "--json", "-"], work, libraries)
    )
    if not result["check"]["passed"]:
        raise Broken(f"the installed package computes wrong numbers with {python}")
    return f"{execute([str(commands / 'python'), '-V'], work).strip()} runs a PyTorch model, {result['cycles']:,} cycles"


def execute(command: Sequence[str], folder: Path, variables: Mapping[str, str] = MappingProxyType({})) -> str:
    """What a command prints. Raises `Broken` with all that it printed if it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")} | variables
    done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise Broken(f"`{' '.join(command)}` failed with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


@click.command(help=__doc__.partition("\n")[0])
@click.option("--dist", default=ROOT / "dist", type=click.Path(path_type=Path), help="Where the two files go; emptied first.")
def main(dist: Path) -> None:
    source, wheel = build(dist)
    check_files(source, wheel)
    check_tag(wheel)
    with tempfile.TemporaryDirectory(prefix="fuseflow-package-") as name, ThreadPoolExecutor(max_workers=2) as threads:

        def start(check: Callable[..., T], *files: Path) -> Future[T]:
            return threads.submit(check, *files, Path(tempfile.mkdtemp(dir=name)))

        second = start(try_second_python, wheel)  # which takes longest
        for check in (start(try_installed, wheel), start(check_repeated, source, wheel)):
            check.result()
        told = second.result()
    for path in (source, wheel):
        click.echo(f"{path.name}: {path.stat().st_size // 1024:,} kB; whole, installs and runs")
    click.echo(told)


if __name__ == "__main__":
    main()
