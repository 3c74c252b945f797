"""The reference of the command line has every command with every option, as the program has them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from command_reference import reference

from fuseflow.cli.main import main


def options(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """Yield the options of a command and of those inside, each with the words that call the command."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            yield path, parameter.opts[-1]
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            inner = command.get_command(click.Context(command), name)
            assert inner is not None
            yield from options(inner, f"{path} {name}")


def test_every_option_of_every_command_is_in_the_reference() -> None:
    sections = dict(re.findall(r"^## (fuseflow[a-z ]*)$(.*?)(?=^## |\Z)", reference(), re.MULTILINE | re.DOTALL))
    wanted = [*options(main, "fuseflow")]
    assert len(wanted) > 500 and {path for path, _ in wanted} == sections.keys()
    for path, option in wanted:
        assert re.search(rf"^```{{option}} (.*, )?{option}( |$)", sections[path], re.MULTILINE), (path, option)
        assert f"```{{program}} {path}\n" in sections[path]


def test_the_reference_is_markdown_that_says_what_the_help_says() -> None:
    text = reference()
    assert "```{option} --sparsify WEIGHT=RULE\nPrune weights: '\\*.weight=magnitude:0.9:csr'; repeatable" in text
    assert "### fuseflow run: Schedule\n" in text and "\n## Exit status\n" in text
    assert text.count("```") % 2 == 0
