"""The handling of arguments, help and errors in all commands and their groups. It imports as little as `fuseflow --version` needs."""

from __future__ import annotations

import functools
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, TypeVar

import click

from fuseflow.cli.process import INTERRUPTED, OUTPUT_CLOSED, Interruptions, drop_output
from fuseflow.errors import FileError, FuseFlowError, UsageError, visible

Command = TypeVar("Command", bound=Callable[..., Any])

EXIT_STATUS: Final = (
    "Exit status: 0 done; 1 a run or a check failed; 2 bad input or usage; 130 interrupted; 141 the reader of the output ended."
)
_DEBUG = "fuseflow.debug"
VERBOSE: Final = "fuseflow.verbose"
"""The key of what `--verbose` says in a context of click."""
_EVERYTHING = "fuseflow.help_all"
_GENERAL = "General"
_HELP_NAMES: Final = ("-h", "--help", "--help-all", "--debug")
_HINT_EXIT: Final = "a model file must not call `sys.exit`"
_HINT_MEMORY: Final = "try less data, or smaller regions; `run --no-check` does without the dense reference"


class GroupedOption(click.Option):
    """An option that stands below the heading `group` in the help."""

    def __init__(self, *names: Any, group: str, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.group = group


def options_of(group: str) -> Callable[..., Callable[[Command], Command]]:
    """Return `click.option` for the options of a group."""
    return functools.partial(click.option, cls=GroupedOption, group=group)


general_option: Final = options_of(_GENERAL)


def option_groups(command: click.Command, context: click.Context) -> dict[str, list[click.Option]]:
    """Return the options that the help of a command shows, by the heading of their group."""
    groups: dict[str, list[click.Option]] = {}
    for option in command.get_params(context):
        if isinstance(option, click.Option) and not option.hidden:
            groups.setdefault(getattr(option, "group", _GENERAL), []).append(option)
    return groups


def same_request(context: click.Context, other: click.Command, *without: str) -> list[str]:
    """Return the arguments of a command that runs, and those of its options that the `other` command has too, as words of a command line.
    Options of the groups `without` are left out."""
    known, words = {parameter.name for parameter in other.params}, list[str]()
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) is not click.core.ParameterSource.COMMANDLINE or name not in known:
            continue
        if getattr(parameter, "group", _GENERAL) in without:
            continue
        value = context.params.get(name)
        values = (value or ()) if parameter.multiple else (value,)
        if isinstance(parameter, click.Argument):
            words.append(str(value))
        elif isinstance(parameter, click.Option) and parameter.expose_value and name not in ("json_file", "quiet"):
            words += [
                word for each in values for word in ([parameter.opts[0]] if parameter.is_flag else [parameter.opts[0], str(each)])
            ]
    return words


