"""The options `--dump-after STAGE --dump-dir DIR`, which write stages as numbered files."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from fuseflow.cli.common import FILE, require_writable
from fuseflow.einsum import text as einsum_text
from fuseflow.einsum.nodes import Program
from fuseflow.errors import UsageError, did_you_mean
from fuseflow.filesystem import replace_file
from fuseflow.frontend.sources import Source
from fuseflow.lower.regions import CompiledRegion
from fuseflow.run.artifacts import REGION_STAGES, SHOWN, STAGES, file_name

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class StageDump:
    """The stages to write and their directory. Without a directory nothing is written."""

    stages: tuple[str, ...] = ()
    directory: Path | None = None
    every: bool = False
    """Whether to write every stage that exists, so that a stage that the program does not go through is no error."""

    @classmethod
    def of(cls, after: tuple[str, ...], directory: Path | None) -> StageDump:
        """Return the dump that flags ask for. Raises `UsageError` if one flag is missing, `FileError` if the directory is not writable."""
        if not after and directory is None:
            return cls()
        if not after or directory is None:
            missing = "--dump-dir DIR" if after else "--dump-after STAGE"
            raise UsageError(f"`{'--dump-after' if after else '--dump-dir'}` needs `{missing}`")
        require_writable(directory, directory=True)
        return cls(STAGES, directory, every=True) if "all" in after else cls(after, directory)

    def __call__(self, stage: Source | Program | CompiledRegion) -> None:
        """Write a stage that has been reached, if it was asked for."""
        match stage:
            case Source():
                if stage.mlir is not None:
                    self._write("linalg", ".mlir", lambda: stage.mlir or "")
                elif "linalg" in self.stages and not self.every:
                    raise UsageError(f"`{stage.name}` does not go through Linalg", hint="dump a stage from `einsum` on")
            case Program():
                self._write("einsum", ".ein", lambda: einsum_text.show(stage))
            case CompiledRegion():
                for name, (file, show) in REGION_STAGES.items():
                    ending = f"-{file_name(stage.name)}{Path(file).suffix}"
                    self._write(name, ending, functools.partial(show, stage))

    def _write(self, stage: str, ending: str, show: Callable[[], str | bytes]) -> None:
        if self.directory is not None and stage in self.stages:
            content = show()
            with replace_file(self.directory / f"{1 + STAGES.index(stage):02}-{stage}{ending}") as temporary:
                temporary.write_bytes(content if isinstance(content, bytes) else content.encode())


def dump_options(command: Command) -> Command:
    """Add `--dump-after` and `--dump-dir`, and pass them on as `dump`, a `StageDump`."""

    @functools.wraps(command)
    def build(*args: Any, dump_after: tuple[str, ...], dump_dir: Path | None, **kwargs: Any) -> Any:
        return command(*args, dump=StageDump.of(dump_after, dump_dir), **kwargs)

    directory = click.option("--dump-dir", metavar="DIR", type=FILE, help="Where --dump-after writes.")
    after = click.option(
        "--dump-after", multiple=True, metavar="STAGE", callback=known_stage, help="Write a stage, or all; repeatable."
    )
    return after(directory(build))  # type: ignore[return-value]


def known_stage(_: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Return the value of an option that names stages. Raises `UsageError` for an unknown stage, before any work."""
    stages = (*STAGES, "all") if parameter.name == "dump_after" else SHOWN
    for stage in value if isinstance(value, tuple) else (value,):
        if stage is not None and stage not in stages:
            raise UsageError(f"unknown stage `{stage}`", hint=did_you_mean(stage, stages))
    return value
