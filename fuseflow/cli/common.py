"""Options, output and error handling that the commands share."""

from __future__ import annotations

import functools
import inspect
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click
from click.shell_completion import CompletionItem

from fuseflow.cli.command import Command, options_of
from fuseflow.errors import FileError, UsageError, visible
from fuseflow.filesystem import json_text, refuse_foreign_files, replace_file
from fuseflow.run.directory_names import MANIFEST

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fuseflow.machine.files import Setting
    from fuseflow.machine.machine import Machine

CIRCUIT_MACHINE = "rtl"
"""The machine of circuits if none is named."""

data_option = options_of("Model and data")
machine_option = options_of("Machine")
output_option = options_of("Output")

PLAIN_WIDTH = 80
"""The columns of a table where there is no terminal."""


class FileName(click.Path):
    """A parameter that is a path. Its reader checks whether the file exists and can be read."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the name is empty", param, ctx)
        return super().convert(value, param, ctx)


FILE = FileName()


def with_options(options: Sequence[Callable[[Any], Any]], command: Command) -> Command:
    """Add options to a command, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def bundled(name: str, make: Callable[..., Any], *options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command, in this order, and passes on as `name` what `make` returns for their values. The
    parameters of `make` are called as the options."""
    parameters = tuple(inspect.signature(make).parameters)

    def add(command: Command) -> Command:
        @functools.wraps(command)
        def build(*args: Any, **kwargs: Any) -> Any:
            values = {parameter: kwargs.pop(parameter) for parameter in parameters}
            return command(*args, **kwargs, **{name: make(**values)})

        return with_options(options, build)  # type: ignore[return-value]

    return add


def completed(words: Callable[[], Iterable[str]]) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a function that completes an option in a shell: by the words that begin with the typed text, or else by files."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        fitting = [CompletionItem(word) for word in words() if word.startswith(incomplete)]
        return fitting or [CompletionItem(incomplete, type="file")]

    return complete


setting_option = machine_option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change it, as in latency.add=3; repeatable."
)


def machine_options(default: str = "rda") -> Callable[[Command], Command]:
    """Return a decorator that adds the options of the machine to run on, and passes them on as `machine`, a `Machine`."""
    return bundled(
        "machine",
        _machine,
        machine_option(
            "--machine",
            "name",
            metavar="NAME",
            default=default,
            show_default=True,
            shell_complete=completed(_machine_names),
            help="A machine: its name, or a YAML file.",
        ),
        setting_option,
    )


def _circuit_machine(name: str | None, settings: tuple[str, ...]) -> Machine | None:
    return _machine(name or CIRCUIT_MACHINE, settings) if name is not None or settings else None


circuit_machine_options = bundled(
    "machine",
    _circuit_machine,
    machine_option("--machine", "name", metavar="NAME", help=f"With --emit hw or verilog: the machine, else {CIRCUIT_MACHINE}."),
    machine_option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change that machine; repeatable."),
)
"""Adds the options of a machine that only circuits need, and passes them on as `machine`: a `Machine`, or None if neither is given."""


resources_option = output_option(
    "--resources", is_flag=True, help="Print what each region occupies: lanes, ports, bytes on the chip."
)


def _machine_names() -> Iterable[str]:
    from fuseflow.machine.files import machine_names  # completion alone needs it

    return machine_names()


def _machine(name: str, settings: tuple[str, ...]) -> Machine:
    from fuseflow.machine.files import load_machine  # `--help` does without

    return load_machine(name, parse_settings(settings))


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
    from fuseflow.yaml_text import read_yaml, shortened

    try:
        scalar = read_yaml(value, "--set", UsageError).content
    except UsageError as error:
        raise UsageError(f"`--set {shortened(text)}`: the value is not a YAML scalar: {error.message}") from error
    if scalar is None or isinstance(scalar, int | float | str):
        return scalar
    raise UsageError(
        f"`--set {text}`: the value is not a YAML scalar", hint="set each key by itself, as in `--set latency.add=3`"
    )


def console(stderr: bool = False) -> Console:
    """Return a console as wide as the terminal, or `PLAIN_WIDTH` columns wide if there is none. With `--wide`, tables keep all columns, and
    have lines as long as they need where there is no terminal."""
    from fuseflow.cli.sanitized_console import SafeConsole, asked_legend, asked_wide  # commands that print no tables do without
    from fuseflow.report.table_width import ALL_COLUMNS

    legend, wide = asked_legend(), asked_wide()
    terminal = SafeConsole(stderr=stderr, highlight=False, legend=legend, wide=wide)
    if terminal.is_terminal:
        return terminal
    width = ALL_COLUMNS if wide else PLAIN_WIDTH
    return SafeConsole(stderr=stderr, highlight=False, width=width, legend=legend, wide=wide)


def say(line: str) -> None:
    """Print a line on standard output."""
    click.echo(visible(line))


def print_pieces(out: Console, pieces: Iterable[str | Table]) -> None:
    """Print the lines and tables of a report. An empty line separates two pieces."""
    from fuseflow.report.table_width import print_table  # commands that print no tables do without

    for piece in pieces:
        if isinstance(piece, str):
            out.print(piece, soft_wrap=True)
        else:
            print_table(out, piece)


def print_lines(out: Console, lines: Iterable[str]) -> None:
    """Print lines as they are, without markup."""
    for line in lines:
        out.print(line, soft_wrap=True, markup=False)


def print_notices(out: Console, notices: Iterable[str]) -> None:
    """Print the notices that belong to a result."""
    print_lines(out, (f"note: {notice}" for notice in notices))


def require_writable(path: Path, *, directory: bool) -> None:
    """Raise `FileError` before the work if the file `path`, or a file in the `directory` `path`, cannot be written."""
    if path.exists() and path.is_dir() != directory:
        raise FileError(f"cannot write `{path}`: it is {'a file' if directory else 'a directory'}")
    _probe(path, path if directory else path.absolute().parent)


def require_writable_file(path: Path | None) -> None:
    """Raise `FileError` before the work if a file cannot be written. None and `-`, which is standard output, can."""
    if path is not None and str(path) != "-":
        require_writable(path, directory=False)


def require_replaceable(directory: Path, manifest: str = MANIFEST) -> None:
    """Raise `FileError` now rather than after the work if a directory of artifacts cannot be written, or would replace files that
    it did not write. `manifest` is the file that lists the written ones."""
    if str(directory) == "-":
        raise UsageError(
            "a directory cannot go to standard output", hint="name it: `-o DIR`; a stage can: `compile --emit STAGE -o -`"
        )
    try:
        refuse_foreign_files(directory, manifest)
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
    """Create a temporary file in `parent` or the nearest existing directory above it. Raises `FileError` about `path` if that fails."""
    nearest = next(p for p in (parent, *parent.absolute().parents) if p.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise FileError(f"cannot write `{path}`: {nearest}: {error.strerror}") from error


def write_out(content: str | bytes, output: Path | None, stdout: TextIO | None = None) -> None:
    """Write to a file, or to standard output for None and `-`, which is `stdout` if it is given; text ends with a line break."""
    data = content if isinstance(content, bytes) else (content if content.endswith("\n") else content + "\n").encode()
    if output is not None and str(output) != "-":
        with replace_file(output) as temporary:
            temporary.write_bytes(data)
    elif isinstance(content, bytes) and sys.stdout.isatty():
        raise UsageError("that is binary, not for a terminal", hint="write it to a file: `-o FILE`")
    else:
        click.echo(data, stdout, nl=False)


@contextmanager
def reserved_stdout(reserved: bool = True) -> Iterator[TextIO]:
    """Yield a stream that writes to standard output. If it is `reserved`, anything else that prints, such as a model file, prints
    on standard error."""
    stdout = sys.stdout
    with redirect_stdout(sys.stderr) if reserved else nullcontext():
        yield stdout


@dataclass(frozen=True, slots=True)
class JsonFile:
    """The destination of JSON: none if `path` is None, and the stream `stdout` of the command if it is `-`."""

    path: Path | None
    stdout: TextIO | None = None

    @property
    def to_stdout(self) -> bool:
        return str(self.path) == "-"

    def write(self, values: Callable[[], dict[str, Any]]) -> None:
        """Write the values. They are computed only if the user wants JSON."""
        if self.path is not None:
            write_out(json_text(values()), self.path, self.stdout)

    def console(self) -> Console:
        """Return the console for text: it is standard error if the JSON takes standard output."""
        return console(stderr=self.to_stdout)


def json_option(content: str) -> Callable[[Command], Command]:
    """Return a decorator that adds `--json` and passes it on as `json_file`, a `JsonFile`. `content` describes the JSON in the help."""

    def wrap(command: Command) -> Command:
        @functools.wraps(command)
        def build(*args: Any, json_file: Path | None, **kwargs: Any) -> Any:
            with reserved_stdout(str(json_file) == "-") as stdout:
                require_writable_file(json_file)
                return command(*args, json_file=JsonFile(json_file, stdout), **kwargs)

        show = f"Write {content} as JSON; - is stdout."
        option = output_option("--json", "json_file", metavar="FILE", type=FILE, help=show)
        return option(build)  # type: ignore[return-value]

    return wrap
