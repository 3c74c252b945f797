"""The check of the package: what is missing is said, and files that are no modules are looked for too."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import package_check as tool
import pytest

ROOT = Path(__file__).parents[2]


def written(folder: Path, source: set[str], wheel: set[str]) -> tuple[Path, Path]:
    """A source distribution and a wheel with these files."""
    with tarfile.open(folder / "fuseflow-0.tar.gz", "w:gz") as archive:
        for name in source:
            archive.addfile(tarfile.TarInfo(f"fuseflow-0/{name}"))
    with zipfile.ZipFile(folder / "fuseflow-0.whl", "w") as archive:
        for name in wheel:
            archive.writestr(name, "")
    return folder / "fuseflow-0.tar.gz", folder / "fuseflow-0.whl"


def whole() -> tuple[set[str], set[str]]:
    source = {path for folder in tool.FOLDERS for path in tool.files_below(folder)}
    kernels = {
        f"fuseflow/objects/{level}/{k}{tool.SUFFIX}" for level in tool.FEATURES_BY_LEVEL for k in range(len(tool.all_kernels()))
    }
    return source | set(tool.AT_THE_TOP), tool.files_below("fuseflow") | {"fuseflow-0.dist-info/METADATA"} | kernels


def test_a_kernel_that_the_wheel_lost_is_counted(tmp_path: Path) -> None:
    source, wheel = whole()
    lost = next(name for name in sorted(wheel) if name.endswith(tool.SUFFIX))
    with pytest.raises(tool.Broken, match="kernels, not"):
        tool.check_files(*written(tmp_path, source, wheel - {lost}))


def test_a_whole_package_passes(tmp_path: Path) -> None:
    tool.check_files(*written(tmp_path, *whole()))


@pytest.mark.parametrize("lost", ["py.typed", ".yaml", ".jinja", ".proto", "errors.py"])
def test_a_file_that_the_wheel_lost_is_named(tmp_path: Path, lost: str) -> None:
    source, wheel = whole()
    kept = {name for name in wheel if not name.endswith(lost)}
    assert kept < wheel
    with pytest.raises(tool.Broken, match=rf"fuseflow-0\.whl lacks \d+ of the checkout's files: .*{lost}"):
        tool.check_files(*written(tmp_path, source, kept))


def test_a_file_that_the_source_lost_is_named(tmp_path: Path) -> None:
    source, wheel = whole()
    with pytest.raises(tool.Broken, match=r"fuseflow-0\.tar\.gz lacks 1 of the checkout's files: CHANGELOG\.md"):
        tool.check_files(*written(tmp_path, source - {"CHANGELOG.md"}, wheel))


def test_a_wheel_installs_nothing_else(tmp_path: Path) -> None:
    source, wheel = whole()
    with pytest.raises(tool.Broken, match=r"would install more than fuseflow: fuseflow-0\.dist-info, tests"):
        tool.check_files(*written(tmp_path, source, wheel | {"tests/conftest.py"}))


def tagged(folder: Path, tag: str, pure: str, kernels: tuple[str, ...] = (), told: str = "") -> Path:
    """A wheel with a tag in its name, which is told inside too."""
    wheel = folder / f"fuseflow-0-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("fuseflow-0.dist-info/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: {pure}\nTag: {told or tag}\n")
        for name in kernels:
            archive.writestr(name, "code")
    return wheel


def test_a_wheel_has_the_tag_of_its_platform_while_machine_code_is_inside(tmp_path: Path) -> None:
    here = f"py3-none-{tool.sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    code = (f"fuseflow/v3/a{tool.SUFFIX}",)
    tool.check_tag(tagged(tmp_path, here, "false", code))
    tool.check_tag(tagged(tmp_path, "py3-none-any", "true"))
    for wrong in (
        tagged(tmp_path, "py3-none-any", "true", code),
        tagged(tmp_path, here, "true", code),
        tagged(tmp_path, here, "false", code, told="py3-none-any"),
        tagged(tmp_path, "py3-none-any", "false", code, told=here),
        tagged(tmp_path, "cp311-cp311-linux_x86_64", "false", code),
        tagged(tmp_path, here, "false"),
    ):
        with pytest.raises(tool.Broken, match=r"says `Root-Is-Purelib: .*, and is py3-none-"):
            tool.check_tag(wrong)


@pytest.mark.parametrize("kernel", ["code", "other code"])
def test_a_second_build_that_differs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str) -> None:
    name = f"{tool.OBJECTS}/v3/a{tool.SUFFIX}"
    wheel = tagged(tmp_path, "py3-none-any", "true", (name,))
    source, _ = written(tmp_path, {"setup.py"}, set())
    checkout = tmp_path / "checkout"
    (checkout / name).parent.mkdir(parents=True)
    (checkout / name).write_text(kernel)

    def build(command: list[str], folder: Path) -> None:
        project = Path(command[-1])
        assert (project / "setup.py").exists()
        (folder / "dist").mkdir()
        again = folder / "dist" / wheel.name
        with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again, "w") as second:
            for entry in first.infolist():
                second.writestr(entry, (project / name).read_bytes() if entry.filename == name else first.read(entry))

    monkeypatch.setattr(tool, "ROOT", checkout)
    monkeypatch.setattr(tool, "execute", build)
    (tmp_path / "again").mkdir()
    if kernel == "code":
        tool.check_repeated(source, wheel, tmp_path / "again")
    else:
        with pytest.raises(tool.Broken, match=rf"a second build of .* differs in .*{name}"):
            tool.check_repeated(source, wheel, tmp_path / "again")


def test_without_a_second_python_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "second_python", lambda: None)
    assert tool.try_second_python(tmp_path / "no.whl", tmp_path).startswith("no second version of Python")
    monkeypatch.setattr(tool, "second_python", lambda: Path("/opt/python3.12"))
    monkeypatch.setattr(tool, "lacking_programs", lambda: ["cc", "nm"])
    assert "no run on /opt/python3.12: cc, nm are lacking" in tool.try_second_python(tmp_path / "no.whl", tmp_path)


def test_a_command_that_fails_says_what_it_printed(tmp_path: Path) -> None:
    with pytest.raises(tool.Broken, match=r"(?s)failed with status 3:.*half a line"):
        tool.execute(["sh", "-c", "echo half a line; exit 3"], tmp_path)
