"""The handling of arguments and errors in all commands and their group. It imports as little as `fuseflow --version` needs."""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

import click

from fuseflow.cli.process import INTERRUPTED, Interruptions, drop_output
from fuseflow.errors import FileError, FuseFlowError, UsageError, visible

Command = TypeVar("Command", bound=Callable[..., Any])

ARGUMENTS: Final = "fuseflow.arguments"
"""Where the context of a command has the words that it was called with."""
_DEBUG = "fuseflow.debug"
_HINT_EXIT: Final = "a model file must not call `sys.exit`"
_HINT_MEMORY: Final = "try less data, or smaller regions; `run --no-check` does without the dense reference"


class StrictCommand(click.Command):
    """A command that refuses a single-valued option that is passed twice, so that nothing is silently ignored."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if (
            ctx.resilient_parsing
        ):  # a shell completes the value of the last option: what stands before it is a command without that option
            return super().parse_args(ctx, args[:-1] if args and self._takes_value(args[-1]) else args)
        _, _, options = self.make_parser(ctx).parse_args(list(args))
        for option in options:
            if isinstance(option, click.Option) and not (option.multiple or option.is_flag) and options.count(option) > 1:
                raise click.UsageError(f"`{option.opts[-1]}` is given twice", ctx)
        ctx.meta[ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)

    def _takes_value(self, word: str) -> bool:
        return any(isinstance(option, click.Option) and word in option.opts and not option.is_flag for option in self.params)


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
            raise
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
        except click.UsageError as error:
            _fail(ctx, _usage_message(error, ctx.command_path), 2)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
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


def debug_option(command: Command) -> Command:
    show = "Show the traceback of an error."
    return click.option("--debug", is_flag=True, is_eager=True, expose_value=False, callback=_remember_debug, help=show)(command)
