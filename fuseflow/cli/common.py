"""Options, output and error handling that the commands share."""

from __future__ import annotations

import functools
import io
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from fuseflow.errors import FileError, FuseFlowError, UsageError
from fuseflow.filesystem import refuse_foreign_files, replace_file
from fuseflow.run.manifest import MANIFEST
from fuseflow.sim.machine.files import Setting, load_machine

Command = TypeVar("Command", bound=Callable[..., Any])

_DEBUG = "fuseflow.debug"
PLAIN_WIDTH = 160
"""The columns of a table that no terminal limits."""


class FileName(click.Path):
    """A parameter that is a path. Its reader checks whether the file exists and can be read."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the name is empty", param, ctx)
        return super().convert(value, param, ctx)


FILE = FileName()


class StrictCommand(click.Command):
    """A command that refuses a single-valued option that is passed twice, so that nothing is silently ignored."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, options = self.make_parser(ctx).parse_args(list(args))
        for option in options:
            if isinstance(option, click.Option) and not (option.multiple or option.is_flag) and options.count(option) > 1:
                raise click.UsageError(f"`{option.opts[-1]}` is given twice", ctx)
        return super().parse_args(ctx, args)


class ErrorBoundary(click.Group):
    """A command group that turns everything that a command raises into a message on standard error and an exit status.

    The status is 0 if all is done, 1 if a run or a check failed, 2 for bad input or usage, and 130 if interrupted.
    """

    def invoke(self, ctx: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # names that the locale cannot show
        try:
            return super().invoke(ctx)
        except FuseFlowError as error:
            _fail(ctx, str(error), error.exit_status)
        except KeyboardInterrupt:
            _fail(ctx, "interrupted", 130)
        except click.UsageError as error:
            command = ctx.command_path if error.ctx is None else error.ctx.command_path
            _fail(ctx, str(UsageError(error.format_message(), hint=f"`{command} --help` says what there is")), 2)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except MemoryError:
            _fail(ctx, "error[memory]: this machine has not enough memory for that\n  hint: try less data, or smaller regions", 1)
        except OSError as error:  # a full disk, a lost network drive
            _fail(ctx, str(FileError(f"{error.filename or 'cannot write the output'}: {error.strerror or error}")), 2)
        except Exception as error:
            again = "" if ctx.meta.get(_DEBUG) else "; `--debug` shows where"
            _fail(ctx, f"internal error: {type(error).__name__}: {error}\n  hint: this is a fault of fuseflow{again}", 1)


def _fail(ctx: click.Context, message: str, status: int) -> None:
    if ctx.meta.get(_DEBUG):
        click.echo(traceback.format_exc(), err=True)
    click.echo(message, err=True)
    ctx.exit(status)


def _remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[_DEBUG] = ctx.meta.get(_DEBUG, False) or value


def debug_option(command: Command) -> Command:
    show = "Show the traceback of an error."
    return click.option("--debug", is_flag=True, is_eager=True, expose_value=False, callback=_remember_debug, help=show)(command)


def quiet_option(command: Command) -> Command:
    return click.option("-q", "--quiet", is_flag=True, help="Print errors and what was asked for, nothing else.")(command)


def machine_options(command: Command) -> Command:
    """Add the options of the machine to run on, and pass them on as `machine`, a `Machine`."""
    options = [
        click.option(
            "--machine", "name", metavar="NAME", default="rda", show_default=True, help="A machine: its name, or a YAML file."
        ),
        click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change it, as in latency.add=3; repeatable."),
    ]

    @functools.wraps(command)
    def build(*args: Any, name: str, settings: tuple[str, ...], **kwargs: Any) -> Any:
        return command(*args, machine=load_machine(name, parse_settings(settings)), **kwargs)

    return with_options(options, build)  # type: ignore[return-value]


def parse_settings(texts: tuple[str, ...]) -> dict[str, Setting]:
    """Return the keys of `KEY=VALUE` texts with their values, which are YAML scalars. Raises `UsageError` for other texts."""
    settings: dict[str, Setting] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise UsageError(f"`--set {text}` is not KEY=VALUE", hint="as in `--set fifo_depth=64`")
        if key in settings:
            raise UsageError(f"`--set {key}` is given twice")
        settings[key] = _scalar(text, value)
    return settings


def _scalar(text: str, value: str) -> Setting:
    try:
        scalar = YAML(typ="safe", pure=True).load(value)
    except YAMLError:
        scalar = ()
    if scalar is None or isinstance(scalar, int | float | str):
        return scalar
    raise UsageError(
        f"`--set {text}`: the value is not a YAML scalar", hint="set each key by itself, as in `--set latency.add=3`"
    )


def with_options(options: list[Callable[[Any], Any]], command: Command) -> Command:
    """Add options to a command, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def console(stderr: bool = False) -> Console:
    """Return a console as wide as the terminal, or `PLAIN_WIDTH` columns wide if there is none."""
    terminal = Console(stderr=stderr, highlight=False)
    return terminal if terminal.is_terminal else Console(stderr=stderr, highlight=False, width=PLAIN_WIDTH)


def print_notices(out: Console, notices: Iterable[str]) -> None:
    """Print the notices that belong to a result."""
    for notice in notices:
        out.print(f"note: {notice}", soft_wrap=True, markup=False)


def require_writable(path: Path, *, directory: bool) -> None:
    """Raise `FileError` now rather than after the work if `path` cannot be written as a file, or in as a directory."""
    if path.exists() and path.is_dir() != directory:
        raise FileError(f"cannot write `{path}`: it is {'a file' if directory else 'a directory'}")
    _probe(path, path if directory else path.absolute().parent)


def require_replaceable(directory: Path) -> None:
    """Raise `FileError` now rather than after the work if a directory of artifacts cannot be written, or would replace files that
    are not such a directory's."""
    if str(directory) == "-":
        raise UsageError(
            "a directory cannot go to standard output", hint="name it: `-o DIR`; a stage can: `compile --emit STAGE -o -`"
        )
    try:
        refuse_foreign_files(directory, MANIFEST)
    except OSError as error:
        raise FileError(f"cannot write `{directory}`: {error.strerror}") from error
    _probe(directory, directory.absolute().parent)


def refuse_inside(output: Path | None, **others: Path | None) -> None:
    """Raise `UsageError` if another option writes into the directory of `-o`, which appears as a whole."""
    for option, path in others.items():
        if output is not None and path is not None and path.absolute().is_relative_to(output.absolute()):
            flag = option.replace("_", "-")
            raise UsageError(f"`--{flag} {path}` is in `{output}`, which is replaced as a whole", hint="name a place outside")


def _probe(path: Path, parent: Path) -> None:
    """Create a temporary file in `parent` or the nearest existing directory above it. Raises `FileError` if that fails."""
    nearest = next(p for p in (parent, *parent.absolute().parents) if p.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise FileError(f"cannot write `{path}`: {nearest}: {error.strerror}") from error


def write_out(content: str | bytes, output: Path | None) -> None:
    """Write to a file, or to standard output for None and `-`; text ends with a line break."""
    data = content if isinstance(content, bytes) else (content if content.endswith("\n") else content + "\n").encode()
    if output is not None and str(output) != "-":
        with replace_file(output) as temporary:
            temporary.write_bytes(data)
    elif isinstance(content, bytes) and sys.stdout.isatty():
        raise UsageError("that is binary, not for a terminal", hint="write it to a file: `-o FILE`")
    else:
        click.echo(data, nl=False)
