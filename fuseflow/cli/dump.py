"""`--dump-after STAGE --dump-dir DIR`: stages as numbered files."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from fuseflow.atomic import replacing
from fuseflow.cli.common import FILE, require_writable
from fuseflow.compiler import Compiled
from fuseflow.compiler.artifacts import REGION_STAGES, STAGES
from fuseflow.errors import UsageError, did_you_mean

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Dump:
    """What to write, and where; nothing without stages."""

    stages: tuple[str, ...] = ()
    directory: Path = Path()

    @classmethod
    def of(cls, after: tuple[str, ...], directory: Path | None) -> Dump:
        """From the flags; raises `UsageError` where one of them is missing, `FileError` where the directory cannot be written."""
        if not after and directory is None:
            return cls()
        if not after or directory is None:
            missing = "--dump-dir DIR" if after else "--dump-after STAGE"
            raise UsageError(f"`{'--dump-after' if after else '--dump-dir'}` needs `{missing}`")
        require_writable(directory, directory=True)
        return cls(STAGES if "all" in after else after, directory)

    def write(self, compiled: Compiled) -> None:
        for number, stage in enumerate(STAGES, 1):
            if stage not in self.stages or (stage == "linalg" and len(self.stages) > 1 and compiled.source.mlir is None):
                continue
            if stage not in REGION_STAGES:
                ending = "mlir" if stage == "linalg" else "ein"
                self._write(f"{number:02}-{stage}.{ending}", compiled.emit(stage))
                continue
            ending, show = REGION_STAGES[stage]
            for region in compiled.regions:
                self._write(f"{number:02}-{stage}-{region.name}.{ending}", show(region))

    def _write(self, name: str, content: str | bytes) -> None:
        with replacing(self.directory / name) as temporary:
            temporary.write_bytes(content if isinstance(content, bytes) else content.encode())


def dump_options(command: Command) -> Command:
    """`--dump-after`, `--dump-dir`; passed on as `dump`, a `Dump`."""

    @functools.wraps(command)
    def build(*args: Any, dump_after: tuple[str, ...], dump_dir: Path | None, **kwargs: Any) -> Any:
        return command(*args, dump=Dump.of(dump_after, dump_dir), **kwargs)

    directory = click.option("--dump-dir", metavar="DIR", type=FILE, help="Where --dump-after writes.")
    after = click.option(
        "--dump-after", multiple=True, metavar="STAGE", callback=known_stage, help="Write a stage, or all; repeatable."
    )
    return after(directory(build))  # type: ignore[return-value]


def known_stage(_: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Refuse an unknown stage before any work."""
    extra = "all" if parameter.name == "dump_after" else "fibertree"
    for stage in value if isinstance(value, tuple) else (value,):
        if stage is not None and stage not in (*STAGES, extra):
            raise UsageError(f"unknown stage `{stage}`", hint=did_you_mean(stage, [*STAGES, extra]))
    return value
