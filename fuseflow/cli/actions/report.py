"""What `fuseflow report` does."""

from __future__ import annotations

from pathlib import Path

from fuseflow.cli.common import console, require_writable, write_out
from fuseflow.errors import UsageError
from fuseflow.filesystem import json_text, read_json, replace_file
from fuseflow.report.page.page import page
from fuseflow.report.page.run_directory import read_run
from fuseflow.run.directory import MANIFEST

PAGE = "report.html"


def report(run: Path, output: Path | None, cycles: Path | None, quiet: bool) -> None:
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
