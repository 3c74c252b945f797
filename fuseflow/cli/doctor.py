"""The command `fuseflow doctor`, which checks whether this installation works."""

from __future__ import annotations

from fuseflow.cli.common import json_option
from fuseflow.cli.deferred import command


@command("", json_option("the checks"))
def doctor() -> None:
    """Check the installation; exits with 1 if something is wrong."""