def _show_everything(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        context.meta[_EVERYTHING] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


def _help_all(hidden: bool) -> GroupedOption:
    return GroupedOption(
        ["--help-all"],
        group=_GENERAL,
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_everything,
        hidden=hidden,
        help="Show all options, in groups.",
    )


class StrictCommand(click.Command):
    """A command that refuses a single-valued option that is passed twice, so that nothing is silently ignored.

    `often` has the names of the options that `--help` shows, without dashes. `--help-all` shows all, in groups. So does `--help` of a
    command for which `often` is empty.
    """

    def __init__(self, *args: Any, often: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.often = (*often, "quiet", "verbose", "help") if often else ()
        self.params.append(_help_all(hidden=not often))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups = option_groups(self, ctx)
        if self._is_short(ctx):
            listed = [option for options in groups.values() for option in options if {*_names(option)} & {*self.often}]
            groups = {"Options": sorted(listed, key=lambda option: "help" in _names(option))}
        elif len(groups) == 1:
            groups = {"Options": groups[_GENERAL]}
        for heading, options in groups.items():
            with formatter.section(heading):
                formatter.write_dl([record for option in options if (record := option.get_help_record(ctx)) is not None])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_exit_status(formatter)
        if self._is_short(ctx):
            count = sum(len(options) for options in option_groups(self, ctx).values())
            formatter.write_paragraph()
            formatter.write_text(f"`{ctx.command_path} --help-all` shows all {count} options, in groups.")

    def _is_short(self, ctx: click.Context) -> bool:
        return bool(self.often) and not ctx.meta.get(_EVERYTHING)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if (
            ctx.resilient_parsing
        ):  # a shell completes the value of the last option: what stands before it is a command without that option
            return super().parse_args(ctx, args[:-1] if args and self._takes_value(args[-1]) else args)
        _, _, options = self.make_parser(ctx).parse_args(list(args))
        for option in options:
            if isinstance(option, click.Option) and not (option.multiple or option.is_flag) and options.count(option) > 1:
                raise click.UsageError(f"`{option.opts[-1]}` is given twice", ctx)
        rest = super().parse_args(ctx, args)
        if ctx.params.get("quiet") and ctx.meta.get(VERBOSE):
            raise click.UsageError("`--quiet` beside `--verbose`: leave one of them out", ctx)
        return rest

    def _takes_value(self, word: str) -> bool:
        return any(isinstance(option, click.Option) and word in option.opts and not option.is_flag for option in self.params)


def _names(option: click.Option) -> list[str]:
    return [name.lstrip("-") for name in option.opts]


def _write_exit_status(formatter: click.HelpFormatter) -> None:
    formatter.write_paragraph()
    formatter.write_text(EXIT_STATUS)


class CommandGroup(click.Group):
    """A group of commands. If it has a `default`, the name of this command may be left out: its arguments may follow the group at once."""

    def __init__(self, *args: Any, default: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.default = default
        self.params.append(_help_all(hidden=True))  # which is its `--help`

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if (
            self.default
            and args
            and args[0] not in self.commands
            and args[0] not in _HELP_NAMES
            and not self._is_mistyped(args[0])
        ):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_exit_status(formatter)

    def _is_mistyped(self, word: str) -> bool:
        """Return whether a word that is no command was probably meant as one, and not as an argument of the default command."""
        if word.startswith("-") or os.path.exists(word):
            return False
        from difflib import get_close_matches

        return bool(get_close_matches(word, self.commands))


class ErrorBoundary(CommandGroup):
    """A command group that turns everything that a command raises into a message on standard error and an exit status.

    The status is 0 if all is done, 1 if a run or a check failed, 2 for bad input or usage, 130 if interrupted, and 141 if the reader
    of a pipe ended, as shells have it for the programs that the system ends then.
    """

    def invoke(self, ctx: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # names that the locale cannot show
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _end_unread()
        except Exception as error:
            if isinstance(error, click.exceptions.Exit) or not Interruptions.seen:
                self._explain(ctx, error)
            _fail(ctx, "interrupted", INTERRUPTED)
        except KeyboardInterrupt:
            _fail(ctx, "interrupted", INTERRUPTED)
        except SystemExit as error:  # of a model file, or of a library
            _fail(ctx, str(FuseFlowError(f"the run was ended from inside, with status {error.code!r}", hint=_HINT_EXIT)), 1)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Return the context of the group. A wrong option of the group itself is reported like any other error. So is a failure
        to write the help or the version."""
        try:
            return super().make_context(*args, **kwargs)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            click.echo(visible(_usage_message(error, self.name or "fuseflow")), err=True)
            raise click.exceptions.Exit(2) from None
        except BrokenPipeError:
            _end_unread()
        except OSError as error:
            click.echo(str(_unwritten(error)), err=True)
            raise click.exceptions.Exit(2) from None

    @staticmethod
    def _explain(ctx: click.Context, problem: Exception) -> NoReturn:
        """Print the message of an exception that a command raised, and end the process with its exit status."""
        try:
            raise problem
        except FuseFlowError as error:
            _fail(ctx, str(error), error.exit_status)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            _fail(ctx, _usage_message(error, ctx.command_path), 2)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except MemoryError:
            _fail(ctx, f"error[memory]: this machine has not enough memory for that\n  hint: {_HINT_MEMORY}", 1)
        except OSError as error:  # a full disk, a lost network drive
            _fail(ctx, str(_unwritten(error)), 2)
        except Exception as error:
            again = "" if ctx.meta.get(_DEBUG) else "; `--debug` shows where"
            _fail(ctx, f"internal error: {type(error).__name__}: {error}\n  hint: this is a fault of fuseflow{again}", 1)


def _unwritten(error: OSError) -> FileError:
    """Return the error of an output that could not be written. If that is standard output, the rest of its text is dropped."""
    if error.filename is None:
        drop_output()
    return FileError(f"{error.filename or 'cannot write the output'}: {error.strerror or error}")


def _end_unread() -> NoReturn:
    """End the command in silence, since the reader of its output has ended, as in `fuseflow ops | head -1`."""
    drop_output()
    raise click.exceptions.Exit(OUTPUT_CLOSED) from None


def _usage_message(error: click.UsageError, command: str) -> str:
    path = command if error.ctx is None else error.ctx.command_path
    return str(UsageError(error.format_message(), hint=f"`{path} --help` says what there is"))


def _fail(ctx: click.Context, message: str, status: int) -> NoReturn:
    if ctx.meta.get(_DEBUG):
        click.echo(traceback.format_exc(), err=True)
    click.echo(visible(message), err=True)
    ctx.exit(status)


def _remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[_DEBUG] = ctx.meta.get(_DEBUG, False) or value


debug_option = general_option(
    "--debug",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_remember_debug,
    help="Show the traceback of an error.",
)
