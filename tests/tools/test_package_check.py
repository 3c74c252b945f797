"""The check of the package: what is missing is said, and files that are no modules are looked for too."""

from __future__ import annotations

import tarfile
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = spec_from_file_location("package_check", ROOT / "tools" / "package_check.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def written(folder: Path, source: set[str], wheel: set[str]) -> tuple[Path, Path]:
    """A source distribution and a wheel with these files."""
    with tarfile.open(folder / "fuseflow-0.tar.gz", "w:gz") as archive:
        for name in source:
            archive.addfile(tarfile.TarInfo(f"fuseflow-0/{name}"))
    with zipfile.ZipFile(folder / "fuseflow-0.whl", "w") as archive:
        for name in wheel:
            archive.writestr(name, "")
    return folder / "fuseflow-0.tar.gz", folder / "fuseflow-0.whl"


def whole(tool: ModuleType) -> tuple[set[str], set[str]]:
    source = {path for folder in tool.FOLDERS for path in tool.files_below(folder)}
    kernels = {
        f"fuseflow/objects/{level}/{k}{tool.SUFFIX}" for level in tool.FEATURES_BY_LEVEL for k in range(len(tool.all_kernels()))
    }
    return source | set(tool.AT_THE_TOP), tool.files_below("fuseflow") | {"fuseflow-0.dist-info/METADATA"} | kernels


def test_a_kernel_that_the_wheel_lost_is_counted(tool: ModuleType, tmp_path: Path) -> None:
    source, wheel = whole(tool)
    lost = next(name for name in sorted(wheel) if name.endswith(tool.SUFFIX))
    with pytest.raises(tool.Broken, match="kernels, not"):
        tool.check_files(*written(tmp_path, source, wheel - {lost}))


def test_a_whole_package_passes(tool: ModuleType, tmp_path: Path) -> None:
    tool.check_files(*written(tmp_path, *whole(tool)))


@pytest.mark.parametrize("lost", ["py.typed", ".yaml", ".jinja", ".proto", "errors.py"])
def test_a_file_that_the_wheel_lost_is_named(tool: ModuleType, tmp_path: Path, lost: str) -> None:
    source, wheel = whole(tool)
    kept = {name for name in wheel if not name.endswith(lost)}
    assert kept < wheel
    with pytest.raises(tool.Broken, match=rf"fuseflow-0\.whl lacks \d+ of the checkout's files: .*{lost}"):
        tool.check_files(*written(tmp_path, source, kept))


def test_a_file_that_the_source_lost_is_named(tool: ModuleType, tmp_path: Path) -> None:
    source, wheel = whole(tool)
    with pytest.raises(tool.Broken, match=r"fuseflow-0\.tar\.gz lacks 1 of the checkout's files: CHANGELOG\.md"):
        tool.check_files(*written(tmp_path, source - {"CHANGELOG.md"}, wheel))


def test_a_wheel_installs_nothing_else(tool: ModuleType, tmp_path: Path) -> None:
    source, wheel = whole(tool)
    with pytest.raises(tool.Broken, match=r"would install more than fuseflow: fuseflow-0\.dist-info, tests"):
        tool.check_files(*written(tmp_path, source, wheel | {"tests/conftest.py"}))


def test_a_command_that_fails_says_what_it_printed(tool: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(tool.Broken, match=r"(?s)failed with status 3:.*half a line"):
        tool.execute(["sh", "-c", "echo half a line; exit 3"], tmp_path)
