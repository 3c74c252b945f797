"""The declaration of a command and its action are two modules, and the second one is imported when the command is called."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import click

from fuseflow.cli.command import VERBOSE, StrictCommand, debug_option, general_option
from fuseflow.cli.common import with_options
from fuseflow.cli.process import interruptible

DECLARED, ACTIONS = "fuseflow.cli.", "fuseflow.cli.actions."


def deferred(declaration: Callable[[], None]) -> Callable[..., Any]:
    """Return the action of a declaration: the function of the same name in the module of the same name in `actions`.

    The declaration has the options and the help of a command, and nothing else. `fuseflow --help` and the completion of a shell read it,
    and neither has to wait for the compiler.
    """
    module = ACTIONS + declaration.__module__.removeprefix(DECLARED)

    @functools.wraps(declaration)
    def act(*args: Any, **kwargs: Any) -> Any:
        action = getattr(import_module(module), declaration.__name__)
        imported = click.get_current_context().obj  # what to call now, in a process that belongs to the command (`__main__.py`)
        if imported is not None:
            imported()
        with interruptible():  # not while modules are imported: Python may turn an interruption there into anything
            return action(*args, **kwargs)

    return act


def _remember_legend(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        from fuseflow.cli.sanitized_console import ask_for_legend  # commands that print no tables do without

        ask_for_legend(context)


def _log_all(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        from fuseflow.cli.progress import log_lines  # commands that tell nothing do without

        context.meta[VERBOSE] = True
        context.with_resource(log_lines())


def _remember_wide(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        from fuseflow.cli.sanitized_console import WIDE  # commands that print no tables do without

        context.meta[WIDE] = True


_LAST: Sequence[Callable[[Any], Any]] = (
    general_option("-q", "--quiet", is_flag=True, help="Print errors and what options ask for, nothing else."),
    general_option(
        "-v",
        "--verbose",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_log_all,
        help="Say what was reused and what was made anew, and why.",
    ),
    debug_option,
)
_LEGEND = general_option(
    "--legend",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_remember_legend,
    help="Say what the columns of the tables mean, below them.",
)

_WIDE = general_option(
    "--wide",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_remember_wide,
    help="Show all columns of the tables, however wide.",
)


def command(
    short_help: str = "",
    *options: Callable[[Any], Any],
    name: str | None = None,
    group: click.Group | None = None,
    often: str = "",
    legend: bool = True,
) -> Callable[[Callable[[], None]], click.Command]:
    """Return a decorator that makes a command of its declaration, which `deferred` explains.

    The options are in the order of the help, and end with `--legend` and `--wide`, unless a command has no tables, and with those that
    every command has. `often` has the names of the options that `--help` shows, without dashes and with blanks between; without it,
    `--help` shows all. The command is called as its declaration if no `name` is given, and joins the `group`.
    """

    def declare(declaration: Callable[[], None]) -> click.Command:
        act = with_options((*options, *([_LEGEND, _WIDE] if legend else ()), *_LAST), deferred(declaration))
        made = click.command(name, cls=StrictCommand, short_help=short_help or None, often=often.split())(act)
        if group is not None:
            group.add_command(made)
        return made

    return declare
