"""The reference of the command line as MyST Markdown: all commands with all their options, in groups. `docs/conf.py` puts it in a page."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from fuseflow.cli.command import EXIT_STATUS, option_groups
from fuseflow.cli.main import main


def reference() -> str:
    """Return the reference of all commands: a section for each, and in it one for each group of options."""
    return "\n".join(_lines(main, click.Context(main, info_name="fuseflow", **main.context_settings)))


def _lines(command: click.Command, context: click.Context) -> Iterator[str]:
    path, words = context.command_path, " ".join(command.collect_usage_pieces(context))
    yield f"\n## {path}\n\n`{path} {words}`\n"
    yield _marked(inspect.cleandoc(command.help or ""))
    yield f"\n```{{program}} {path}\n```\n"
    groups = option_groups(command, context)
    for heading, options in groups.items():
        if len(groups) > 1:
            yield f"\n### {path}: {heading}\n"
        for option in options:
            yield from _option(option, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _lines(inner, click.Context(inner, parent=context, info_name=name))
    if context.parent is None:
        yield f"\n## Exit status\n\n{EXIT_STATUS.removeprefix('Exit status: ')}\n"


def _option(option: click.Option, context: click.Context) -> Iterator[str]:
    record = option.get_help_record(context)
    assert record is not None
    names, text = record
    yield f"```{{option}} {names}\n{_marked(text)}\n```\n"


def _marked(text: str) -> str:
    """Return a text of the help as Markdown: options are code, and an asterisk is an asterisk. Paragraphs stay."""
    parts = re.split(r"(`[^`]*`)", text)  # what stands in backticks is every second one
    parts[::2] = [re.sub(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", r"`\1`", part.replace("*", r"\*")) for part in parts[::2]]
    return "".join(parts)


if __name__ == "__main__":
    print(reference())
