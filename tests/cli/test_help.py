"""The help of every command: short, and whole in groups; and what all commands have in common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from fuseflow.cli.command import EXIT_STATUS, GroupedOption, StrictCommand, option_groups
from fuseflow.cli.main import main

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"
SPMM = [str(EXAMPLE / "spmm.ein"), "--tensors", str(EXAMPLE / "tensors.yaml")]
MOST_LINES = 60
MOST_OFTEN = 15
"""The most options that the short help shows, with the three that every command has."""


def fuseflow(*words: object) -> Result:
    return CliRunner().invoke(main, list(map(str, words)))


def walk(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with the words that call it."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from walk(inner, (*words, name))


ALL = dict(walk(main))
COMMANDS = {words: command for words, command in ALL.items() if isinstance(command, StrictCommand)}


def ids(words: tuple[str, ...]) -> str:
    return " ".join(words) or "fuseflow"


@pytest.mark.parametrize("words", ALL, ids=ids)
def test_the_help_is_short_and_says_the_exit_statuses(words: tuple[str, ...]) -> None:
    result = fuseflow(*words, "--help")
    lines = result.output.splitlines()
    assert result.exit_code == 0 and len(lines) <= MOST_LINES
    assert EXIT_STATUS in " ".join(result.output.split())
    assert max(map(len, lines)) <= 80
    assert fuseflow(*words, "-h").output == result.output
    assert fuseflow(*words, "--help-all").exit_code == 0


@pytest.mark.parametrize("words", COMMANDS, ids=ids)
def test_the_whole_help_has_every_option_in_a_group(words: tuple[str, ...]) -> None:
    command = COMMANDS[words]
    whole = fuseflow(*words, "--help-all").output
    groups = option_groups(command, click.Context(command))
    options = [option for options in groups.values() for option in options]
    assert len(options) == len({*options}) == sum(isinstance(p, click.Option) and not p.hidden for p in command.params) + 1
    assert all(isinstance(option, GroupedOption) for option in options if "--help" not in option.opts)
    assert all(f"{group}:\n" in whole for group in groups) or (len(groups) == 1 and "Options:\n" in whole)
    assert all(name in whole for option in options for name in option.opts)


@pytest.mark.parametrize("words", [words for words, command in COMMANDS.items() if command.often], ids=ids)
def test_the_short_help_points_to_the_whole_one(words: tuple[str, ...]) -> None:
    command, short = COMMANDS[words], fuseflow(*words, "--help").output
    names = {name.lstrip("-"): name for option in command.params for name in option.opts}
    assert set(command.often) - {"help"} <= names.keys(), "the short help names options that the command has"
    assert len(command.often) <= MOST_OFTEN
    assert all(f"  {names[name]}" in short or f", {names[name]}" in short for name in command.often if name != "help")
    assert short.splitlines()[-1].startswith(f"`fuseflow {' '.join(words)} --help-all` shows all ")


def test_a_command_that_is_not_short_says_all_at_once() -> None:
    for words, command in COMMANDS.items():
        count = sum(isinstance(parameter, click.Option) for parameter in command.params)
        assert command.often or count <= 14, words


@pytest.mark.parametrize("words", COMMANDS, ids=ids)
def test_every_command_has_what_all_have(words: tuple[str, ...]) -> None:
    options = {name for parameter in COMMANDS[words].params for name in parameter.opts}
    own = {"--json"} if words != ("schema",) else set()  # what it prints is JSON
    assert {*own, "--quiet", "-q", "--verbose", "-v", "--debug", "--help-all"} <= options


@pytest.mark.parametrize("words", ALL, ids=ids)
def test_the_nearest_name_of_an_option_is_told(words: tuple[str, ...]) -> None:
    option = "--debug" if isinstance(ALL[words], click.Group) else "--quiet"
    result = fuseflow(*words, f"{option[:-2]}{option[-1]}{option[-2]}")
    assert result.exit_code == 2 and option in result.stderr


@pytest.mark.parametrize("words", [words for words in ALL if words], ids=ids)
def test_the_nearest_name_of_a_command_is_told(words: tuple[str, ...]) -> None:
    *group, name = words
    wrong = f"{name}{name[-1]}"
    result = fuseflow(*group, wrong, "x")
    assert result.exit_code == 2 and f"No such command '{wrong}'. " in result.stderr and f"'{name}'" in result.stderr


@pytest.mark.parametrize("group", [("sweep",), ("explain",)], ids=ids)
def test_the_command_of_a_group_may_be_left_out(group: tuple[str, ...]) -> None:
    missing = fuseflow(*group, "missing.yaml")
    assert missing.exit_code == 2 and "missing.yaml" in missing.stderr and "No such command" not in missing.stderr


def test_quiet_and_verbose_exclude_each_other() -> None:
    result = fuseflow("run", *SPMM, "-q", "-v")
    assert result.exit_code == 2 and "`--quiet` beside `--verbose`" in result.stderr
