"""The action of the command `fuseflow schema`, which `cli/schema.py` declares."""

from __future__ import annotations

from pathlib import Path

from fuseflow.cli.common import require_writable_file, write_out
from fuseflow.interface.schemas import schema_text


def schema(kind: str, output: Path | None, quiet: bool) -> None:
    """Write the schema: it is what was asked for, so that `quiet` changes nothing."""
    del quiet
    require_writable_file(output)
    write_out(schema_text(kind), output)
