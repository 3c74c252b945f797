"""The action of the command `fuseflow machines`, which `cli/machines.py` declares."""

from __future__ import annotations

from fuseflow.cli.common import parse_settings, say
from fuseflow.errors import UsageError
from fuseflow.machine.files import load_machine, machine_summaries
from fuseflow.yaml_text import write_yaml


def machines(name: str | None, settings: tuple[str, ...]) -> None:
    if name is None:
        if settings:
            raise UsageError(
                "`--set` changes a machine, and none is named", hint="as in `fuseflow machines rda --set fifo_depth=16`"
            )
        for shipped, summary in machine_summaries().items():
            say(f"{shipped:6} {summary}")
        return
    machine = load_machine(name, parse_settings(settings))
    say(write_yaml({"name": machine.name, **machine.settings}).rstrip())
