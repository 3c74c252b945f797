"""The actions of the commands `fuseflow machines` and `fuseflow ops`, which `cli/lists.py` declares."""

from __future__ import annotations

from textwrap import fill

from fuseflow.cli.common import console, parse_settings, print_pieces, say
from fuseflow.errors import UsageError
from fuseflow.filesystem.schemas import with_schema
from fuseflow.machine.files import load_machine, machine_summaries
from fuseflow.report.preset_table import preset_table
from fuseflow.yaml_text import write_yaml


def machines(name: str | None, settings: tuple[str, ...]) -> None:
    if name is None:
        if settings:
            raise UsageError(
                "`--set` changes a machine, and none is named", hint="as in `fuseflow machines rda --set fifo_depth=16`"
            )
        out = console()
        for shipped, summary in machine_summaries().items():
            say(fill(f"{shipped:6} {summary}", out.width, subsequent_indent=" " * 7, break_on_hyphens=False))
        print_pieces(out, ["", preset_table()])
        return
    machine = load_machine(name, parse_settings(settings))
    say(with_schema("machine", write_yaml({"name": machine.name, **machine.settings})).rstrip())


def ops() -> None:
    from fuseflow.report.tables import operator_table, reducer_table  # takes a while to load, and machines are listed without

    print_pieces(console(), [operator_table(), "", reducer_table()])
