"""The command `fuseflow` for tests, called in this process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from fuseflow.cli.main import main


def fuseflow(*words: object) -> Result:
    """Call the command with words, and return what it prints and how it ends."""
    return CliRunner().invoke(main, [str(word) for word in words])
