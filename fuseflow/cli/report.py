"""The command `fuseflow report`, which writes a run as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.common import FILE, console, quiet_option, require_writable, write_out
from fuseflow.errors import UsageError
from fuseflow.filesystem import read_json, replace_file
from fuseflow.report.page.page import page
from fuseflow.report.page.run_directory import read_run
from fuseflow.run.manifest import MANIFEST
from fuseflow.run.result import json_text

PAGE = "report.html"


@click.command(cls=StrictCommand, short_help="Write a run as one HTML page.")
@click.argument("run", type=FILE)
@click.option("-o", "--output", metavar="FILE", type=FILE, help="Where to write it; - is stdout.  [default: RUN/report.html]")
@click.option("--cycles", metavar="FILE", type=FILE, help="What `explain cycles --json FILE` found in the same run.")
@quiet_option
@debug_option
def report(run: Path, output: Path | None, cycles: Path | None, quiet: bool) -> None:
    """Write one HTML page about RUN: the directory that `fuseflow run -o DIR` wrote, or the file of `--json`.

    The page needs no network and no other file. Of a `--json` file it has everything but loops, tables and graphs, and is written
    beside it.
    """
    stored = read_run(run, cycles)
    target = output or (run / PAGE if run.is_dir() else run.with_suffix(".html"))
    if str(target) == "-":
        write_out(page(stored), None)
        return
    require_writable(target, directory=False)
    if target.exists() and any(target.samefile(source) for source in (run, cycles) if source is not None):
        raise UsageError(f"`{target}` would be overwritten, and is what the page is made of", hint="`-o page.html`")
    content = page(stored)
    if run.is_dir() and target.absolute() == (run / PAGE).absolute():
        _note(run)
    write_out(content, target)
    if not quiet:
        console(stderr=True).print(f"report: {target}", soft_wrap=True, markup=False)


def _note(run: Path) -> None:
    """List the page as one of the files of the run's directory before it is written, so that the next run may replace it."""
    about = read_json(run / MANIFEST)
    files = about.get("files") if isinstance(about, dict) else None
    if isinstance(files, list) and PAGE not in files:
        about["files"] = sorted([*map(str, files), PAGE])
        with replace_file(run / MANIFEST) as temporary:
            temporary.write_text(json_text(about), encoding="utf-8")
