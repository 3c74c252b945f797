"""Stages of a program, written as numbered files while it is compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fuseflow.cli.common import require_writable
from fuseflow.einsum import text as einsum_text
from fuseflow.einsum.nodes import Program
from fuseflow.errors import UsageError
from fuseflow.filesystem import replace_file
from fuseflow.frontend.sources import Source
from fuseflow.lower.regions import CompiledRegion


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
        from fuseflow.run.artifacts import STAGES

        require_writable(directory, directory=True)
        return cls(STAGES, directory, every=True) if "all" in after else cls(after, directory)

    def __call__(self, stage: Source | Program | CompiledRegion) -> None:
        """Write a stage that compilation has reached, if it is one of `stages`."""
        if self.directory is None:
            return
        match stage:
            case Source():
                if stage.mlir is not None:
                    self._write(self.directory, "linalg", ".mlir", lambda: stage.mlir or "")
                elif "linalg" in self.stages and not self.every:
                    raise UsageError(f"`{stage.name}` does not go through Linalg", hint="dump a stage from `einsum` on")
            case Program():
                self._write(self.directory, "einsum", ".ein", lambda: einsum_text.show(stage))
            case CompiledRegion():
                from fuseflow.run.artifacts import REGION_STAGES, file_name

                for name, (file, show) in REGION_STAGES.items():
                    ending = f"-{file_name(stage.name)}{Path(file).suffix}"
                    self._write(self.directory, name, ending, functools.partial(show, stage))

    def _write(self, directory: Path, stage: str, ending: str, show: Callable[[], str | bytes]) -> None:
        from fuseflow.run.artifacts import STAGES  # takes long to load, and a run that dumps nothing does without

        if stage in self.stages:
            content = show()
            with replace_file(directory / f"{1 + STAGES.index(stage):02}-{stage}{ending}") as temporary:
                temporary.write_bytes(content if isinstance(content, bytes) else content.encode())
